package test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// repeatable invokes an action with an idempotency key, and returns status, activation id and body.
func repeatable(t *testing.T, c *server.Client, path, key, body string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", c.URL+"/api/v1/namespaces/_/actions/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	user, password, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, password)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	answer, text := send(t, r)
	return answer.StatusCode, answer.Header.Get("X-Openwhisk-Activation-Id"), text
}

// TestIdempotencyKeySurvivesCrash kills the server after one invocation and in the middle of another.
func TestIdempotencyKeySurvivesCrash(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{
		"random": "import uuid\n\ndef main(args):\n    return {'id': str(uuid.uuid4())}\n",
		"wait":   "import time\n\ndef main(args):\n    time.sleep(600)\n    return {}\n",
	})
	const over, waited = "random?blocking=true&result=true", "wait?blocking=true"
	_, id, result := repeatable(t, c, over, "k", `{"n":1}`)
	if _, again, repeated := repeatable(t, c, over, "k", `{"n":1}`); again != id || repeated != result {
		t.Errorf("the repeat is %s %s, not %s %s", again, repeated, id, result)
	}
	status, cut, body := repeatable(t, c, "wait", "k", "{}")
	if status != http.StatusAccepted {
		t.Fatalf("%d %s", status, body)
	}
	s.Kill()
	c.URL = start(t, server.Options{Data: s.Options.Data}).URL
	if _, again, repeated := repeatable(t, c, over, "k", `{"n":1}`); again != id || repeated != result {
		t.Errorf("after the crash the repeat is %s %s, not %s %s", again, repeated, id, result)
	}
	if status, _, body := repeatable(t, c, over, "k", `{"n":2}`); status != http.StatusUnprocessableEntity || !strings.Contains(body, "another payload") {
		t.Errorf("another payload: %d %s", status, body)
	}
	status, again, body := repeatable(t, c, waited, "k", "{}")
	var record server.Record
	if err := json.Unmarshal([]byte(body), &record); err != nil || again != cut || status != http.StatusInternalServerError ||
		!strings.Contains(string(record.Response.Result), "stopped before the activation ended") {
		t.Errorf("what was cut off is answered %d %s %s; it was %s", status, again, body, cut)
	}
}
