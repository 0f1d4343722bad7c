package flow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// TestWalks replays testdata: `compile` takes a composer document, `sequence` a list of names, `walk` a table of what
// each action answers; the output shows what ran on what. Run with -rewrite to write it anew.
func TestWalks(t *testing.T) {
	datadriven.Walk(t, "testdata/walks", func(t *testing.T, path string) {
		var p *Program
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "compile":
				var err error
				if p, err = compileComposition(json.RawMessage(d.Input)); err != nil {
					return fmt.Sprintf("%v: %v\n", forerun.KindOf(err).HTTPStatus(), err)
				}
				return strings.Join(p.Actions(), " ") + "\n"
			case "sequence":
				p = Sequence(strings.Fields(d.Input))
				return strings.Join(p.Actions(), " ") + "\n"
			case "walk":
				var input string
				d.ScanArgs(t, "input", &input)
				return walkWith(t, p, json.RawMessage(input), d.Input)
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

// walkWith walks p, each action answering as the lines of answers say: "name {json}" or "name ! {json}" for a failure.
func walkWith(t *testing.T, p *Program, input json.RawMessage, answers string) string {
	results := make(map[string]forerun.Result)
	for _, line := range strings.Split(answers, "\n") {
		name, value, _ := strings.Cut(line, " ")
		status := forerun.Success
		if rest, failed := strings.CutPrefix(value, "! "); failed {
			status, value = forerun.DeveloperError, rest
		} else if strings.HasPrefix(value, `{"error"`) {
			status = forerun.ApplicationError
		}
		results[name] = forerun.Result{Status: status, Value: json.RawMessage(value)}
	}
	w := walker{t: t, program: p, results: results}
	end := w.walk(p.Start(input))
	return fmt.Sprintf("%s%s: %s\n", w.shown.String(), end.Status, end.Value)
}

// walker goes from stop to stop.
type walker struct {
	t       *testing.T
	program *Program
	results map[string]forerun.Result // by action, or by the code of a function
	shown   strings.Builder
}

func (w *walker) walk(stop forerun.Stop) forerun.Result {
	for !stop.End {
		next := func() forerun.Stop { return w.program.Resume(stop.Cursor, w.answer(stop)) }
		if stop.Join {
			branches := make([]forerun.Result, len(stop.Fork))
			for i, branch := range stop.Fork {
				fmt.Fprintf(&w.shown, "branch %d\n", i)
				branches[i] = w.walk(branch)
			}
			fmt.Fprintf(&w.shown, "join\n")
			next = func() forerun.Stop { return w.program.Join(stop.Cursor, branches) }
		} else {
			fmt.Fprintf(&w.shown, "%s(%s) = %s\n", what(stop), stop.Input, w.answer(stop).Value)
		}
		first, second := next(), next() // a cursor is immutable: going on twice is the same
		if !reflect.DeepEqual(first, second) {
			w.t.Errorf("%s: resumed twice: %v, then %v", what(stop), first, second)
		}
		stop = first
	}
	return stop.Result
}

func (w *walker) answer(stop forerun.Stop) forerun.Result {
	r, ok := w.results[what(stop)]
	if !ok {
		w.t.Fatalf("no answer for %s", what(stop))
	}
	return r
}

func what(stop forerun.Stop) string {
	if stop.Function != nil {
		return stop.Function.Code
	}
	return stop.Action
}

func TestOf(t *testing.T) {
	function := &forerun.Action{Exec: forerun.Exec{Kind: "python:3"}, Annotations: []forerun.KeyValue{{Key: "conductor", Value: json.RawMessage("true")}}}
	if p, err := Of(function); p != nil || err != nil {
		t.Errorf("a function compiled to %v, %v", p, err)
	}
	sequence := &forerun.Action{Exec: forerun.Exec{Kind: "sequence", Components: []string{"/ns/a"}}}
	if p, err := Of(sequence); err != nil || p.Actions()[0] != "/ns/a" {
		t.Errorf("a sequence compiled to %v, %v", p, err)
	}
}

func TestTruth(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "true": true, "false": false, "null": false, `""`: false, `"0"`: true, "0": false, "-0": false, "0.0": false,
		"0e5": false, "1": true, "-1.5": true, "1e999": true, "[]": true, "{}": true,
	} {
		if got := isTrue(json.RawMessage(value)); got != want {
			t.Errorf("isTrue(%s) = %v; JavaScript says %v", value, got, want)
		}
	}
}

// FuzzComposition: no document makes the compiler or a walk panic, or run for ever between two actions.
func FuzzComposition(f *testing.F) {
	f.Add([]byte(`{"type":"if","test":{"type":"action","name":"/_/a"},"consequent":{"type":"sequence","components":[{"type":"action","name":"/_/b"}]},"alternate":{"type":"empty"}}`), []byte(`{"value":true}`))
	f.Add([]byte(`{"type":"sequence","components":[null]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, document, value []byte) {
		p, err := compileComposition(document)
		if err != nil {
			return
		}
		stop := p.Start(value)
		for range 100 { // a loop may go on for ever, if its actions want it
			if stop.End {
				return
			}
			stop = p.Resume(stop.Cursor, forerun.Result{Value: value})
		}
	})
}
