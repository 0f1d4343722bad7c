package controller

import (
	"encoding/json"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestProgramsUpdatedInAPromotion: speculative writes of two functions are applied as one step, and count once, also if a program that the second
// one is in, or one without any action between them, is updated before the store has answered.
func TestProgramsUpdatedInAPromotion(t *testing.T) {
	for updated, components := range map[string][]string{
		"inner": {"/ns/first", "/ns/one", "/ns/inner"},
		"empty": {"/ns/first", "/ns/one", "/ns/empty", "/ns/two"},
	} {
		t.Run(updated, func(t *testing.T) {
			town := newAheadTown(t)
			var second atomic.Bool
			counted, ahead := make(chan struct{}), make(chan forerun.ActivationID, 3)
			town.function("first", func(*forerun.Run, map[string]any) (any, error) {
				for range 2 {
					if second.Load() {
						id := <-ahead
						town.until(id, func(e *execution) bool { return e.active[id].over })
					}
				}
				return map[string]any{}, nil
			})
			count := func(run *forerun.Run) (any, error) {
				_, err := town.do(run, "INCR", "k")
				if second.Load() {
					ahead <- run.Activation
				}
				return map[string]any{}, err
			}
			town.function("one", func(run *forerun.Run, _ map[string]any) (any, error) {
				if second.Load() {
					defer close(counted)
				}
				return count(run)
			})
			town.function("two", func(run *forerun.Run, _ map[string]any) (any, error) {
				if second.Load() {
					<-counted // else it might read too early
				}
				return count(run)
			})
			town.deploy("inner", forerun.Exec{Kind: "sequence", Components: []string{"/ns/two"}})
			town.deploy("empty", forerun.Exec{Kind: "nodejs:default"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage(`{"type":"empty"}`)})
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: components})
			town.invokeAhead(seq, `{}`)
			second.Store(true)
			store := &stuck{Store: town.State, asked: make(chan struct{}), answer: make(chan struct{})}
			town.State = store
			i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: seq, Input: json.RawMessage(`{}`), Blocking: true})
			<-store.asked
			again := *town.actions["/ns/"+updated]
			again.Updated = again.Updated.Add(time.Second)
			town.actions["/ns/"+updated] = &again
			town.changes.Add(1)
			for e := range town.executions(func(*execution) bool { return true }) { // as with any event
				e.mu.Lock()
				e.renew()
				e.mu.Unlock()
			}
			close(store.answer)
			<-i.Done()
			if tally := i.Tally(); i.Record().Status != forerun.Success || tally.Used != 2 || tally.Squashed != 0 {
				t.Errorf("%s, %+v", i.Record().Result, tally)
			}
			if got := town.others(t, "GET k"); string(got.Text) != "4" {
				t.Errorf("two invocations of two functions have counted to %s", got.Text)
			}
		})
	}
}

// update deploys another version of a function.
func (t *town) update(name string) {
	again := *t.actions["/ns/"+name]
	again.Exec.Code += "+"
	t.actions["/ns/"+name] = &again
	t.changes.Add(1)
}

// pureCaller deploys a pure function that gives what a version of g does, and calls that.
func (w *waiting) pureCaller(name string, give func(g json.RawMessage) any, annotations ...forerun.KeyValue) {
	pure := forerun.KeyValue{Key: "pure-function", Value: json.RawMessage("true")}
	w.function("g", func(run *forerun.Run, _ map[string]any) (any, error) {
		return map[string]any{"g": run.Action.Exec.Code}, nil
	}).Annotations = []forerun.KeyValue{pure}
	w.function(name, func(run *forerun.Run, _ map[string]any) (any, error) {
		return give(w.call(run, w.actions["/ns/g"], w.Changes()).Record().Result), nil
	}).Annotations = append(annotations, pure)
}

// TestSkippedStepIsUpdated: a function that a skipped step had called is updated before the turn of that step: the step is executed.
func TestSkippedStepIsUpdated(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if w.first() {
			w.until(run.Activation, func(e *execution) bool {
				return slices.ContainsFunc(slices.Collect(maps.Values(e.slots)), func(s *slot) bool {
					return s.record.Action.Entity == "c" && s.record.Timeline.Skipped
				})
			})
			w.update("g")
			close(w.goOn)
		}
		return run.Input, nil
	})
	w.pureCaller("c", func(g json.RawMessage) any { return g })
	w.sequence = w.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/c", "/ns/b"}})
	if got, tally := w.twice(); got != `{"g":"+"}` || tally.Kinds[forerun.Updated] == 0 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// TestUpdatesOfOthers: a pure function that is executed ahead, as what it called is another since, is not executed once more whenever somebody
// updates something else; nor is what is behind it while it may not be executed yet.
func TestUpdatesOfOthers(t *testing.T) {
	for _, alone := range []string{"false", "true"} {
		var w *waiting
		w = newWaiting(t, func(run *forerun.Run) (any, error) {
			if w.first() {
				defer close(w.goOn)
				w.changes.Add(1)
				if _, err := w.do(run, "GET", "k"); err != nil { // its execution hears of the change
					return nil, err
				}
			}
			return run.Input, nil
		})
		w.pureCaller("c", func(json.RawMessage) any { return map[string]any{"c": 1} }, forerun.KeyValue{Key: "non-speculative", Value: json.RawMessage(alone)})
		w.sequence = w.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/c", "/ns/b"}})
		w.invokeAhead(w.sequence, `{}`)
		w.update("g")
		w.ahead.Store(true)
		got, tally := w.invokeAhead(w.sequence, `{}`)
		if got != `{"c":1}` || tally.Used == 0 || tally.Squashed != 0 {
			t.Errorf("alone %s: %s, %+v", alone, got, tally)
		}
	}
}
