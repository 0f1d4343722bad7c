package test

import (
	"encoding/json"
	"net/http"
	"testing"

	"forerun.dev/forerun/test/server"
)

// conductor runs increment until n is 3, and says what it heard of an error.
const conductor = `
def main(args):
    if "error" in args:
        return {"params": {"heard": args["error"], "asked": args["asked"]}}
    asked = args.pop("asked", 0) + 1
    if args["n"] < 3:
        return {"action": args.get("next", "increment"), "params": args, "state": {"asked": asked}}
    return {"params": {"n": args["n"], "asked": asked}}
`

// TestConductorAction runs a conductor action by OpenWhisk's protocol (docs/conductors.md).
func TestConductorAction(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"increment": "def main(args):\n    return {'n': args['n'] + 1}\n"})
	body := map[string]any{
		"exec":        map[string]string{"kind": "python:3", "code": conductor},
		"annotations": []map[string]any{{"key": "conductor", "value": true}},
	}
	if status, answer, err := c.Do(t.Context(), http.MethodPut, "actions/triple", body); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	r := invoke(t, c, "triple", map[string]int{"n": 1})
	if got := string(r.Response.Result); got != `{"asked":3,"n":3}` || len(r.Logs) != 5 {
		t.Errorf("the result is %s, the components %q", got, r.Logs)
	}
	var asked, ran int
	for _, id := range r.Logs {
		component := stored(t, c, id)
		if component.Cause != r.ActivationID {
			t.Errorf("the cause of %s is %q", component.Name, component.Cause)
		}
		if component.Name == "triple" {
			asked++
		} else {
			ran++
		}
	}
	if asked != 3 || ran != 2 {
		t.Errorf("the conductor was asked %d times, the action ran %d times", asked, ran)
	}
	r = invoke(t, c, "triple", map[string]any{"n": 1, "next": "missing"})
	var wrong struct {
		Heard string
		Asked int
	}
	if err := json.Unmarshal(r.Response.Result, &wrong); err != nil || wrong.Asked != 1 ||
		wrong.Heard != "Failed to resolve action with name 'guest/missing' during composition." {
		t.Errorf("of a missing action it heard %s", r.Response.Result)
	}
}
