package openwhisk

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestEncodedPaths: names in a path may be percent-encoded, its other parts may not.
func TestEncodedPaths(t *testing.T) {
	w := newWorld(t)
	w.must(w.request("PUT", actions+"a%20b", `{"exec":{"kind":"python:3","code":"echo"}}`))
	for path, want := range map[string]int{
		actions + "a%20b": 200, namespaces + "%5F/actions/a%20b": 200, namespaces + "_/action%73/a%20b": 404, "/api/v1/name%73paces/_/actions/a%20b": 404,
		"/api/v%31/namespaces/_/actions/a%20b": 404, namespaces + "_%2Factions%2Fa%20b": 404,
	} {
		if r := w.request("GET", path, ""); r.status != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

func TestWhoMayCall(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		name, path string
		headers    []string
		status     int
		want       string
	}{
		{"own", "_/actions", nil, 200, ""},
		{"own by name", "guest/actions", nil, 200, ""},
		{"without a key", "_/actions", []string{"Authorization", ""}, 401, "The resource requires authentication, which was not supplied with the request"},
		{"another scheme", "_/actions", []string{"Authorization", "Bearer x"}, 401, "The supplied authentication is invalid"},
		{"a wrong key", "_/actions", []string{"Authorization", "Basic YTpi"}, 401, "The supplied authentication is invalid"},
		{"before anything else", "_/nothing/at/all/here", []string{"Authorization", "Basic YTpi"}, 401, "The supplied authentication is invalid"},
		{"another's list", "other/actions", nil, 403, "The supplied authentication is not authorized to access 'other'."},
		{"another's action", "other/actions/p/a", nil, 403, "The supplied authentication is not authorized to access 'other/p'."},
		{"another's activation", "other/activations/" + strings.Repeat("0", 32), nil, 403, "The supplied authentication is not authorized to access 'other/" + strings.Repeat("0", 32) + "'."},
		{"no namespace", "a$b/actions", nil, 400, "The namespace contains illegal characters."},
		{"no name", "_/actions/a$b", nil, 400, "The name of the entity contains illegal characters."},
		{"too long a name", "_/actions/" + strings.Repeat("a", 257), nil, 400, "Name segement longer than allowed: 257 > 256."},
	} {
		r := w.request("GET", namespaces+test.path, "", test.headers...)
		if r.status != test.status || test.want != "" && member(t, r.body, "error") != fmt.Sprintf("%q", test.want) {
			t.Errorf("%s: %d %s", test.name, r.status, r.body)
		}
		if challenge := r.header.Get("WWW-Authenticate"); (challenge != "") != (r.status == 401) {
			t.Errorf("%s: challenged with %q", test.name, challenge)
		}
		if r.status != 200 && member(t, r.body, "code") != fmt.Sprintf("%q", r.header.Get("X-Request-ID")) {
			t.Errorf("%s: the code is not the transaction: %s", test.name, r.body)
		}
	}
}

func TestTransactionIsTheClients(t *testing.T) {
	w := newWorld(t)
	for given, echoed := range map[string]bool{"abc-1": true, "": false, "with space": false, strings.Repeat("x", 129): false} {
		got := w.request("GET", "/api/v1", "", "X-Request-ID", given).header.Get("X-Request-ID")
		if (got == given) != echoed || got == "" {
			t.Errorf("%q became %q", given, got)
		}
	}
}

func TestMethods(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		"/": "GET", "/api/v1": "GET", "/api/v1/namespaces": "GET", namespaces + "_/actions": "GET", namespaces + "_/activations": "GET", namespaces + "_/actions/a": "GET, PUT, DELETE, POST",
	} {
		r := w.request("PATCH", path, "")
		if r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != want || member(t, r.body, "error") != fmt.Sprintf("%q", "HTTP method not allowed, supported methods: "+want) {
			t.Errorf("%s: %d %s, allowed %s", path, r.status, r.body, r.header.Get("Allow"))
		}
	}
	if r := w.request("OPTIONS", namespaces+"_/actions", "", "Authorization", ""); r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("OPTIONS: %d %v", r.status, r.header)
	}
}

func TestInfo(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		"/api/v1": "api_version api_version_path build buildno description", "/api/v1/": "api_version api_version_path build buildno description",
		"/": "api_paths description implementation limits runtimes",
	} {
		r := w.request("GET", path, "", "Authorization", "")
		if r.status != 200 || names(t, r.body) != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := w.request("GET", "/api/v1/namespaces", ""); r.body != `["guest"]` {
		t.Errorf("namespaces: %s", r.body)
	}
	for _, path := range []string{"/x", "/api", "/api/v1x", "/api/v2/namespaces"} {
		if r := w.request("GET", path, ""); r.status != 404 {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
}

func TestListActions(t *testing.T) {
	w := newWorld(t)
	w.pack("p", `{}`)
	for _, name := range []string{"a", "p/b", "c"} {
		w.deploy(name, "echo")
	}
	for path, want := range map[string]string{
		"actions": "c b a", "actions/": "c b a", "actions?limit=2": "c b", "actions?skip=1&limit=0": "b a", "actions/p/": "b",
	} {
		r := w.request("GET", namespaces+"_/"+path, "")
		var got []string
		for i := 0; member(t, r.body, fmt.Sprint(i)) != "none"; i++ {
			got = append(got, strings.Trim(member(t, r.body, fmt.Sprintf("%d.name", i)), `"`))
		}
		if r.status != 200 || strings.Join(got, " ") != want {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	r := w.request("GET", namespaces+"_/actions?skip=1&limit=1", "")
	if first := member(t, r.body, "0"); names(t, first) != "annotations exec limits name namespace publish updated version" || member(t, first, "exec") != `{"binary":true}` || member(t, first, "namespace") != `"guest/p"` {
		t.Errorf("a summary is %s", first)
	}
	if r := w.request("GET", namespaces+"_/actions?count=true&skip=1", ""); r.body != `{"actions":2}` {
		t.Errorf("counted %s", r.body)
	}
	for query, want := range map[string]string{
		"limit=201": "The query parameter 'limit' was malformed:\nThe value '201' is not in the range of 0 to 200 for actions.",
		"limit=x":   "The query parameter 'limit' was malformed:\nThe value 'x' is not an integer for actions.",
		"skip=-1":   "The query parameter 'skip' was malformed:\nThe value '-1' is not greater than or equal to 0 for actions.",
		"skip=x":    "The query parameter 'skip' was malformed:\nThe value 'x' is not an integer for actions.",
	} {
		if r := w.request("GET", namespaces+"_/actions?"+query, ""); r.status != 400 || member(t, r.body, "error") != fmt.Sprintf("%q", want) {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
	}
}

func TestActivations(t *testing.T) {
	w := newWorld(t)
	w.pack("p", `{}`)
	w.deploy("p/echo", "echo")
	w.deploy("fail", "fail")
	w.request("POST", actions+"fail?blocking=true", `{}`)
	id := strings.Trim(member(t, w.request("POST", actions+"p/echo?blocking=true", `{"n":1}`).body, "activationId"), `"`)

	whole := w.request("GET", activations+"/"+id, "")
	if names(t, whole.body) != "activationId annotations duration end logs name namespace publish response start subject version" ||
		member(t, whole.body, "response.result") != `{"n":1}` || member(t, whole.body, "name") != `"echo"` || member(t, whole.body, "namespace") != `"guest"` {
		t.Errorf("the record is %s", whole.body)
	}
	if r := w.request("GET", activations+"/"+id+"/", ""); r.body != whole.body {
		t.Errorf("with a slash it is %s", r.body)
	}
	if r := w.request("GET", activations+"/"+id+"/result", ""); r.body != `{"status":"success","success":true,"result":{"n":1},"size":7}` {
		t.Errorf("the result is %s", r.body)
	}
	if r := w.request("GET", activations+"/"+id+"/logs", ""); r.body != `{"logs":["2026-11-21T00:00:00.000000000Z stdout: hello"]}` {
		t.Errorf("the logs are %s", r.body)
	}
	if r := w.request("GET", activations+"/"+id+"/trace", ""); r.status != 200 || member(t, r.body, "slots.0.title") != `"p/echo"` || member(t, r.body, "slots.0.bars.0.look") != `"waits"` {
		t.Errorf("the trace is %s", r.body)
	}
	if r := w.request("GET", namespaces+"ada/activations/"+id+"/trace", ""); r.status != 403 {
		t.Errorf("another tenant's trace: %d %s", r.status, r.body)
	}
	summaries := w.request("GET", activations, "")
	if first := member(t, summaries.body, "0"); names(t, first) != "activationId annotations duration end name namespace publish start statusCode version" || member(t, first, "activationId") != fmt.Sprintf("%q", id) {
		t.Errorf("the newest is %s", first)
	}
	if member(t, summaries.body, "1.statusCode") != "1" || member(t, summaries.body, "2") != "none" {
		t.Errorf("the list is %s", summaries.body)
	}
	for query, want := range map[string]int{"name=p/echo": 1, "name=echo": 0, "name=fail": 1, "docs=true": 2, "limit=1": 1, "skip=1": 1, "upto=1000": 0, "since=1000": 2} {
		r := w.request("GET", activations+"?"+query, "")
		if n := strings.Count(r.body, `"activationId"`); r.status != 200 || n != want {
			t.Errorf("%s: %d %s", query, r.status, r.body)
		}
		if strings.Contains(r.body, `"response"`) != (query == "docs=true") {
			t.Errorf("%s: %s", query, r.body)
		}
	}
	if r := w.request("GET", activations+"?count=true", ""); r.body != `{"activations":2}` {
		t.Errorf("counted %s", r.body)
	}
}

func TestActivationsAreRefused(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]string{
		"/" + strings.Repeat("0", 31):            `400 "Activation id length is 31 but must be 32."`,
		"/" + strings.Repeat("g", 32):            `400 "The activation id is not valid."`,
		"/" + strings.Repeat("0", 32):            `404 "The requested resource does not exist."`,
		"/" + strings.Repeat("0", 32) + "/logs":  `404 "The requested resource does not exist."`,
		"/" + strings.Repeat("0", 32) + "/other": `404 "The requested resource could not be found."`,
		"?name=a/b/c":                            `400 "The query parameter 'name' was malformed:\nParameter may be a 'simple' name or 'package-name/simple' name: a/b/c"`,
		"?since=now":                             `400 "The query parameter 'since' was malformed:\nParameter is not a valid value for epoch seconds: now"`,
		"?count=true&docs=true":                  `400 "The parameter 'docs' is not permitted with 'count'."`,
		"?limit=1000":                            `400 "The query parameter 'limit' was malformed:\nThe value '1000' is not in the range of 0 to 200 for activations."`,
	} {
		r := w.request("GET", activations+path, "")
		if got := fmt.Sprintf("%d %s", r.status, member(t, r.body, "error")); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestPanicIsContained(t *testing.T) {
	w := newWorld(t)
	w.api.CheckFlow = func(*forerun.Action) error { panic("secret detail") }
	r := w.request("PUT", actions+"a", `{"exec":{"kind":"python:3","code":"echo"}}`)
	if r.status != 500 || member(t, r.body, "error") != `"There was an internal server error."` {
		t.Errorf("%d %s", r.status, r.body)
	}
}
