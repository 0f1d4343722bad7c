package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// keyed tells the status of each request that args name, made with its own key. With "wait" it first gives the key out, and waits.
const keyed = `
import base64, json, os, urllib.error, urllib.request, redis

def main(args):
    key = os.environ.get("__OW_API_KEY")
    if args.get("wait"):
        state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
        state.rpush("keys", key)
        state.blpop("go")
    return {"key": key, "statuses": [ask(key, *request) for request in args.get("requests", [])]}

def ask(key, method, path):
    request = urllib.request.Request(os.environ["__OW_API_HOST"] + "/api/v1/" + path, method=method)
    if key:
        request.add_header("Authorization", "Basic " + base64.b64encode(key.encode()).decode())
    if method in ("PUT", "POST"):
        request.add_header("Content-Type", "application/json")
        request.data = b"{}"
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
`

// putKeyed puts the function with annotations: pairs of a name and a value.
func putKeyed(t *testing.T, c *server.Client, name string, annotations ...any) {
	t.Helper()
	needPackages(t)
	kvs := []any{}
	for i := 0; i < len(annotations); i += 2 {
		kvs = append(kvs, map[string]any{"key": annotations[i], "value": annotations[i+1]})
	}
	put(t, c, name, map[string]any{"exec": map[string]any{"kind": "python:3", "code": keyed}, "annotations": kvs})
}

// TestRightsOfFunctions: the annotation provide-api-key says whether a function has a key, and what it may do with it.
func TestRightsOfFunctions(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	putPython(t, c, map[string]string{"callee": "def main(args):\n    return {}\n"})
	for _, path := range []string{"_/triggers/t", "_/packages/p"} {
		if status, body := ask(t, c, http.MethodPut, path, "{}"); status != http.StatusOK {
			t.Fatalf("PUT %s: %d %s", path, status, body)
		}
	}
	known := invoke(t, c, "callee", nil).ActivationID
	requests := [][2]string{
		{"GET", "namespaces"},
		{"POST", "namespaces/_/actions/callee?blocking=true"},
		{"GET", "namespaces/_/activations/" + known},
		{"GET", "namespaces/_/actions/callee?code=true"},
		{"GET", "namespaces/_/activations"},
		{"GET", "namespaces/_/activations/" + known + "/logs"},
		{"PUT", "namespaces/_/triggers/new"},
		{"DELETE", "namespaces/_/triggers/new"},
	}
	for _, f := range []struct {
		name        string
		annotations []any
		want        string
	}{
		{"silent", nil, "[200 200 200 403 403 403 403 403]"},
		{"invokes", []any{"provide-api-key", "invoke"}, "[200 200 200 403 403 403 403 403]"},
		{"reads", []any{"provide-api-key", "read"}, "[200 403 200 200 200 200 403 403]"},
		{"all", []any{"provide-api-key", "all"}, "[200 200 200 200 200 200 200 200]"},
		{"true", []any{"provide-api-key", true}, "[200 200 200 200 200 200 200 200]"},
		{"false", []any{"provide-api-key", false}, "[401 401 401 401 401 401 401 401]"},
	} {
		putKeyed(t, c, f.name, f.annotations...)
		var got struct {
			Key      string
			Statuses []int
		}
		decode(t, invoke(t, c, f.name, map[string]any{"requests": requests}).Response.Result, &got)
		if fmt.Sprint(got.Statuses) != f.want || (got.Key == "") != (f.name == "false") {
			t.Errorf("%s, which has the key %q, is answered %v, not %s", f.name, got.Key, got.Statuses, f.want)
		}
	}
	status, body := ask(t, c, http.MethodPut, "_/actions/typo", `{"exec":{"kind":"python:3","code":"x"},"annotations":[{"key":"provide-api-key","value":"reed"}]}`)
	if status != http.StatusBadRequest || !strings.Contains(body, "all, invoke, read") {
		t.Errorf("a scope that is not one is answered %d %s", status, body)
	}
}

// TestKeysOfRunningFunctions: a function's key is accepted from its own sandbox alone, unless an annotation asks for more, and it is
// void once the tenant's key was rotated.
func TestKeysOfRunningFunctions(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{Redis: true})
	ada := as(t, s, operate(t, s, "create", "ada"))
	putKeyed(t, ada, "inside")
	putKeyed(t, ada, "outside", "api-key-outside", true, "provide-api-key", "all")
	list := map[string]any{"wait": true, "requests": [][2]string{{"GET", "namespaces"}}}
	for _, f := range []struct {
		name   string
		rotate bool
		want   int // the status of a request from elsewhere
		then   string
	}{
		{"inside", false, http.StatusUnauthorized, "[200]"},
		{"outside", false, http.StatusOK, "[200]"},
		{"inside", true, http.StatusUnauthorized, "[401]"},
		{"outside", true, http.StatusUnauthorized, "[401]"},
	} {
		user, password, _ := strings.Cut(ada.Auth, ":")
		state := redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: password, DialTimeout: time.Minute, ReadTimeout: time.Minute})
		answered := make(chan *server.Record, 1)
		go func() {
			defer close(answered)
			if record, err := ada.Invoke(t.Context(), f.name, list); err == nil {
				answered <- record
			}
		}()
		given, err := state.BLPop(t.Context(), 0, "keys").Result()
		if err != nil {
			t.Fatal(err)
		}
		next := ada.Auth
		if f.rotate {
			next = operate(t, s, "rotate", "ada")
			user, password, _ = strings.Cut(next, ":")
			_ = state.Close()
			state = redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: password, DialTimeout: time.Minute, ReadTimeout: time.Minute})
		}
		status, body := ask(t, as(t, s, given[1]), http.MethodGet, "_/actions", "")
		if status != f.want || (f.name == "inside" && !f.rotate) != strings.Contains(body, "its own sandbox only") {
			t.Errorf("%s, rotated %v: from elsewhere the key is answered %d %s", f.name, f.rotate, status, body)
		}
		if err := state.RPush(t.Context(), "go", "on").Err(); err != nil {
			t.Fatal(err)
		}
		var got struct{ Statuses []int }
		if record := <-answered; record == nil {
			t.Errorf("%s, rotated %v: no record", f.name, f.rotate)
		} else if decode(t, record.Response.Result, &got); fmt.Sprint(got.Statuses) != f.then {
			t.Errorf("%s, rotated %v: from its sandbox the function is answered %v, not %s", f.name, f.rotate, got.Statuses, f.then)
		}
		_ = state.Close()
		ada = as(t, s, next)
	}
}
