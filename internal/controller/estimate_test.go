package controller

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestEstimate(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name        string
		ran, alone  time.Duration
		speculative bool
		want        estimate
	}{
		{"slowed down by others", 90 * ms, 20 * ms, true, estimate{sum: 20 * ms}},
		{"slowed down by others, in its turn", 90 * ms, 20 * ms, false, estimate{sum: 20 * ms}},
		{"less to do than usually", 5 * ms, 20 * ms, true, estimate{sum: 5 * ms}},
		{"never ran by itself", 90 * ms, 0, true, estimate{unknown: true}},
		{"runs by itself for the first time", 90 * ms, 0, false, estimate{sum: 90 * ms}},
	} {
		var x estimate
		if x.add(c.ran, c.alone, c.speculative); x != c.want {
			t.Errorf("%s: %+v, not %+v", c.name, x, c.want)
		}
	}
}

// TestEstimated: a sequence that ran speculatively is compared with what its functions took in order, however long they took beside each
// other. A workflow with branches, or with calls at the same time, is not compared.
func TestEstimated(t *testing.T) {
	const slow, usual = 7 * time.Second, time.Second
	for _, kind := range []string{"sequence", "parallel", "calls"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				town := newAheadTown(t)
				takes := usual
				step := func(*forerun.Run, map[string]any) (any, error) {
					time.Sleep(takes)
					return map[string]any{"n": 1}, nil
				}
				a, b := town.function("a", step), town.function("b", step)
				whole := town.deploy("whole", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
				switch kind {
				case "parallel":
					document := `{"type":"sequence","components":[{"type":"parallel","components":[{"type":"action","name":"/_/a"},{"type":"action","name":"/_/b"}]},{"type":"action","name":"/_/b"}]}`
					whole = town.deploy("forked", forerun.Exec{Kind: "nodejs:default"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage(document)})
				case "calls":
					whole = town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
						for _, callee := range []*forerun.Action{a, b} {
							call := town.Invoke(Request{Namespace: "ns", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
							defer func() { <-call.Done() }()
						}
						return map[string]any{}, nil
					})
				}
				var tally forerun.Tally
				for range 3 { // a caller is known as one from the second time on
					_, tally = town.invokeAhead(whole, `{}`)
				}
				takes = slow
				_, tally = town.invokeAhead(whole, `{}`)
				switch {
				case kind != "sequence" && tally.InOrder != 0:
					t.Errorf("it is compared with %v", tally.InOrder)
				case kind == "sequence" && (tally.Used != 1 || tally.InOrder < 2*usual || tally.InOrder > 3*usual):
					t.Errorf("%d ran speculatively, and in order they take %v, not about %v", tally.Used, tally.InOrder, 2*usual)
				}
			})
		})
	}
}
