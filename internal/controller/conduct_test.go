package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// conductor deploys a conductor action.
func (t *town) conductor(name string, f func(input map[string]any) map[string]any) *forerun.Action {
	t.functions[name] = func(_ *forerun.Run, input map[string]any) (any, error) { return f(input), nil }
	return t.deploy(name, forerun.Exec{Kind: "go:test"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage("true")})
}

// steps runs the given actions one after the other.
func steps(names ...string) func(input map[string]any) map[string]any {
	return func(input map[string]any) map[string]any {
		step, _ := input["$step"].(float64)
		delete(input, "$step")
		if int(step) == len(names) {
			return map[string]any{"params": input}
		}
		return map[string]any{"action": names[int(step)], "params": input, "state": map[string]any{"$step": step + 1}}
	}
}

// names of the actions whose records a program's logs list, in order.
func (t *town) components(record *forerun.Activation) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, id := range record.Logs {
		for _, r := range slices.Concat(t.written...) {
			if string(r.ID) == id {
				names = append(names, r.Action.Entity)
				if r.Cause != record.ID || annotated(r, "causedBy") != `"sequence"` {
					names = append(names, "(which it did not cause)")
				}
			}
		}
	}
	return names
}

func TestConductorRunsWhatItNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("a", add("a", 1)).Limits.Memory = 512
		town.function("b", add("b", 2))
		town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
		c := town.conductor("c", steps("a", "/_/seq"))
		record := town.invoke(c, `{"x":0}`)
		if string(record.Result) != `{"a":1,"b":2,"x":0}` || record.Status != forerun.Success || record.Duration != 6*time.Millisecond {
			t.Errorf("the record is %+v", record)
		}
		if got := fmt.Sprint(town.components(record)); got != "[c a c seq c]" {
			t.Errorf("its components were %s", got)
		}
		if annotated(record, "conductor") != "true" || annotated(record, "kind") != `"sequence"` || annotated(record, "topmost") != "true" ||
			!strings.Contains(annotated(record, "limits"), `"memory":512`) || annotated(record, "causedBy") != "" {
			t.Errorf("its annotations are %s", record.Annotations)
		}
	})
}

func TestConductorHearsWhatIsWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("refuse", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"error": "no"}, nil })
		for component, want := range map[string]string{
			"refuse":  `{"heard":"no"} [c refuse c]`,
			"missing": `{"heard":"Failed to resolve action with name 'ns/missing' during composition."} [c c]`,
			"a/b/c/d": `{"heard":"Failed to parse action name from json value \"a/b/c/d\" during composition."} [c c]`,
		} {
			c := town.conductor("c", func(input map[string]any) map[string]any {
				if problem := input["error"]; problem != nil {
					return map[string]any{"heard": problem}
				}
				return map[string]any{"action": component}
			})
			record := town.invoke(c, `{}`)
			if got := fmt.Sprintf("%s %v", record.Result, town.components(record)); got != want {
				t.Errorf("%s: %s; want %s", component, got, want)
			}
		}
	})
}

func TestConductorsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("a", add("a", 1))
		again := func(name string) func(map[string]any) map[string]any {
			return func(input map[string]any) map[string]any {
				if input["error"] != nil {
					return map[string]any{"error": input["error"]}
				}
				return map[string]any{"action": name}
			}
		}
		deaf := func(map[string]any) map[string]any { return map[string]any{"action": "a"} }
		for name, c := range map[string]struct {
			conductor func(map[string]any) map[string]any
			most      int // records
		}{
			"one that goes on":   {again("a"), 2 + 2*forerun.MaxComponents + 1},
			"one in itself":      {again("c"), 2 + 2*(2*forerun.MaxComponents+1)},
			"one that is deaf":   {deaf, 1 + forerun.MaxComponents + 2*forerun.MaxComponents + 1},
			"one that is inside": {again("inside"), 3 + 4*forerun.MaxComponents},
		} {
			town.written = nil
			town.conductor("inside", deaf)
			record := town.invoke(town.conductor("c", c.conductor), `{}`)
			if got := string(record.Result); got != `{"error":"Too many actions in the composition."}` || record.Status != forerun.ApplicationError {
				t.Errorf("%s: %v %s", name, record.Status, got)
			}
			if n := len(slices.Concat(town.written...)); n > c.most {
				t.Errorf("%s: %d records, at most %d were expected", name, n, c.most)
			}
		}
	})
}

// TestConductorsInWorkflowsRunAhead: speculative steps of a conductor count as they would in order.
func TestConductorsInWorkflowsRunAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newAheadTown(t)
		town.function("a", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(time.Second)
			return map[string]any{}, nil
		})
		town.function("b", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil })
		town.conductor("c", func(input map[string]any) map[string]any {
			if input["error"] != nil {
				return map[string]any{"heard": input["error"]}
			}
			return map[string]any{"action": "b"}
		})
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/c"}},
			forerun.KeyValue{Key: "speculate", Value: json.RawMessage(`"all; depth=64"`)})
		for i := range 3 {
			town.written = nil
			got, tally := town.invokeAhead(seq, `{}`)
			synctest.Wait()
			if n := len(slices.Concat(town.written...)); got != `{"heard":"Too many actions in the composition."}` || n != 3+forerun.MaxComponents+forerun.MaxComponents+2 {
				t.Errorf("invocation %d gave %s, %d records, %+v", i+1, got, n, tally)
			}
			if tally.Used == 0 || tally.Squashed > 0 {
				t.Errorf("invocation %d: %+v", i+1, tally)
			}
		}
	})
}
