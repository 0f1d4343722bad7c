package controller

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// isStalled tells whether something that a function of an activation's invocation asked for waits for its turn.
func (t *town) isStalled(id forerun.ActivationID) bool {
	e := t.executionOf(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.slots {
		if s.record.Timeline.Stalled != "" {
			return true
		}
	}
	return false
}

// TestReasonsName: reasons name what can be found in the records: by number, and by one name whatever the document calls it.
func TestReasonsName(t *testing.T) {
	town := newAheadTown(t)
	var second atomic.Bool
	town.function("mixed", func(run *forerun.Run, _ map[string]any) (any, error) {
		for second.Load() && !town.isStalled(run.Activation) { // the last function asks ahead of its turn
			time.Sleep(time.Millisecond)
		}
		return map[string]any{"params": map[string]any{"x": 1}}, nil
	})
	town.function("work", add("worked", true))
	town.function("last", func(run *forerun.Run, _ map[string]any) (any, error) {
		_, err := town.do(run, "KEYS", "*")
		return map[string]any{}, err
	})
	document := `{"type":"sequence","components":[{"type":"function","function":{"exec":{"kind":"nodejs:default","code":"x => x"}}},
		{"type":"action","name":"/_/work"},{"type":"action","name":"/_/last"}]}`
	mixed := town.deploy("mixed", forerun.Exec{Kind: "nodejs:default"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage(document)})
	town.invoke(mixed, `{}`)
	second.Store(true)
	town.invoke(mixed, `{}`)
	line := func(i int) *forerun.Timeline { return &town.written[1][i].Timeline }
	for i, want := range []string{"", "mixed (inline 1) #1 gave this on the same input before", "work #2 gave this on the same input before"} {
		if x := line(i); x.Slot != i+1 || x.Predicted != want || (x.Inline == 1) != (i == 0) {
			t.Errorf("of function %d it says %+v", i, x)
		}
	}
	if why := line(2).Stalled; why != "KEYS waits for its turn: it reads records that it does not name, which cannot be checked by versions" {
		t.Errorf("KEYS was held since %q", why)
	}
	if why := town.written[0][1].Timeline.InTurn; why != "what mixed (inline 1) #1 gives on this input was not known" {
		t.Errorf("the first time work was not ahead since %q", why)
	}
}
