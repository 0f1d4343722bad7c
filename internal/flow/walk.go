package flow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// maxSteps bounds the rows walked from one action to the next, so that a loop without an action ends.
const maxSteps = 100_000

// manyWalks is how many times as much as one walk may do those do together at most that begin together, or one behind the other
// without anything to run between them: branches, and what follows forks in which nothing runs.
const manyWalks = 10

// Bounds of a walk's value, which retain doubles with each turn of a loop: the largest payload that a server can be set to let pass, and
// how many bytes a walk may go over from one action to the next.
const (
	maxValue = 32 << 20
	maxWork  = 512 << 20
)

// cursor is a place in a walk: the row of the action that runs, and the frames around it.
type cursor struct {
	at    int
	stack *frame
	done  effort // of a fork in which nothing runs: what was done up to it
}

// walk is one stretch of a program from one action to the next, or to the end.
type walk struct {
	program *Program
	at      int // the row to come; beyond the last one the walk is over
	value   json.RawMessage
	stack   *frame
	made    *made // with those of the branches that it begins; nil: nothing yet
}

// Start walks to the first action, or to the end of a program that has none.
func (p *Program) Start(input json.RawMessage) forerun.Stop {
	w := walk{program: p, value: input}
	return w.run()
}

// Resume goes on behind the action where the walk stopped, with its result.
func (p *Program) Resume(at forerun.Cursor, r forerun.Result) forerun.Stop {
	if p.asIs && r.Status != forerun.Success {
		return forerun.Stop{End: true, Result: r}
	}
	c := at.(cursor)
	w := walk{program: p, at: c.at + 1, value: r.Value, stack: c.stack}
	switch row := &p.rows[c.at]; row.op {
	case opFunction:
		w.returned(row, r)
	case opAsync:
		w.at = row.to
		w.detached(row, r)
	default:
		w.value = p.underlaid(w.value)
	}
	if !p.asIs {
		w.check()
	}
	return w.run()
}

// underlaid is a value with the program's parameters under it.
func (p *Program) underlaid(value json.RawMessage) json.RawMessage {
	if len(p.parameters) == 0 || !isObject(value) {
		return value
	}
	all := membersOf(value)
	for _, parameter := range p.parameters {
		if all[parameter.Key] == nil {
			all[parameter.Key] = parameter.Value
		}
	}
	return all.object()
}

func (w *walk) run() forerun.Stop {
	if w.made == nil {
		w.made = new(made)
	}
	var own effort
	for {
		bytes := w.reads()
		own.step(bytes)
		w.made.step(bytes)
		if stop := cmp.Or(own.tooMuch(1), w.made.tooMuch(manyWalks)); stop != nil {
			return *stop
		}
		if len(w.value) > maxValue {
			return *largeWork()
		}
		if w.at >= len(w.program.rows) {
			return w.end()
		}
		at := w.at
		if stop, ok := w.step(); ok {
			stop.Place, stop.Branch = at, w.program.decides(at)
			return stop
		}
	}
}

// reads is how many bytes of the value the next row goes over.
func (w *walk) reads() int {
	if w.at < len(w.program.rows) {
		switch w.program.rows[w.at].op {
		case opBranch, opBuiltin, opCheck, opDynamic, opMap:
			return len(w.value)
		}
	}
	return 0
}

// effort is how many rows were walked, and the bytes that they went over.
type effort struct{ rows, work int }

func (e *effort) step(bytes int) {
	e.rows++
	e.work += bytes
}

// tooMuch is the end of what does more than so many walks may; nil: it does not.
func (e *effort) tooMuch(walks int) *forerun.Stop {
	switch {
	case e.rows > walks*maxSteps:
		return ended("The composition went on without an action for too long; does a loop in it never end?")
	case e.work > walks*maxWork:
		return largeWork()
	}
	return nil
}

func largeWork() *forerun.Stop {
	return ended(fmt.Sprintf(
		"The composition's value grew beyond %d MiB, or it did too much with a large one; does a loop in it retain what it made?", maxValue>>20))
}

func ended(why string) *forerun.Stop {
	return &forerun.Stop{End: true, Result: forerun.Failure(forerun.ApplicationError, why)}
}

// end is the program's result: an error that nothing caught, or the value. Of what is not true in JavaScript's sense, composer
// sees no error here.
func (w *walk) end() forerun.Stop {
	status := forerun.Success
	if isTrue(memberOf(w.value, "error")) {
		status = forerun.ApplicationError
	}
	return forerun.Stop{End: true, Result: forerun.Result{Status: status, Value: w.value}}
}

// step executes one row; ok says that it is an action, where the walk waits.
func (w *walk) step() (stop forerun.Stop, ok bool) {
	r, at := &w.program.rows[w.at], w.at
	w.at++
	switch r.op {
	case opAction:
		return forerun.Stop{Cursor: cursor{at: at, stack: w.stack}, Action: r.action, Input: w.value}, true
	case opDynamic:
		return w.dynamic(r, at)
	case opFunction:
		input := w.functionInput(r)
		w.made.bytes += len(input)
		return forerun.Stop{Cursor: cursor{at: at, stack: w.stack}, Function: r.code, Input: input, Within: "params"}, true
	case opParallel, opMap:
		return w.fork(r, at)
	case opAsync:
		return forerun.Stop{Cursor: cursor{at: at, stack: w.stack}, Detach: branch{w.program, at + 1, marked(w.stack)}, Input: w.value}, true
	case opStop:
		return w.end(), true
	case opBranch:
		if !isTrue(memberOf(w.value, "value")) {
			w.at = r.to
		}
	case opJump:
		w.at = r.to
	case opTry, opLet, opMask:
		w.stack = &frame{kind: r.op, catch: r.to, vars: r.vars, below: w.stack}
	case opExit:
		w.stack = w.stack.below
	case opLiteral:
		w.value = r.value
		w.check()
	case opBuiltin:
		w.apply(r)
	case opCheck:
		w.check()
	}
	return forerun.Stop{}, false
}

// dynamic stops at the action that the value describes: {"type": "action", "name": ..., "params": {...}}.
func (w *walk) dynamic(r *row, at int) (forerun.Stop, bool) {
	var call struct {
		Type   string          `json:"type"`
		Name   *string         `json:"name"`
		Params json.RawMessage `json:"params"`
	}
	err := json.Unmarshal(w.value, &call)
	if err != nil || call.Type != "action" || call.Name == nil || len(call.Params) == 0 || !strings.Contains("{[n", string(call.Params[:1])) {
		w.fail("Incorrect use of the dynamic combinator at AST node root" + r.path)
		return forerun.Stop{}, false
	}
	given := quoted(*call.Name)
	name, ok := componentName(given)
	if !ok {
		w.fail(unparsable(given))
		return forerun.Stop{}, false
	}
	return forerun.Stop{Cursor: cursor{at: at, stack: w.stack}, Action: name, Input: boxed(call.Params, "value")}, true
}

// fail makes an error the value and acts on it.
func (w *walk) fail(message string) {
	w.value = refusal(message)
	w.check()
}

// check is what composer does behind every action: a value that is not an object is wrapped; an error drops all other members and
// goes to the innermost try around, or ends the program.
func (w *walk) check() {
	if !isObject(w.value) {
		w.value = object("value", w.value)
	}
	problem := memberOf(w.value, "error")
	if problem == nil {
		return
	}
	w.value = object("error", problem)
	for w.stack != nil && w.stack.kind != opStop {
		top := w.stack
		w.stack = top.below
		if top.kind == opTry {
			w.at = top.catch
			return
		}
	}
	w.at = len(w.program.rows)
}

// decides tells whether a row's result is looked at by a branch alone: behind it, either way, the value is the saved one.
func (p *Program) decides(at int) bool {
	if op := p.rows[at].op; op != opAction && op != opFunction && op != opDynamic {
		return false
	}
	for at++; at < len(p.rows) && p.rows[at].op == opExit; {
		at++
	}
	return at < len(p.rows) && p.rows[at].op == opBranch && p.restores(at+1) && p.restores(p.rows[at].to)
}

func (p *Program) restores(at int) bool {
	if at < len(p.rows) && p.rows[at].op == opTry {
		at++
	}
	return at < len(p.rows) && p.rows[at].op == opBuiltin && p.rows[at].builtin == loadParams
}
