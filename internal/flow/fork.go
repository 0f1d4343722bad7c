package flow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// maxBranches is how many branches may begin at once, those in branches included: an invocation has at most as many activations.
const maxBranches = 10_000

// made is what a walk has made for branches, and done with them: each may begin others, and all begin before any of them does something.
type made struct {
	branches, bytes int
	effort
}

func (m *made) isTooMuch() *forerun.Stop {
	if m.branches > maxBranches || m.bytes > maxWork {
		return ended(fmt.Sprintf(
			"The composition would begin more than %d branches at once, or branches with more than %d MiB; does one map contain another?", maxBranches, maxWork>>20))
	}
	return m.tooMuch(manyWalks)
}

// fork stops where branches begin. Each sees the variables around, on frames of its own: what it sets is seen by itself.
func (w *walk) fork(r *row, at int) (stop forerun.Stop, ok bool) {
	stop = forerun.Stop{Join: true}
	stack := marked(w.stack)
	begin := func(row int, value json.RawMessage, own int) (fits bool) {
		input := w.program.underlaid(value)
		w.made.branches++
		w.made.bytes += own + len(input) - len(value)
		if end := w.made.isTooMuch(); end != nil {
			stop = *end
			return false
		}
		first := branch{w.program, row, stack}.begin(input, w.made)
		w.made.bytes += len(first.Result.Value)
		stop.Fork = append(stop.Fork, first)
		return true
	}
	if r.op == opParallel {
		for _, row := range r.forks {
			if !begin(row, w.value, 0) {
				break
			}
		}
		stop.Cursor = w.joins(at, &stop)
		return stop, true
	}
	list := memberOf(w.value, "value")
	if r.strict && (len(list) == 0 || list[0] != '[') {
		w.at = r.to
		w.fail(noList(w.value))
		return forerun.Stop{}, false
	}
	elements, ok := elementsOf(list)
	if !ok {
		w.at = r.to
		w.fail("Parallel combinator failed to invoke a composition at AST node root" + r.path + " (see log for details)")
		return forerun.Stop{}, false
	}
	for _, element := range elements {
		if value := boxed(element, "value"); !begin(at+1, value, len(value)) {
			break
		}
	}
	stop.Cursor = w.joins(at, &stop)
	return stop, true
}

// joins is where the walk goes on behind a fork.
func (w *walk) joins(at int, fork *forerun.Stop) cursor {
	c := cursor{at: at, stack: w.stack}
	if isIdle(fork) {
		c.done = w.made.effort
	}
	return c
}

// isIdle says whether nothing runs at a stop, nor in the forks at which its branches stop.
func isIdle(stop *forerun.Stop) bool {
	for i := range stop.Fork {
		if !isIdle(&stop.Fork[i]) {
			return false
		}
	}
	return stop.End || stop.Join
}

// elementsOf is what JavaScript makes of the value of a map: none of what is not true or says that its length is 0. ok is
// false if it is not an array.
func elementsOf(v json.RawMessage) (elements []json.RawMessage, ok bool) {
	if !isTrue(v) {
		return nil, true
	}
	if length := memberOf(v, "length"); string(length) == "0" { // canonical: no other zero
		return nil, true
	}
	err := json.Unmarshal(v, &elements)
	return elements, err == nil
}

// noList says why a map of a workflow cannot run on a value, and what its author should change.
func noList(value json.RawMessage) string {
	has := "a member value that is not a list"
	if members := membersOf(value); members["value"] == nil {
		has = "no member value"
		if names := slices.Sorted(maps.Keys(members)); len(names) > 0 {
			has += fmt.Sprintf(", but %.200s", strings.Join(names, ", "))
		}
	}
	return "The input of map has " + has + `: let the step before map return {"value": [...]}, with one element for each run`
}

// marked are frames for a branch: an error ends it, not what is around it.
func marked(stack *frame) *frame { return &frame{kind: opStop, below: stack} }

// branch is a part of a program, from a row to its opStop.
type branch struct {
	*Program
	at    int
	stack *frame
}

// Start walks the branch to its first stop; Resume and Join are the program's.
func (b branch) Start(input json.RawMessage) forerun.Stop { return b.begin(input, nil) }

// begin is Start of one of several branches.
func (b branch) begin(input json.RawMessage, of *made) forerun.Stop {
	w := walk{program: b.Program, at: b.at, value: input, stack: b.stack, made: of}
	return w.run()
}

// Join makes the branches' values the elements of one: {"value": [...]}. An error of a branch is the value of that branch.
func (p *Program) Join(at forerun.Cursor, branches []forerun.Result) forerun.Stop {
	values := make([]json.RawMessage, len(branches))
	for i, b := range branches {
		values[i] = b.Value
	}
	list, err := json.Marshal(values)
	c := at.(cursor)
	w := walk{program: p, at: p.rows[c.at].to, value: object("value", list), stack: c.stack, made: &made{effort: c.done}}
	if err != nil {
		w.fail("The branches' values are not JSON: " + err.Error())
	}
	return w.run()
}

// detached makes what an async combinator gives: the ids of the activation that it began and of its own, as composer does.
func (w *walk) detached(r *row, result forerun.Result) {
	if result.Status != forerun.Success {
		w.value = refusal("Async combinator failed to invoke composition at AST node root" + r.path + " (see log for details)")
		return
	}
	ids := membersOf(result.Value)
	ids["method"] = json.RawMessage(`"async"`)
	w.value = ids.object()
}
