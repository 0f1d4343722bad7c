package test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/test/server"
)

// phases is a function that says its phases with the package that functions have at hand, and may die in one.
const phases = `
import hashlib, os, time
from openwhisk import microtask

@microtask("sort", cpu=1)
def sort(n):
    for _ in range(n): hashlib.sha256(bytes(100_000)).digest()
    return n

def main(args):
    with microtask("read", cpu=0.1):
        time.sleep(0.005)
        with microtask("parse"):
            if args.get("dies"): os._exit(1)
        refused = []
        for cpu in (0, -1, float("nan"), 1e9, 0.01):
            try:
                microtask("read", cpu=cpu)
            except ValueError as error:
                refused.append(str(error))
    n = sort(args["n"])
    with microtask("write", cpu=0.1):
        time.sleep(0.005)
    return {"n": n, "refused": len(refused)}
`

// TestMicrotasks has functions take turns by phases. Some functions die in a phase, and some name invalid ones. Afterwards no slabs are in use.
func TestMicrotasks(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--schedule", "microtask"}})
	c := client(t, s)
	put(t, c, "phases", map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": phases},
		"annotations": []map[string]any{{"key": "microtasks", "value": map[string]any{"write": 0.0625}}},
	})
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			r, err := c.Invoke(t.Context(), "phases", map[string]any{"n": 1 + i, "dies": i%4 == 3})
			want := fmt.Sprintf(`{"n":%d,"refused":5}`, 1+i)
			switch {
			case err != nil:
				t.Error(err)
			case i%4 == 3:
				if r.Response.Success {
					t.Errorf("one that died succeeded: %s", r.Response.Result)
				}
			case string(r.Response.Result) != want:
				t.Errorf("%s; want %s; logs %q", r.Response.Result, want, r.Logs)
			}
		})
	}
	group.Wait()
	eventually(t, func() bool {
		return gauge(t, s, "forerun_slabs_in_use") == "0" && gauge(t, s, "forerun_waiting_phases") == "0"
	})
	for _, value := range []any{"read", map[string]any{"read": 0}, map[string]any{"read": 0.01}, map[string]any{"a b": 1}, map[string]any{"end": 1}} {
		err := c.Put(t.Context(), "phases", map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": phases},
			"annotations": []map[string]any{{"key": "microtasks", "value": value}},
		})
		if !strings.Contains(fmt.Sprint(err), "400") {
			t.Errorf("%v: %v", value, err)
		}
	}
}
