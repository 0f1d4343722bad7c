package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// The conductor of OpenWhisk's own tests: what it is told is its continuation.
const conductorCode = `
def main(args):
    if "error" in args:
        return args
    said = {key: args.pop(key, None) for key in ("action", "state", "params")}
    said["params"] = {**args, **(said["params"] or {})}
    return {key: value for key, value in said.items() if value is not None}
`

const stepCode = `
import time
def main(args):
    time.sleep(args.pop("seconds", 0))
    if not isinstance(args.get("n"), int):
        return {"error": "missing parameter"}
    args["n"] += 1
    return args
`

// conductorTown is a server with OpenWhisk's conductor, a step of another memory limit and an echo, which all are conductors but the step.
func conductorTown(t *testing.T) *server.Client {
	t.Helper()
	c := client(t, start(t, server.Options{}))
	put := func(name, code string, memory int, conductor any) {
		t.Helper()
		err := c.Put(context.WithoutCancel(t.Context()), name, map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": code},
			"limits":      map[string]any{"memory": memory},
			"annotations": []any{map[string]any{"key": "conductor", "value": conductor}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	put("conductor", conductorCode, 256, true)
	put("echo", "def main(args):\n    return args\n", 256, "yes")
	put("step", stepCode, 257, false)
	return c
}

// checkConductor checks what OpenWhisk's tests check in the record of a conductor action: its children in order, whose cause it
// is, with the sum of their durations and the largest of their limits. It returns the names of the children.
func checkConductor(t *testing.T, c *server.Client, r *server.Record, topmost bool) (names []string) {
	t.Helper()
	var total int64
	memory := 0
	for _, id := range r.Logs {
		child := stored(t, c, id)
		if child.Cause != r.ActivationID || string(child.Annotation("causedBy")) != `"sequence"` || child.Annotation("waitTime") == nil {
			t.Errorf("the child %s %s has the cause %q and the annotations %s", child.Name, id, child.Cause, child.Annotations)
		}
		total += child.Duration
		memory = max(memory, memoryOf(t, child))
		names = append(names, child.Name)
	}
	if difference := r.Duration - total; difference < -int64(len(names)) || difference > int64(len(names)) { // each is rounded
		t.Errorf("its duration is %d; its children's sum is %d", r.Duration, total)
	}
	if own := memoryOf(t, r); own != memory {
		t.Errorf("its memory limit is %d; the largest of its children's is %d", own, memory)
	}
	for key, want := range map[string]string{"conductor": "true", "kind": `"sequence"`, "topmost": strconv.FormatBool(topmost)} {
		if got := string(r.Annotation(key)); got != want {
			t.Errorf("its annotation %s is %s, not %s", key, got, want)
		}
	}
	return names
}

func memoryOf(t *testing.T, r *server.Record) int {
	t.Helper()
	var limits struct{ Memory int }
	decode(t, r.Annotation("limits"), &limits)
	return limits.Memory
}

// TestConductors runs what OpenWhisk's own tests of conductor actions run (WskConductorTests.scala).
func TestConductors(t *testing.T) {
	t.Parallel()
	c := conductorTown(t)
	for i, test := range []struct {
		action, input, want string
		children            string
	}{
		{"echo", `{"payload":"x","state":"x"}`, `{"payload":"x","state":"x"}`, "echo"},
		{"echo", `{"error":"x"}`, `{"error":"x"}`, "echo"},
		{"echo", `{"params":{"payload":"x"},"result":"x","state":"x"}`, `{"payload":"x"}`, "echo"},
		{"echo", `{"params":7}`, `{"value":7}`, "echo"},
		{"echo", `{"payload":"x","action":"invalid#Action"}`, `{"error":"Failed to parse action name from json value \"invalid#Action\" during composition."}`, "echo echo"},
		{"echo", `{"action":{"a":1}}`, `{"error":"Failed to parse action name from json value {\"a\":1} during composition."}`, "echo echo"},
		{"echo", `{"payload":"x","action":"missing"}`, `{"error":"Failed to resolve action with name 'guest/missing' during composition."}`, "echo echo"},
		{"echo", `{"action":"/other/pkg/secret"}`, `{"error":"Failed entitlement check for action with name 'other/pkg/secret' during composition."}`, "echo echo"},
		{"conductor", `{"action":"step","n":1}`, `{"n":2}`, "conductor step conductor"},
		{"conductor", `{"action":"/_/step"}`, `{"error":"missing parameter"}`, "conductor step conductor"},
		{"conductor", `{"action":"step","state":{"witness":42},"n":1}`, `{"n":2,"witness":42}`, "conductor step conductor"},
		{"conductor", `{"action":"step","state":9,"n":1}`, `{"n":2}`, "conductor step conductor"},
		{"conductor", `{"action":"step","state":{"action":"step"},"n":1}`, `{"n":3}`, "conductor step conductor step conductor"},
		{"conductor", `{"action":"conductor","params":{"action":"step"},"n":1}`, `{"n":2}`, "conductor conductor conductor"},
		{"conductor", `{"action":"conductor","state":{"action":"step"},"params":{"action":"step"},"n":1}`, `{"n":3}`, "conductor conductor conductor step conductor"},
		{
			"conductor", `{"action":"conductor","state":{"action":"step"},"params":{"action":"conductor","state":{"action":"step"},"params":{"action":"step"}},"n":1}`,
			`{"n":4}`, "conductor conductor conductor step conductor",
		},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := invoke(t, c, test.action, json.RawMessage(test.input))
			equalJSON(t, r.Response.Result, test.want)
			if failed := strings.Contains(test.want, `"error"`); r.Response.Success == failed {
				t.Errorf("its status is %s", r.Response.Status)
			}
			if names := checkConductor(t, c, r, true); strings.Join(names, " ") != test.children {
				t.Errorf("it ran %v; want %s", names, test.children)
			}
			for _, id := range r.Logs {
				if child := stored(t, c, id); child.Annotation("conductor") != nil {
					checkConductor(t, c, child, false)
				}
			}
		})
	}
}

// TestConductorLimits runs endless compositions: 50 components and twice as many conductors and one, those of conductors within
// counted in.
func TestConductorLimits(t *testing.T) {
	t.Parallel()
	c := conductorTown(t)
	putPython(t, c, map[string]string{"nop": "def main(args):\n    return args\n"})
	put := func(name, code string) {
		t.Helper()
		if err := c.Put(t.Context(), name, map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": code},
			"annotations": []any{map[string]any{"key": "conductor", "value": true}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	put("asks", "def main(args):\n    return {'params': args} if 'error' in args else {'action': 'nop', 'state': {'kept': 1}}\n")
	put("insists", "def main(args):\n    return {'action': 'nop'}\n")
	put("nests", "def main(args):\n    return {'action': 'nests'}\n")
	const tooMany = `"error":"Too many actions in the composition."`
	for name, want := range map[string]struct {
		result, status  string
		children, steps int // all of its children; those that are no conductor
	}{
		"asks":    {`{` + tooMany + `,"kept":1}`, "success", 102, 50},
		"insists": {`{` + tooMany + `}`, "application error", 151, 50},
		"nests":   {`{` + tooMany + `}`, "application error", 2, 0},
	} {
		r := invoke(t, c, name, nil)
		equalJSON(t, r.Response.Result, want.result)
		if r.Response.Status != want.status {
			t.Errorf("%s: %s; want %s", name, r.Response.Status, want.status)
		}
		names := checkConductor(t, c, r, true)
		children := len(names)
		if steps := children - len(slices.DeleteFunc(names, func(n string) bool { return n == "nop" })); children != want.children || steps != want.steps {
			t.Errorf("%s has %d children, %d of them steps; want %d and %d", name, children, steps, want.children, want.steps)
		}
	}
}

// TestConductorIsNotWaitedFor takes the id of a composition at once, and finds its record.
func TestConductorIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	c := conductorTown(t)
	for _, how := range []string{"", "?blocking=true&timeout=1"} {
		status, body, err := c.Do(t.Context(), http.MethodPost, "actions/conductor"+how, map[string]any{"action": "step", "n": 1, "seconds": 0.2}) // longer than the client waits
		if err != nil || status != http.StatusAccepted {
			t.Fatalf("%s: %d %s (%v)", how, status, body, err)
		}
		var answer struct{ ActivationID string }
		decode(t, body, &answer)
		var r *server.Record
		eventually(t, func() bool {
			r, err = c.Activation(t.Context(), answer.ActivationID)
			return err == nil
		})
		equalJSON(t, r.Response.Result, `{"n":2}`)
		checkConductor(t, c, r, true)
	}
}
