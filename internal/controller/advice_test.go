package controller

import (
	"encoding/json"
	"fmt"
	"testing"

	"forerun.dev/forerun/internal/behaviour"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestAdvice: the first executions of an action without an annotation are looked at, and all of an annotated one. No result of the first is
// kept because of that, and its writes are in the store.
func TestAdvice(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			plain := town.function("plain", func(run *forerun.Run, _ map[string]any) (any, error) {
				command := []string{"INCR", "count"}
				if run.Bridged {
					_, err := town.do(run, command...)
					return map[string]any{}, err
				}
				town.write(t, command...)
				return map[string]any{}, nil
			})
			annotated, _ := town.counted("annotated", town.reading("k"))
			const times = 2 * behaviour.WatchFirst
			for n := range times {
				town.ask(plain)
				town.ask(annotated, func(r *Request) { r.Input = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n%4)) })
			}
			list := town.Advice(t.Context(), "ns", "")
			if len(list) != 2 {
				t.Fatalf("there is advice for %d actions", len(list))
			}
			if a := list[0]; !a.Annotated || a.Class != behaviour.Stateful || a.Count != times || a.Followed != 4 || !a.Safe() || len(a.Unneeded) != 1 {
				t.Errorf("annotated: %+v", a)
			}
			if a := list[1]; a.Annotated || a.Class != behaviour.Stateful || a.Count != times || a.Followed != behaviour.WatchFirst || a.Safe() || a.Why.Record != "count" {
				t.Errorf("plain: %+v", a)
			}
			if one := town.Advice(t.Context(), "ns", "/ns/plain"); len(one) != 1 || one[0].Home != list[1].Home {
				t.Errorf("of one action: %+v", one)
			}
			if rows := town.Memo().Rows; rows != 4 {
				t.Errorf("%d rows are kept", rows)
			}
			if reply, _, err := town.State.Do(t.Context(), state.Command{Space: "ns", Args: [][]byte{[]byte("GET"), []byte("count")}}); err != nil || string(reply.Text) != fmt.Sprint(times) {
				t.Errorf("it counted to %s, %v", reply.Text, err)
			}
			town.update("plain")
			town.sweep()
			if left := town.Advice(t.Context(), "ns", "/ns/plain"); len(left) != 0 {
				t.Errorf("advice for an old deployment stays: %+v", left)
			}
		})
	}
}
