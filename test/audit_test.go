package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// TestAudit: the audit log tells who did what, and who was not let in; it holds no secret.
func TestAudit(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	ada := as(t, s, operate(t, s, "create", "ada"))
	uuid, secret, _ := strings.Cut(ada.Auth, ":")
	const action = `{"exec":{"kind":"python:3","code":"def main(args): return {}"},"parameters":[{"key":"TOKEN","value":"parameter-secret","init":true,"secret":true}],"annotations":[{"key":"web-export","value":true},{"key":"require-whisk-auth","value":"door-secret"}]}`
	want := []struct{ who, namespace, action, object string }{
		{"operator", "", "PUT", "/admin/v1/tenants/ada"},
		{"key " + uuid, "ada", "PUT", "/api/v1/namespaces/_/actions/a"},
		{"key " + uuid, "ada", "DELETE", "/api/v1/namespaces/_/triggers/none"},
		{"key " + uuid, "", "authenticate", "/api/v1/namespaces/_/actions"},
		{"unknown", "", "authenticate", "/api/v1/namespaces/_/actions"},
		{"unknown", "", "authenticate", "/api/v1/web/ada/default/a"},
		{"key " + uuid, "", "authenticate", "/admin/v1/tenants"},
		{"key " + uuid, "", "authenticate", "redis"},
		{"operator", "", "PUT", "/admin/v1/tenants/ada"},
		{"operator", "", "POST", "/admin/v1/tenants/ada/rotate"},
	}
	ask(t, ada, http.MethodPut, "_/actions/a", action)
	ask(t, ada, http.MethodDelete, "_/triggers/none", "")
	ask(t, ada, http.MethodGet, "_/actions", "") // is no change
	ask(t, as(t, s, uuid+":wrong-key-of-ada"), http.MethodGet, "_/actions", "")
	ask(t, as(t, s, "password-of-somebody:x"), http.MethodGet, "_/actions", "")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/web/ada/default/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Require-Whisk-Auth", "wrong-secret")
	send(t, r)
	if r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/admin/v1/tenants", nil); err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(uuid, secret)
	send(t, r)
	state := redis.NewClient(&redis.Options{Addr: s.Redis, Username: uuid, Password: "wrong-redis-key", MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute})
	if err := state.Ping(t.Context()).Err(); err == nil {
		t.Error("a wrong key opens the Redis door")
	}
	_ = state.Close()
	operate(t, s, "update", "ada", "--egress", "none")
	next := operate(t, s, "rotate", "ada")

	out, err := exec.CommandContext(t.Context(), binary, "audit", "--operator", filepath.Join(s.Options.Data, "operator"), "--since", "1h", "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ Who, Namespace, Action, Object, Request, Peer string }
	if err := json.Unmarshal(out, &entries); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i := 0
	for _, e := range entries {
		if w := want[min(i, len(want)-1)]; e.Who == w.who && e.Namespace == w.namespace && e.Action == w.action && e.Object == w.object && e.Peer != "" && (e.Request != "") == (e.Object != "redis") {
			i++
		}
	}
	if i < len(want) {
		t.Errorf("there is no entry %+v in this order in\n%s", want[i], out)
	}
	if !strings.Contains(string(out), `"detail": "egress none"`) {
		t.Errorf("what the tenant's functions may reach is not told: %s", out)
	}
	if strings.Contains(string(out), `"GET","object":"/api/`) {
		t.Errorf("a GET of the API is told: %s", out)
	}
	files, err := filepath.Glob(filepath.Join(s.Options.Data, "audit", "*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("the files are %v (%v)", files, err)
	}
	var text []byte
	for _, file := range files {
		part, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, part...)
	}
	_, nextSecret, _ := strings.Cut(next, ":")
	for _, hidden := range []string{secret, nextSecret, "wrong-key-of-ada", "password-of-somebody", "wrong-secret", "wrong-redis-key", "parameter-secret", "door-secret"} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("the audit log holds %s", hidden)
		}
	}
	if r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/metrics", nil); err != nil {
		t.Fatal(err)
	}
	failures := fmt.Sprintf("forerun_authentication_failures_total %d\n", strings.Count(string(text), `"action":"authenticate"`))
	if _, metrics := send(t, r); !strings.Contains(metrics, failures) {
		t.Errorf("the metrics do not have %s", failures)
	}
}
