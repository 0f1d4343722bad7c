package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"forerun.dev/forerun/test/server"
)

// sdkFunctions call others with the client that functions have at hand.
var sdkFunctions = map[string]string{
	"double": "def main(args):\n    print('doubling')\n    return {'n': args['n'] * 2}\n",
	"tell":   "import os\n\ndef main(args):\n    return {'id': os.environ['__OW_ACTIVATION_ID']}\n",
	"fail":   "def main(args):\n    return {'error': 'sold out'}\n",
	"caller": `
import os
import requests as real

import openwhisk
from openwhisk import http1, requests

def main(args):
    try:
        openwhisk.invoke("fail")
    except openwhisk.ActionFailed as error:
        failed = error
    try:
        openwhisk.invoke("absent")
    except openwhisk.NotFound as error:
        absent = str(error)
    url = os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/actions/double"
    options = {"params": {"blocking": "true", "result": "true"}, "json": {"n": args["n"]}, "auth": tuple(os.environ["__OW_API_KEY"].split(":"))}
    same = [requests.post(url, **options).json(), requests.post("/api/v1/namespaces/_/actions/absent").status_code]
    same.append(real.post(url, **options).json())
    (kept,) = http1._pool._idle.values()
    record = openwhisk.Client().activations.get(failed.activation_id)
    return {"n": openwhisk.invoke("double", {"n": args["n"]})["n"], "later": openwhisk.invoke("double", {"n": 4}, blocking=False),
        "failed": str(failed), "failed_id": failed.activation_id, "record": record["response"]["result"], "absent": absent, "same": same, "connections": len(kept)}
`,
}

// TestPythonSDKInFunctions: a function calls others by name, with nothing set up.
func TestPythonSDKInFunctions(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, sdkFunctions)
	r := invoke(t, c, "caller", map[string]int{"n": 21})
	var got struct {
		N                     int
		Later, Failed, Absent string
		FailedID              string `json:"failed_id"`
		Record                struct{ Error string }
		Same                  json.RawMessage
		Connections           int
	}
	if err := json.Unmarshal(r.Response.Result, &got); err != nil || got.N != 42 {
		t.Fatalf("the caller returned %s (%v), logs %q", r.Response.Result, err, r.Logs)
	}
	if string(got.Same) != `[{"n":42},404,{"n":42}]` || got.Connections != 1 {
		t.Errorf("openwhisk.requests and requests: %s, %d connections", got.Same, got.Connections)
	}
	if want := "fail failed: sold out; activations.logs('" + got.FailedID + "') has what it wrote."; got.Failed != want {
		t.Errorf("the failed action is told as %q, not %q", got.Failed, want)
	}
	if got.Record.Error != "sold out" {
		t.Errorf("the failed action's record, read by its caller, holds %q", got.Record.Error)
	}
	if want := "POST actions/absent was refused (404): The requested resource does not exist; check the name and the namespace, or deploy it first."; got.Absent != want {
		t.Errorf("an absent action is told as %q, not %q", got.Absent, want)
	}
	if callee := stored(t, c, got.FailedID); callee.Cause != r.ActivationID {
		t.Errorf("the callee's record names %q as its cause; the caller was %s", callee.Cause, r.ActivationID)
	}
	if got.Later == "" {
		t.Error("an invocation that is not waited for has no id")
	}
}

// TestPythonSDKOutside: a program reads the settings of wsk, and calls.
func TestPythonSDKOutside(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; make test installs it")
	}
	s := start(t, server.Options{})
	putPython(t, client(t, s), sdkFunctions)
	cmd := exec.CommandContext(t.Context(), python, "-B", "-c", `
import json, openwhisk
client = openwhisk.Client()
result = openwhisk.invoke("double", {"n": 21})
ids = [openwhisk.invoke("tell", {}, idempotency_key=key)["id"] for key in ("order 1", "order 1", "order 2")]
last = client.activations.list(name="double", limit=1)[0]["activationId"]
print(json.dumps({"result": result, "actions": sorted(a["name"] for a in client.actions.list()),
    "last": client.activations.result(last), "ran": [ids.index(id) for id in ids], "line": client.activations.logs(last)[0].split()[-1]}))
`)
	cmd.Env = append(os.Environ(), "PYTHONPATH=../sdk/python", "WSK_CONFIG_FILE="+s.Props())
	out, err := cmd.CombinedOutput()
	const want = `{"result": {"n": 42}, "actions": ["caller", "double", "fail", "tell"], "last": {"n": 42}, "ran": [0, 0, 2], "line": "doubling"}` + "\n"
	if err != nil || string(out) != want {
		t.Errorf("the program printed %s (%v), not %s", out, err, want)
	}
}

// TestNodeSDK runs the client's own tests.
func TestNodeSDK(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; make test installs it")
	}
	reportNode(t, "../sdk/node/tests/forerun.test.js")
}

// nodeCaller calls others with the client that Node functions have at hand.
const nodeCaller = `
const { ActionFailed, Client, NotFound, invoke } = require('forerun')

exports.main = async ({ n }) => {
  const failed = await invoke('fail').catch(error => error)
  const absent = await invoke('absent').catch(error => error)
  const { id } = await invoke('tell', {}, { idempotencyKey: 'order ' + n })
  return {
    ...await invoke('double', { n }),
    kinds: [failed instanceof ActionFailed, absent instanceof NotFound],
    failed_id: failed.activationId,
    record: (await new Client().activations.get(failed.activationId)).response.result,
    later: await invoke('double', { n: 4 }, { blocking: false }),
    repeated: (await invoke('tell', {}, { idempotencyKey: 'order ' + n })).id === id
  }
}`

// TestNodeSDKInFunctions: as in Python; the token of each activation is its own, though one process serves several.
func TestNodeSDKInFunctions(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("node is not installed; make test installs it")
	}
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, sdkFunctions)
	exec := map[string]any{"kind": "nodejs:default", "code": nodeCaller}
	if err := c.Put(t.Context(), "caller", map[string]any{"exec": exec}); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		r := invoke(t, c, "caller", map[string]int{"n": n})
		var got struct {
			N        int
			Kinds    []bool
			Later    string
			Repeated bool
			FailedID string `json:"failed_id"`
			Record   struct{ Error string }
		}
		err := json.Unmarshal(r.Response.Result, &got)
		if err != nil || got.N != 2*n || len(got.Kinds) != 2 || !got.Kinds[0] || !got.Kinds[1] || got.Later == "" || !got.Repeated || got.Record.Error != "sold out" {
			t.Fatalf("the caller returned %s (%v), logs %q", r.Response.Result, err, r.Logs)
		}
		if callee := stored(t, c, got.FailedID); callee.Cause != r.ActivationID {
			t.Errorf("the callee's record names %q as its cause; the caller was %s", callee.Cause, r.ActivationID)
		}
	}
}
