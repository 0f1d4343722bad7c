package test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/test/server"
)

// operate runs `forerun tenant` and returns what it printed.
func operate(t *testing.T, s *server.Server, args ...string) string {
	t.Helper()
	out, err := tenantCommand(t, s, args...)
	if err != nil {
		t.Fatalf("forerun tenant %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func tenantCommand(t *testing.T, s *server.Server, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"tenant", "--operator", filepath.Join(s.Options.Data, "operator")}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return stderr.String(), err
	}
	return strings.TrimSpace(string(out)), nil
}

// as is a client with another key.
func as(t *testing.T, s *server.Server, auth string) *server.Client {
	t.Helper()
	c := client(t, s)
	c.Auth = auth
	return c
}

// ask sends a request to a path below namespaces/.
func ask(t *testing.T, c *server.Client, method, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, c.URL+"/api/v1/namespaces/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	user, key, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, text := send(t, r)
	return answer.StatusCode, text
}

// status sends a request to a path of the client's own namespace.
func status(t *testing.T, c *server.Client, method, path string, body any) (int, string) {
	t.Helper()
	code, answer, err := c.Do(t.Context(), method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	return code, string(answer)
}

const echoes = "def main(args):\n    return args\n"

func TestTenantsAreApart(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada := as(t, s, operate(t, s, "create", "ada"))
	bob := as(t, s, operate(t, s, "create", "bob"))
	putPython(t, ada, map[string]string{"secret": echoes})
	r := invoke(t, ada, "secret", map[string]int{"n": 1})
	const hello = `{"exec":{"kind":"python:3","code":"x"}}`
	for _, c := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "_/actions/secret", "", 404},
		{"GET", "ada/actions/secret", "", 403},
		{"GET", "ada/actions", "", 403},
		{"POST", "ada/actions/secret?blocking=true", "{}", 403},
		{"PUT", "ada/actions/secret?overwrite=true", hello, 403},
		{"DELETE", "ada/actions/secret", "", 403},
		{"GET", "_/activations/" + r.ActivationID, "", 404},
		{"GET", "_/activations/" + r.ActivationID + "/logs", "", 404},
		{"GET", "_/activations/" + r.ActivationID + "/result", "", 404},
		{"GET", "ada/activations/" + r.ActivationID, "", 403},
		{"GET", "ada/activations", "", 403},
		{"GET", "ada/triggers", "", 403},
		{"GET", "ada/rules", "", 403},
		{"GET", "ada/limits", "", 403},
	} {
		if got, answer := ask(t, bob, c.method, c.path, c.body); got != c.want {
			t.Errorf("bob's %s %s is answered %d %s, want %d", c.method, c.path, got, answer, c.want)
		}
	}
	for _, collection := range []string{"actions", "activations"} {
		if _, answer := status(t, bob, "GET", collection, nil); answer != "[]" {
			t.Errorf("bob's %s are %s", collection, answer)
		}
	}
	if got := invoke(t, ada, "secret", map[string]int{"n": 2}); string(got.Response.Result) != `{"n":2}` {
		t.Errorf("ada's action returned %s", got.Response.Result)
	}
	list := operate(t, s, "list", "-o", "jsonl")
	if lines := strings.Split(list, "\n"); len(lines) != 3 || strings.Contains(list, "auth") {
		t.Errorf("the tenants are %s", list)
	}
}

// TestTenantState: functions and Redis clients of two tenants do not meet under one key.
func TestTenantState(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{})
	for _, name := range []string{"ada", "bob"} {
		c := as(t, s, operate(t, s, "create", name))
		putPython(t, c, map[string]string{"stateful": stateful})
		r := invoke(t, c, "stateful", map[string]string{"n": name})
		equalJSON(t, r.Response.Result, `{"before":null,"count":1,"all":{"`+name+`":"seen"}}`)
	}
	if answer, err := tenantCommand(t, s, "delete", "ada"); err != nil {
		t.Fatal(err, answer)
	}
	c := as(t, s, operate(t, s, "create", "ada"))
	putPython(t, c, map[string]string{"stateful": stateful})
	r := invoke(t, c, "stateful", map[string]string{"n": "new"})
	equalJSON(t, r.Response.Result, `{"before":null,"count":1,"all":{"new":"seen"}}`)
}

// TestOnlyTheOperatorMakesTenants tries every other key there is.
func TestOnlyTheOperatorMakesTenants(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	if info, err := os.Stat(filepath.Join(s.Options.Data, "operator")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the operator's file: %v, %v", info, err)
	}
	for _, auth := range []string{s.Auth, "", "a:b", ":"} {
		for _, method := range []string{"GET", "PUT", "DELETE", "POST"} {
			r, err := http.NewRequestWithContext(t.Context(), method, s.URL+"/admin/v1/tenants/guest", nil)
			if err != nil {
				t.Fatal(err)
			}
			if user, key, ok := strings.Cut(auth, ":"); ok {
				r.SetBasicAuth(user, key)
			}
			if got, answer := send(t, r); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s with the key %q: %d %s", method, auth, got.StatusCode, answer)
			}
		}
	}
	c := client(t, s)
	putPython(t, c, map[string]string{"peek": `
import os, urllib.error, urllib.request

def main(args):
    try:
        return {"read": urllib.request.urlopen(os.environ["__OW_API_HOST"] + "/admin/v1/tenants").read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code}
`})
	if r := invoke(t, c, "peek", map[string]int{}); string(r.Response.Result) != `{"status":404}` {
		t.Errorf("a function that asks for the tenants gets %s", r.Response.Result)
	}
	if code, _ := status(t, as(t, s, auth(t, s, "operator")), "GET", "actions", nil); code != http.StatusUnauthorized {
		t.Errorf("the operator's key opens a tenant's door: %d", code)
	}
}

// send sends a request and reads the answer.
func send(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

// TestDeletedTenant deletes one whose function runs.
func TestDeletedTenant(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada := as(t, s, operate(t, s, "create", "ada"))
	putPython(t, ada, map[string]string{"wait": "import time\n\ndef main(args):\n    time.sleep(60)\n    return {}\n", "hello": echoes})
	old := invoke(t, ada, "hello", nil)
	type ending struct {
		code   int
		answer []byte
		err    error
	}
	ended := make(chan ending, 1)
	go func() {
		code, answer, err := ada.Do(t.Context(), "POST", "actions/wait?blocking=true", nil)
		ended <- ending{code, answer, err}
	}()
	eventually(t, func() bool { return gauge(t, s, "forerun_sandboxes_busy") == "1" })
	operate(t, s, "delete", "ada")
	end := <-ended
	if end.err != nil || end.code != http.StatusInternalServerError || !strings.Contains(string(end.answer), "deleted") {
		t.Errorf("the running activation was answered %d %s, %v", end.code, end.answer, end.err)
	}
	if code, _ := status(t, ada, "GET", "actions", nil); code != http.StatusUnauthorized {
		t.Errorf("a deleted tenant's key is answered %d", code)
	}
	if out, err := tenantCommand(t, s, "get", "ada"); err == nil || !strings.Contains(out, "There is no tenant ada.") {
		t.Errorf("a deleted tenant: %s", out)
	}
	ada = as(t, s, operate(t, s, "create", "ada"))
	for _, path := range []string{"actions", "activations"} {
		if _, answer := status(t, ada, "GET", path, nil); answer != "[]" {
			t.Errorf("the new ada has the old one's %s: %s", path, answer)
		}
	}
	if code, _ := status(t, ada, "GET", "activations/"+old.ActivationID, nil); code != http.StatusNotFound {
		t.Errorf("the new ada finds the old one's record: %d", code)
	}
}

// TestNextTenantOfTheSameName: the process of a deleted tenant's function does not serve the next one's, whose code is the same.
func TestNextTenantOfTheSameName(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: room(1)})
	for _, secret := range []string{"old", "new"} {
		ada := as(t, s, operate(t, s, "create", "ada"))
		put(t, ada, "keeps", map[string]any{
			"exec":        map[string]any{"kind": "python:3", "code": "kept = []\n\ndef main(args):\n    kept.append(args['secret'])\n    return {'kept': kept}\n"},
			"annotations": []any{map[string]any{"key": "keep-process", "value": true}},
		})
		for _, want := range []string{`{"kept":["` + secret + `"]}`, `{"kept":["` + secret + `","` + secret + `"]}`} {
			if r := invoke(t, ada, "keeps", map[string]any{"secret": secret}); string(r.Response.Result) != want {
				t.Errorf("%s, not %s", r.Response.Result, want)
			}
		}
		operate(t, s, "delete", "ada")
		if idle := gauge(t, s, "forerun_sandboxes_idle"); idle != "0" {
			t.Errorf("%s sandboxes are left", idle)
		}
	}
}

// patience is how long tests wait for what is to come soon: long, so that a busy machine fails none.
const patience = 10 * time.Minute

// eventually waits until something holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it did not come to hold")
		}
	}
}

// gauge reads a metric.
func gauge(t *testing.T, s *server.Server, name string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, body := send(t, r)
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada := as(t, s, operate(t, s, "create", "ada", "--invocations-per-minute", "0"))
	putPython(t, ada, map[string]string{"hello": echoes, "wait": "import time\n\ndef main(args):\n    time.sleep(60)\n    return {}\n"})
	code, answer := status(t, ada, "POST", "actions/hello?blocking=true", nil)
	if code != http.StatusTooManyRequests || !strings.Contains(answer, `"error":"Too many requests in the last minute (count: 1, allowed: 0)."`) {
		t.Errorf("over the rate: %d %s", code, answer)
	}
	operate(t, s, "update", "ada", "--invocations-per-minute", "none", "--concurrent-invocations", "1")
	invoke(t, ada, "hello", nil)
	if code, answer := status(t, ada, "POST", "actions/wait", nil); code != http.StatusAccepted {
		t.Fatalf("%d %s", code, answer)
	}
	request, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+"/api/v1/namespaces/_/actions/hello", nil)
	if err != nil {
		t.Fatal(err)
	}
	user, key, _ := strings.Cut(ada.Auth, ":")
	request.SetBasicAuth(user, key)
	full, body := send(t, request)
	if full.StatusCode != 429 || full.Header.Get("Retry-After") != "1" || !strings.Contains(body, "Too many concurrent requests in flight (count: 1, allowed: 1).") {
		t.Errorf("over the concurrency: %d %v %s", full.StatusCode, full.Header, body)
	}
	var limits map[string]any
	if _, answer := status(t, ada, "GET", "limits", nil); json.Unmarshal([]byte(answer), &limits) != nil ||
		limits["concurrentInvocations"] != 1.0 || limits["invocationsPerMinute"] != 2147483647.0 {
		t.Errorf("the limits are %s", answer)
	}
	operate(t, s, "delete", "ada") // and what still runs
}

// TestQuotaOfActions deploys more than there may be.
func TestQuotaOfActions(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Args: []string{"--stored-actions", "1"}})
	c := client(t, s)
	putPython(t, c, map[string]string{"one": echoes})
	body := map[string]any{"exec": map[string]string{"kind": "python:3", "code": echoes}}
	if code, answer := status(t, c, "PUT", "actions/two", body); code != http.StatusTooManyRequests || !strings.Contains(answer, "Too many actions are stored (count: 2, allowed: 1)") {
		t.Errorf("a second action: %d %s", code, answer)
	}
	putPython(t, c, map[string]string{"one": echoes + "\n"})
	operate(t, s, "update", "guest", "--stored-actions", "2")
	putPython(t, c, map[string]string{"two": echoes})
}

// must sends a request that has to be answered 200.
func must(t *testing.T, c *server.Client, method, path, body string) string {
	t.Helper()
	code, answer := ask(t, c, method, path, body)
	if code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

const pythonEcho = `{"exec":{"kind":"python:3","code":"def main(args):\n    return args\n"}}`

// TestPackagesOfOthers: they can be used if they are published, and in no other way.
func TestPackagesOfOthers(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	ada, bob := as(t, s, operate(t, s, "create", "ada")), as(t, s, operate(t, s, "create", "bob"))
	must(t, ada, "PUT", "_/packages/private", `{"parameters":[{"key":"secret","value":"s"}]}`)
	must(t, ada, "PUT", "_/packages/public", `{"publish":true,"parameters":[{"key":"from","value":"ada"}]}`)
	for _, pkg := range []string{"private", "public"} {
		must(t, ada, "PUT", "_/actions/"+pkg+"/echo", pythonEcho)
	}
	const result = "?blocking=true&result=true"
	for _, request := range []string{
		"GET ada/packages/private", "GET ada/actions/private/echo", "POST ada/actions/private/echo" + result, "GET ada/actions",
		"DELETE ada/packages/public", "DELETE ada/actions/public/echo", "PUT ada/packages/mine", "PUT ada/actions/public/mine",
	} {
		method, path, _ := strings.Cut(request, " ")
		body := map[string]string{"POST": "{}", "PUT": pythonEcho}[method]
		if code, answer := ask(t, bob, method, path, body); code != http.StatusForbidden || strings.Contains(answer, "secret") {
			t.Errorf("bob's %s: %d %s", request, code, answer)
		}
	}
	if list := must(t, bob, "GET", "ada/packages", ""); !strings.Contains(list, `"public"`) || strings.Contains(list, "private") {
		t.Errorf("bob sees ada's packages as %s", list)
	}
	if code, answer := ask(t, bob, "PUT", "_/packages/mine", `{"binding":{"namespace":"ada","name":"private"}}`); code != http.StatusForbidden {
		t.Errorf("bob binds ada's private package: %d %s", code, answer)
	}
	must(t, bob, "PUT", "_/packages/bound", `{"binding":{"namespace":"ada","name":"public"},"parameters":[{"key":"to","value":"bob"}]}`)
	equalJSON(t, json.RawMessage(must(t, bob, "POST", "ada/actions/public/echo"+result, `{"n":1}`)), `{"from":"ada","n":1}`)
	equalJSON(t, json.RawMessage(must(t, bob, "POST", "_/actions/bound/echo"+result, `{"n":2}`)), `{"from":"ada","to":"bob","n":2}`)
	if list := must(t, ada, "GET", "_/activations", ""); list != "[]" {
		t.Errorf("ada has the records of bob's activations: %s", list)
	}
	var records []server.Record
	if list := must(t, bob, "GET", "_/activations", ""); json.Unmarshal([]byte(list), &records) != nil || len(records) != 2 {
		t.Errorf("bob's records are %s", list)
	}
	operate(t, s, "delete", "ada")
	for _, path := range []string{"ada/actions/public/echo", "_/actions/bound/echo"} {
		if code, answer := ask(t, bob, "POST", path+result, "{}"); code != http.StatusForbidden && code != http.StatusNotFound {
			t.Errorf("%s of a deleted tenant: %d %s", path, code, answer)
		}
	}
}

// TestDeletedTenantsRules: nothing that fired before fires again, and the names are free.
func TestDeletedTenantsRules(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	for range 2 {
		ada := as(t, s, operate(t, s, "create", "ada", "--fires-per-minute", "1"))
		for _, collection := range []string{"packages", "triggers", "rules", "actions", "activations"} {
			if list := must(t, ada, "GET", "_/"+collection, ""); list != "[]" {
				t.Errorf("a new tenant has %s: %s", collection, list)
			}
		}
		must(t, ada, "PUT", "_/packages/p", "{}")
		must(t, ada, "PUT", "_/actions/p/echo", pythonEcho)
		must(t, ada, "PUT", "_/triggers/t", "{}")
		must(t, ada, "PUT", "_/rules/r", `{"trigger":"/_/t","action":"/_/p/echo"}`)
		if code, answer := ask(t, ada, "POST", "_/triggers/t", `{"n":1}`); code != http.StatusAccepted {
			t.Errorf("the trigger: %d %s", code, answer)
		}
		code, answer := ask(t, ada, "POST", "_/triggers/t", `{"n":2}`)
		for code == http.StatusAccepted { // the minute was over in between
			code, answer = ask(t, ada, "POST", "_/triggers/t", `{"n":2}`)
		}
		if code != http.StatusTooManyRequests || !strings.Contains(answer, "Too many requests in the last minute (count: 2, allowed: 1).") {
			t.Errorf("the trigger again: %d %s", code, answer)
		}
		operate(t, s, "delete", "ada")
	}
}
