package test

import (
	"encoding/json"
	"net/http"
	"testing"

	"forerun.dev/forerun/test/server"
)

// putComposition deploys a composer document.
func putComposition(t *testing.T, c *server.Client, name, document string, parameters ...any) {
	t.Helper()
	if err := c.Put(t.Context(), name, map[string]any{
		"exec":        map[string]any{"kind": "nodejs:default", "code": "// compiled from the annotation"},
		"annotations": []any{map[string]any{"key": "conductor", "value": json.RawMessage(document)}},
		"parameters":  parameters,
	}); err != nil {
		t.Fatal(err)
	}
}

// TestAsyncCombinator begins a part of a composition as an activation of its own, and finds its record.
func TestAsyncCombinator(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	putPython(t, c, map[string]string{"next": "def main(args):\n    return {'n': args['n'] + 1, 'p': args['p']}\n"})
	putComposition(t, c, "apart", `{"type":"async","components":[{"type":"action","name":"/_/next"},{"type":"action","name":"/_/next"}]}`,
		map[string]any{"key": "p", "value": "inherited"})
	r := invoke(t, c, "apart", map[string]int{"n": 1})
	var result struct{ Method, ActivationID, SessionID string }
	decode(t, r.Response.Result, &result)
	if result.Method != "async" || result.SessionID != r.ActivationID || len(r.Logs) != 0 {
		t.Errorf("it gave %s with the children %q", r.Response.Result, r.Logs)
	}
	var apart *server.Record
	eventually(t, func() (over bool) {
		var err error
		apart, err = c.Activation(t.Context(), result.ActivationID)
		return err == nil
	})
	equalJSON(t, apart.Response.Result, `{"n":3,"p":"inherited"}`)
	if apart.Name != "apart" || apart.Cause != r.ActivationID || len(apart.Logs) != 2 {
		t.Errorf("what it began is %+v", apart)
	}
}

// TestClientsThatAProcessKeeps calls the API with a client that a process made for an earlier activation, as composer's conductors do.
func TestClientsThatAProcessKeeps(t *testing.T) {
	t.Parallel()
	needNode(t)
	c := client(t, start(t, server.Options{}))
	putPython(t, c, map[string]string{"next": "def main(args):\n    return {'n': args['n'] + 1}\n"})
	put(t, c, "keeps", map[string]any{"exec": map[string]any{"kind": "nodejs:default", "code": `
const openwhisk = require('openwhisk')
let client, key
async function main ({ n }) {
  key = key || process.env.__OW_API_KEY
  client = client || openwhisk()
  const record = await client.actions.invoke({ name: 'next', blocking: true, params: { n } })
  return { next: record.activationId, n: record.response.result.n, key, first: key === process.env.__OW_API_KEY }
}`}})
	var first, second struct {
		Next, Key string
		N         int
		First     bool
	}
	decode(t, invoke(t, c, "keeps", map[string]int{"n": 1}).Response.Result, &first)
	r := invoke(t, c, "keeps", map[string]int{"n": 2})
	decode(t, r.Response.Result, &second)
	if second.First || second.N != 3 || second.Key != first.Key {
		t.Fatalf("the second time: %s", r.Response.Result)
	}
	if called := stored(t, c, second.Next); called.Cause != r.ActivationID {
		t.Errorf("its cause is %q, not the second activation", called.Cause)
	}
	c.Auth = first.Key
	if status, body, err := c.Do(t.Context(), http.MethodGet, "actions", nil); err != nil || status != http.StatusUnauthorized {
		t.Errorf("outside, the first key is answered %d %s (%v)", status, body, err)
	}
}
