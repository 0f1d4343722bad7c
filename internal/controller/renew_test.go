package controller

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestProgramsUpdatedInAPromotion: what two functions did ahead is applied as one step, and counts once, also if a program that the second
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
