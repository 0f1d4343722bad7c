package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	acme     = `{"namespace":"acme","created":0,"quotas":{},"limits":{"invocationsPerMinute":2147483647,"concurrentInvocations":1000,"firesPerMinute":7,"storedActions":2147483647,"storedMegabytes":0,"storedShare":50,"timedTriggers":1000},"stored":{"state":1048576,"total":1572864,"allowed":null}}`
	acmeKey  = `{"namespace":"acme","auth":"u:k","limits":{}}`
	noTenant = `{"error":"There is no tenant acme.","code":"t"}`
)

// operatorWorld answers the operator's API, and has its file.
func operatorWorld(t *testing.T, answers map[string]answer) (w *world, file string) {
	t.Helper()
	below := make(map[string]answer)
	for request, a := range answers {
		method, path, _ := strings.Cut(request, " ")
		below[method+" /admin/v1/"+path] = a
	}
	w = newWorld(t, below)
	file = filepath.Join(t.TempDir(), "operator")
	if err := os.WriteFile(file, []byte("APIHOST="+w.server.URL+"\nAUTH="+testKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return w, file
}

func TestTenantCommands(t *testing.T) {
	for _, c := range []struct {
		args   string
		answer answer
		asked  string // empty: nothing
		code   int
		stdout string
		stderr string // a part
	}{
		{"create acme", answer{status: 200, body: acmeKey}, `PUT tenants/acme?overwrite=false {}`, 0, "u:k\n", "shown once"},
		{"create acme -o jsonl", answer{status: 200, body: acmeKey}, `PUT tenants/acme?overwrite=false {}`, 0, acmeKey + "\n", "ok: created tenant acme"},
		{"create acme --stored-actions 5 --fires-per-minute none", answer{status: 200, body: acmeKey}, `PUT tenants/acme?overwrite=false {"quotas":{"firesPerMinute":2147483647,"storedActions":5}}`, 0, "u:k\n", ""},
		{"create acme", answer{status: 409, body: `{"error":"The namespace acme is already taken.","code":"t"}`}, `PUT tenants/acme?overwrite=false {}`, 4, "", "already taken"},
		{"create acme --stored-actions many", answer{}, "", 2, "", "write a number, or none"},
		{"create", answer{}, "", 2, "", "an argument is missing"},
		{"update acme --concurrent-invocations 3", answer{status: 200, body: acme}, `PUT tenants/acme?overwrite=true {"quotas":{"concurrentInvocations":3}}`, 0, "", "ok: updated tenant acme"},
		{"update acme", answer{}, "", 2, "", "no quota is named"},
		{"list", answer{status: 200, body: "[" + acme + "]"}, "GET tenants", 0, "NAME  CREATED  SUSPENDED  STORED   INVOCATIONS PER MINUTE  CONCURRENT INVOCATIONS  QUEUED INVOCATIONS  FIRES PER MINUTE  STORED ACTIONS  STORED MEGABYTES  TIMED TRIGGERS\nacme  -        -          1.5 MiB  none                    1000                    0                   7                 none            50%               1000\n", ""},
		{"list -o jsonl", answer{status: 200, body: "[" + acme + "]"}, "GET tenants", 0, acme + "\n", ""},
		{"get acme namespace", answer{status: 200, body: acme}, "GET tenants/acme", 0, "\"acme\"\n", ""},
		{"get acme", answer{status: 404, body: noTenant}, "GET tenants/acme", 4, "", "There is no tenant acme."},
		{"rotate acme", answer{status: 200, body: acmeKey}, "POST tenants/acme/rotate", 0, "u:k\n", "shown once"},
		{"suspend acme", answer{status: 200, body: acme}, "POST tenants/acme/suspend", 0, "", "ok: suspended tenant acme"},
		{"suspend acme", answer{status: 404, body: noTenant}, "POST tenants/acme/suspend", 4, "", "There is no tenant acme."},
		{"resume acme", answer{status: 200, body: acme}, "POST tenants/acme/resume", 0, "", "ok: resumed tenant acme"},
		{"delete acme", answer{status: 200, body: acme}, "DELETE tenants/acme", 0, "", "ok: deleted tenant acme"},
		{"delete acme", answer{status: 401, body: `{"error":"Tenants are the operator's.","code":"t"}`}, "DELETE tenants/acme", 4, "", "Tenants are the operator's."},
	} {
		request := strings.Join(strings.SplitN(c.asked, " ", 3)[:min(2, strings.Count(c.asked, " ")+1)], " ")
		w, file := operatorWorld(t, map[string]answer{request: c.answer})
		got := runIn(t, map[string]string{"FORERUN_OPERATOR": file, "FORERUN_AUTH": "tenant:key"}, "", "", append([]string{"tenant"}, strings.Fields(c.args)...)...)
		if got.code != c.code || got.stdout != c.stdout || !strings.Contains(got.stderr, c.stderr) {
			t.Errorf("%s: %+v", c.args, got)
		}
		var want []string
		if c.asked != "" {
			method, rest, _ := strings.Cut(c.asked, " ")
			want = []string{method + " /admin/v1/" + rest}
		}
		if asked := w.requests(); !slices.Equal(asked, want) {
			t.Errorf("%s asked %v, want %v", c.args, asked, want)
		}
	}
}

func TestSpeculationCommands(t *testing.T) {
	ahead := func(mode string, kept, on bool) string {
		return fmt.Sprintf(`{"mode":%q,"settings":"%s; depth=4","switch":%t,"on":%t}`, mode, mode, kept, on)
	}
	for _, c := range []struct{ args, asked, body, stdout, stderr string }{
		{"get", "GET speculation", ahead("all", true, true), "in effect: all; depth=4\nswitch: on\n--speculate: all; depth=4\n", "on the server HOST:\n"},
		{"get", "GET speculation", ahead("all", false, false), "in effect: off\nswitch: off\n--speculate: all; depth=4\n", "on the server HOST, until `forerun speculation on`:\n"},
		{"get", "GET speculation", ahead("off", true, false), "in effect: off\nswitch: on\n--speculate: off; depth=4\n", "on the server HOST, until it is started with another --speculate:\n"},
		{"get", "GET speculation", ahead("off", false, false), "in effect: off\nswitch: off\n--speculate: off; depth=4\n", "on the server HOST, until it is started with another --speculate, and `forerun speculation on`:\n"},
		{"get -o jsonl", "GET speculation", ahead("all", true, true), ahead("all", true, true) + "\n", ""},
		{"off", `PUT speculation {"on":false}`, ahead("all", false, false), "", "ok: turned off speculation on the server HOST\n"},
		{"on", `PUT speculation {"on":true}`, ahead("all", true, true), "", "ok: turned on speculation on the server HOST\n"},
		{"off", `PUT speculation {"on":false}`, ahead("off", false, false), "", "ok: turned off the switch of the server HOST, which keeps that; speculation stays off, since the server was started with --speculate off\n"},
		{"on", `PUT speculation {"on":true}`, ahead("off", true, false), "", "ok: turned on the switch of the server HOST, which keeps that; speculation stays off, since the server was started with --speculate off: start it with --speculate all for that\n"},
	} {
		method, rest, _ := strings.Cut(c.asked, " ")
		path, _, _ := strings.Cut(rest, " ")
		w, file := operatorWorld(t, map[string]answer{method + " " + path: {status: 200, body: c.body}})
		got := runIn(t, map[string]string{"FORERUN_OPERATOR": file}, "", "", append([]string{"speculation"}, strings.Fields(c.args)...)...)
		if want := strings.ReplaceAll(c.stderr, "HOST", w.server.URL); got.code != 0 || got.stdout != c.stdout || got.stderr != want {
			t.Errorf("%s: %+v", c.args, got)
		}
		if asked := w.requests(); !slices.Equal(asked, []string{method + " /admin/v1/" + rest}) {
			t.Errorf("%s asked %v", c.args, asked)
		}
	}
}

func TestOperatorSettings(t *testing.T) {
	w, file := operatorWorld(t, map[string]answer{"GET tenants": {status: 200, body: "[]"}})
	missing := filepath.Join(t.TempDir(), "none")
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("# a file without a key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		env  map[string]string
		args []string
		code int
		says string
	}{
		{"flag before environment", map[string]string{"FORERUN_OPERATOR": missing}, []string{"--operator", file}, 0, ""},
		{"no file", map[string]string{"FORERUN_OPERATOR": missing}, nil, 2, "cannot be read"},
		{"a file without a key", map[string]string{"FORERUN_OPERATOR": other}, nil, 2, other + " is not an operator's key"},
		{"all by flags", nil, []string{"--apihost", w.server.URL, "-u", testKey}, 0, ""},
		{"a tenant's key is not taken", map[string]string{"FORERUN_APIHOST": w.server.URL, "FORERUN_AUTH": testKey}, nil, 2, "cannot be read"},
	} {
		if got := runIn(t, c.env, "", "", append([]string{"tenant", "list"}, c.args...)...); got.code != c.code || !strings.Contains(got.stderr, c.says) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
