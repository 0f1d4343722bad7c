package speculate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// TestGolden replays the traces of testdata: each file is one story, each command an event, its output the actions
// that the machine answered with. Run with -rewrite to write them anew, and review the difference.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var m *Machine
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "invoke" {
				var first []Action
				m, first = New(word(t, d, "action"), json.RawMessage(word(t, d, "input")))
				return show(first)
			}
			return show(m.Step(readEvent(t, d)))
		})
	})
}

func readEvent(t *testing.T, d *datadriven.TestData) Event {
	slot := SlotID(number(t, d, "slot"))
	switch d.Cmd {
	case "started":
		return Started{Slot: slot}
	case "entered":
		return Entered{Slot: slot, Program: readProgram(d.Input), Input: json.RawMessage(word(t, d, "input"))}
	case "output":
		return Output{Slot: slot, Result: forerun.Result{Value: json.RawMessage(word(t, d, "value"))}}
	case "error":
		return Output{Slot: slot, Result: forerun.Failure(forerun.ApplicationError, word(t, d, "message"))}
	case "failed":
		return Failed{Slot: slot, Result: forerun.Failure(forerun.DeveloperError, word(t, d, "message"))}
	case "read":
		return Read{Slot: slot, Op: OpID(number(t, d, "op"))}
	case "write":
		return Write{Slot: slot, Op: OpID(number(t, d, "op"))}
	case "call":
		return Call{Slot: slot, Op: OpID(number(t, d, "op")), Action: word(t, d, "action"), Input: json.RawMessage(word(t, d, "input"))}
	case "cancelled":
		return Cancelled{Reason: word(t, d, "reason")}
	}
	t.Fatalf("%s: unknown event %q", d.Pos, d.Cmd)
	return nil
}

func word(t *testing.T, d *datadriven.TestData, key string) string {
	var v string
	d.ScanArgs(t, key, &v)
	return v
}

func number(t *testing.T, d *datadriven.TestData, key string) (n int) {
	if d.HasArg(key) {
		d.ScanArgs(t, key, &n)
	}
	return n
}

func show(actions []Action) string {
	if len(actions) == 0 {
		return "nothing\n"
	}
	var b strings.Builder
	for _, a := range actions {
		b.WriteString(describe(a) + "\n")
	}
	return b.String()
}

func describe(a Action) string {
	switch a := a.(type) {
	case Launch:
		how := fmt.Sprintf("launch %d: %s(%s)", a.Slot, a.Action, a.Input)
		if a.Parent != None {
			how += fmt.Sprintf(" in the program of %d", a.Parent)
		}
		if a.Caller != None {
			how += fmt.Sprintf(" called by %d as its operation %d", a.Caller, a.Op)
		}
		return how
	case Commit:
		return fmt.Sprintf("commit %d: %s %s", a.Slot, a.Result.Status, a.Result.Value)
	case Learn:
		return fmt.Sprintf("learn from %d", a.Slot)
	case Reply:
		if a.Direct {
			return fmt.Sprintf("reply to %d, operation %d: from the store", a.Slot, a.Op)
		}
		return fmt.Sprintf("reply to %d, operation %d: %s %s", a.Slot, a.Op, a.Result.Status, a.Result.Value)
	case Squash:
		return fmt.Sprintf("squash %d: %s", a.Slot, a.Cause)
	case Finish:
		return fmt.Sprintf("finish: %s %s", a.Result.Status, a.Result.Value)
	}
	return fmt.Sprintf("%T %+v", a, a)
}

// program is a small workflow for tests: lines one after the other, the branches of a line side by side. An error ends it.
type program [][][]string

// readProgram reads lines of branches, separated by "|"; a branch is a list of actions. "fork" alone is a fork without branches.
func readProgram(text string) program {
	var p program
	for _, line := range strings.Split(text, "\n") {
		var branches [][]string
		if line != "fork" && line != "" {
			for _, branch := range strings.Split(line, "|") {
				branches = append(branches, strings.Fields(branch))
			}
		}
		if line != "" {
			p = append(p, branches)
		}
	}
	return p
}

// place is a line, a branch of it and an action in that.
type place struct{ line, branch, action int }

func (p program) Start(input json.RawMessage) forerun.Stop {
	return p.begin(0, forerun.Result{Value: input})
}

// begin goes on at the beginning of a line.
func (p program) begin(line int, r forerun.Result) forerun.Stop {
	if line == len(p) {
		return forerun.Stop{End: true, Result: r}
	}
	if len(p[line]) == 1 {
		return p.stop(place{line: line}, r)
	}
	stop := forerun.Stop{Cursor: place{line: line}, Join: true}
	for i := range p[line] {
		stop.Fork = append(stop.Fork, p.stop(place{line: line, branch: i}, r))
	}
	return stop
}

func (p program) stop(at place, r forerun.Result) forerun.Stop {
	branch := p[at.line][at.branch]
	switch {
	case at.action < len(branch):
		return forerun.Stop{Cursor: at, Action: branch[at.action], Input: r.Value}
	case len(p[at.line]) == 1:
		return p.begin(at.line+1, r)
	}
	return forerun.Stop{End: true, Result: r}
}

func (p program) Resume(cursor forerun.Cursor, r forerun.Result) forerun.Stop {
	if r.Status != forerun.Success {
		return forerun.Stop{End: true, Result: r}
	}
	at := cursor.(place)
	at.action++
	return p.stop(at, r)
}

func (p program) Join(cursor forerun.Cursor, branches []forerun.Result) forerun.Stop {
	values := make([]string, len(branches))
	for i, b := range branches {
		values[i] = string(b.Value)
	}
	value := fmt.Sprintf(`{"value":[%s]}`, strings.Join(values, ","))
	return p.begin(cursor.(place).line+1, forerun.Result{Value: json.RawMessage(value)})
}
