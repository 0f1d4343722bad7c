package speculate

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// table is a small workflow for tests: lines one after the other, the branches of a line side by side. An error ends it.
type table []line

// line is branches that run in parallel; or, behind a test, one of two; or one. A branch is a list of actions.
type line struct {
	test     string
	branches [][]string
	loops    bool // behind the first branch the test comes again
}

// readProgram reads lines of branches, separated by "|"; "test ? a b : c" chooses; "test * a b" repeats; "fork" alone is a fork
// without branches.
func readProgram(text string) table {
	var p table
	for _, text := range strings.Split(text, "\n") {
		var l line
		if text == "" {
			continue
		}
		if test, rest, ok := strings.Cut(text, "?"); ok {
			yes, no, _ := strings.Cut(rest, ":")
			l = line{test: strings.TrimSpace(test), branches: [][]string{strings.Fields(yes), strings.Fields(no)}}
		} else if test, turn, ok := strings.Cut(text, "*"); ok {
			l = line{test: strings.TrimSpace(test), branches: [][]string{strings.Fields(turn), nil}, loops: true}
		} else if text != "fork" {
			for _, branch := range strings.Split(text, "|") {
				l.branches = append(l.branches, strings.Fields(branch))
			}
		}
		p = append(p, l)
	}
	return p
}

// spot is a line, a branch of it and an action in that; of a test, the value before it.
type spot struct {
	line, branch, action int
	before               string
}

func (p table) Start(input json.RawMessage) forerun.Stop {
	return p.begin(0, forerun.Result{Value: input})
}

// begin goes on at the beginning of a line.
func (p table) begin(at int, r forerun.Result) forerun.Stop {
	switch {
	case at == len(p):
		return forerun.Stop{End: true, Result: r}
	case p[at].test != "":
		return forerun.Stop{Cursor: spot{line: at, action: -1, before: string(r.Value)}, Place: at * 100, Action: p[at].test, Input: r.Value, Branch: true}
	case len(p[at].branches) == 1:
		return p.stop(spot{line: at}, r)
	}
	stop := forerun.Stop{Cursor: spot{line: at}, Place: at * 100, Join: true}
	for i := range p[at].branches {
		stop.Fork = append(stop.Fork, p.stop(spot{line: at, branch: i}, r))
	}
	return stop
}

func (p table) stop(at spot, r forerun.Result) forerun.Stop {
	l := p[at.line]
	branch := l.branches[at.branch]
	switch {
	case at.action < len(branch):
		return forerun.Stop{Cursor: at, Place: at.line*100 + at.branch*10 + at.action + 1, Action: branch[at.action], Input: r.Value}
	case l.loops && at.branch == 0:
		return p.begin(at.line, r)
	case len(l.branches) == 1 || l.test != "":
		return p.begin(at.line+1, r)
	}
	return forerun.Stop{End: true, Result: r}
}

func (p table) Resume(cursor forerun.Cursor, r forerun.Result) forerun.Stop {
	at := cursor.(spot)
	switch {
	case r.Status != forerun.Success:
		return forerun.Stop{End: true, Result: r}
	case at.action < 0:
		next := spot{line: at.line}
		if !strings.Contains(string(r.Value), `"value":true`) {
			next.branch = 1
		}
		return p.stop(next, forerun.Result{Value: json.RawMessage(at.before)})
	}
	at.action++
	return p.stop(at, r)
}

func (p table) Join(cursor forerun.Cursor, branches []forerun.Result) forerun.Stop {
	values := make([]string, len(branches))
	for i, b := range branches {
		values[i] = string(b.Value)
	}
	value := fmt.Sprintf(`{"value":[%s]}`, strings.Join(values, ","))
	return p.begin(cursor.(spot).line+1, forerun.Result{Value: json.RawMessage(value)})
}
