package controller

import (
	"encoding/json"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// isStalled tells whether something that a function of an activation's invocation asked for waits for its turn.
func (t *town) isStalled(id forerun.ActivationID) bool {
	e := t.executionOf(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.slots {
		if s.record.Timeline.Stalled != nil {
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
	for i, want := range []string{"", "known_output(mixed (inline 1) #1)", "known_output(work #2)"} {
		if x := line(i); x.Slot != i+1 || x.Predicted.String() != want || (x.Inline == 1) != (i == 0) {
			t.Errorf("of function %d it says %+v", i, x)
		}
	}
	if why := line(2).Stalled.String(); why != "reads_unnamed(KEYS)" {
		t.Errorf("KEYS was held since %q", why)
	}
	if why := town.written[0][1].Timeline.InTurn.String(); why != "unknown_output(mixed (inline 1) #1)" {
		t.Errorf("the first time work was not ahead since %q", why)
	}
}

// TestWaited: for what a function called at the same time it waited once, so that what it took itself is known.
func TestWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		callee := town.function("callee", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(time.Second)
			return map[string]any{}, nil
		})
		caller := town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
			time.Sleep(time.Second)
			var calls []*Invocation
			for range 3 {
				calls = append(calls, town.Invoke(Request{Namespace: "ns", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true}))
			}
			for _, call := range calls {
				<-call.Done()
			}
			return map[string]any{}, nil
		})
		line := town.invoke(caller, `{}`).Timeline
		if ran := line.Finished.Sub(line.Launched); ran-line.Waited < time.Second || ran-line.Waited > 3*time.Second/2 {
			t.Errorf("of %v it waited for %v", ran, line.Waited)
		}
	})
}

// TestLeftBehind: a call that its caller left behind goes on after the client has its answer, and is counted, too.
func TestLeftBehind(t *testing.T) {
	town := newAheadTown(t)
	var second atomic.Bool
	ahead, answered := make(chan struct{}), make(chan struct{})
	town.function("a", func(*forerun.Run, map[string]any) (any, error) {
		if second.Load() {
			<-answered
		}
		return map[string]any{"n": second.Load()}, nil
	})
	town.function("pure", add("p", 1)).Annotations = []forerun.KeyValue{{Key: "pure-function", Value: json.RawMessage("true")}}
	town.function("c", func(_ *forerun.Run, input map[string]any) (any, error) {
		if second.Load() && input["n"] == false {
			close(ahead)
		}
		return input, nil
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/pure", "/ns/c"}})
	var left *Invocation
	caller := town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
		left = town.Invoke(Request{Namespace: "ns", Action: seq, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
		if second.Load() {
			<-ahead
		}
		return map[string]any{}, nil
	})
	for range 2 { // the first shows that it calls
		town.invokeAhead(caller, `{}`)
		<-left.Done()
	}
	town.written = nil // pure was skipped in the second
	second.Store(true)
	_, tally := town.invokeAhead(caller, `{}`)
	close(answered)
	<-left.Done()
	var sum forerun.Tally
	for _, r := range slices.Concat(town.written...) {
		if r.Tally != nil {
			sum.Early, sum.Used, sum.Squashed, sum.Skipped = sum.Early+r.Tally.Early, sum.Used+r.Tally.Used, sum.Squashed+r.Tally.Squashed, sum.Skipped+r.Tally.Skipped
		}
	}
	if tally.Early != 1 || sum.Early != 1 || sum.Squashed != 1 || sum.Used != 0 || sum.Skipped != 0 {
		t.Errorf("the client is told %+v; the records of all say %+v", tally, sum)
	}
}

// TestLate: a slot that was asked for speculatively and had no sandbox until its turn, or until it was squashed, is not counted as speculative. How long
// it took in its turn is known.
func TestLate(t *testing.T) {
	town := newAheadTown(t)
	town.late = true
	gives := 1
	town.function("a", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"n": gives}, nil })
	town.function("b", add("b", 1))
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	for i, want := range []struct {
		gives      int
		asked      bool
		squashed   int
		whyNoGuess string
	}{{1, false, 0, "unknown_output(a #1)"}, {1, true, 0, ""}, {2, false, 1, "other_output(a #1)"}} {
		gives = want.gives
		_, tally := town.invokeAhead(seq, `{}`)
		if tally.String() != "early=0, used=0, squashed=0, skipped=0" || tally.Depth != 0 || len(tally.Kinds) != 0 {
			t.Errorf("invocation %d: %+v", i, tally)
		}
		b, whole := town.written[i][1].Timeline, town.written[i][2]
		if b.Speculative != want.asked || (b.Predicted != nil) != want.asked || b.InTurn.String() != want.whyNoGuess || b.Launched.IsZero() || !b.Launched.Equal(b.Promoted) {
			t.Errorf("invocation %d, b: %+v", i, b)
		}
		switch {
		case (whole.Tally != nil) != (want.squashed > 0):
			t.Errorf("invocation %d is recorded with %+v", i, whole.Tally)
		case want.squashed > 0:
			if slots := whole.Tally.Slots; len(slots) != want.squashed || !slots[0].Timeline.Launched.IsZero() || slots[0].Timeline.Kind != forerun.WrongInput {
				t.Errorf("invocation %d: %+v", i, slots)
			}
		}
	}
	if h := town.tables.tenant("ns").habit(town.digests.Deployed(town.actions["/ns/b"])); h.ahead > 0 || h.squashed > 0 || h.took == 0 {
		t.Errorf("of b is known %+v", h)
	}
}
