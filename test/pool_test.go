package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// TestBurstOfNewActions calls two hundred actions for the first time at once, on a server that has room for twenty sandboxes.
func TestBurstOfNewActions(t *testing.T) {
	t.Parallel()
	const actions = 200
	s := start(t, server.Options{Args: room(20)})
	c := s.Client(actions)
	defer c.Close()
	for i := range actions {
		putPython(t, c, map[string]string{fmt.Sprint("new-", i): fmt.Sprintf("def main(args):\n    return {'i': %d}\n", i)})
	}
	ids := make([]string, actions)
	var calls sync.WaitGroup
	for i := range actions {
		calls.Go(func() {
			var told struct{ ActivationID string }
			code, answer, err := c.Do(t.Context(), http.MethodPost, fmt.Sprint("actions/new-", i), nil)
			if err = errors.Join(err, json.Unmarshal(answer, &told)); err != nil || code != http.StatusAccepted {
				t.Errorf("action %d: %d %s %v", i, code, answer, err)
			}
			ids[i] = told.ActivationID
		})
	}
	calls.Wait()
	for i, id := range ids {
		equalJSON(t, awaitRecord(t, c, id).Response.Result, fmt.Sprintf(`{"i":%d}`, i))
	}
}

// awaitRecord waits, as long as the test may last, for the end of an activation.
func awaitRecord(t *testing.T, c *server.Client, id string) *server.Record {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		r, err := c.Activation(t.Context(), id)
		if err == nil {
			return r
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(err)
		}
	}
}

// TestScaleToZero: a server with nothing to do has no sandbox, and makes one when there is something.
func TestScaleToZero(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--keep-alive", "100ms"}})
	c := client(t, s)
	putPython(t, c, map[string]string{"echo": echoes})
	for range 2 {
		equalJSON(t, invoke(t, c, "echo", map[string]int{"a": 1}).Response.Result, `{"a":1}`)
		eventually(t, func() bool {
			for _, helper := range childrenOf(s.PID()) {
				if len(childrenOf(helper)) > 0 {
					return false
				}
			}
			return gauge(t, s, "forerun_sandboxes_idle") == "0"
		})
	}
}
