package test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

const caller = `
import base64, json, os, urllib.request

def call(path, body=None, key=None):
    key = key or os.environ["__OW_API_KEY"]
    request = urllib.request.Request(os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/" + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": "Basic " + base64.b64encode(key.encode()).decode()})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)

def main(args):
    if "path" in args:
        return {"answer": call(args["path"])}
    record = call("actions/callee?blocking=true", {"n": args["n"]})
    return {"n": record["response"]["result"]["n"], "callee": record["activationId"], "key": os.environ["__OW_API_KEY"],
        "id": os.environ["__OW_ACTIVATION_ID"]}
`

// TestFunctionCallsFunction calls through the API door with the activation's own token.
func TestFunctionCallsFunction(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"caller": caller, "callee": "def main(args):\n    return {'n': args['n'] * 2}\n"})
	r := invoke(t, c, "caller", map[string]int{"n": 21})
	var result struct {
		N               int
		Callee, Key, ID string
	}
	if err := json.Unmarshal(r.Response.Result, &result); err != nil || result.N != 42 {
		t.Fatalf("the caller returned %s (%v), logs %q", r.Response.Result, err, r.Logs)
	}
	if result.ID != r.ActivationID {
		t.Errorf("__OW_ACTIVATION_ID was %s in activation %s", result.ID, r.ActivationID)
	}
	if callee := stored(t, c, result.Callee); callee.Cause != r.ActivationID || callee.Name != "callee" {
		t.Errorf("the callee's record names %q as its cause and %q as its action; the caller was %s", callee.Cause, callee.Name, r.ActivationID)
	}
	if result.Key == s.Auth {
		t.Error("the function was given the tenant's own key")
	}
	void := &server.Client{URL: s.URL, Auth: result.Key, HTTP: c.HTTP}
	if status, body, err := void.Do(t.Context(), http.MethodGet, "actions", nil); err != nil || status != http.StatusUnauthorized {
		t.Errorf("after its activation the token is answered %d %s (%v), not 401", status, body, err)
	}
}

// TestFunctionsSeeNoMeters: they tell of all tenants.
func TestFunctionsSeeNoMeters(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	c := client(t, s)
	putPython(t, c, map[string]string{"peek": `
import os, urllib.error, urllib.request

def main(args):
    try:
        return {"read": urllib.request.urlopen(os.environ["__OW_API_HOST"] + "/metrics").read().decode()}
    except urllib.error.HTTPError as error:
        return {"status": error.code}
`})
	if r := invoke(t, c, "peek", map[string]int{}); string(r.Response.Result) != `{"status":404}` {
		t.Errorf("a function that asks for the meters gets %s", r.Response.Result)
	}
}

// needPackages skips a test that imports what `make build` installs for functions.
func needPackages(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("../bin/runtimes/python/packages/redis"); err != nil {
		t.Skip("the Python packages for functions are not installed; make build installs them")
	}
}

const stateful = `
import os, redis
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)

def main(args):
    before = state.get("last")
    state.set("last", args["n"])
    state.hset("all", mapping={str(args["n"]): "seen"})
    return {"before": before, "count": state.incr("count"), "all": state.hgetall("all")}
`

// TestStateThroughRedisClients writes with redis-py in a function, and reads with a Go client from outside.
func TestStateThroughRedisClients(t *testing.T) {
	t.Parallel()
	needPackages(t)
	s := start(t, server.Options{Redis: true})
	c := client(t, s)
	putPython(t, c, map[string]string{"stateful": stateful})
	for i, want := range []string{
		`{"before":null,"count":1,"all":{"7":"seen"}}`,
		`{"before":"7","count":2,"all":{"7":"seen","8":"seen"}}`,
	} {
		r := invoke(t, c, "stateful", map[string]int{"n": 7 + i})
		equalJSON(t, r.Response.Result, want)
	}
	user, key, _ := strings.Cut(s.Auth, ":")
	outside := redis.NewClient(&redis.Options{Addr: s.Redis, Username: user, Password: key, DialTimeout: time.Minute, ReadTimeout: time.Minute})
	defer outside.Close()
	if last, err := outside.Get(t.Context(), "last").Result(); err != nil || last != "8" {
		t.Errorf("outside, last is %q (%v)", last, err)
	}
	if count, err := outside.Incr(t.Context(), "count").Result(); err != nil || count != 3 {
		t.Errorf("outside, count is %d (%v)", count, err)
	}
	stranger := redis.NewClient(&redis.Options{Addr: s.Redis, MaxRetries: -1, DialTimeout: time.Minute, ReadTimeout: time.Minute})
	defer stranger.Close()
	if got, err := stranger.Get(t.Context(), "last").Result(); err == nil {
		t.Errorf("without a key, last is %q", got)
	}
}

func equalJSON(t *testing.T, got json.RawMessage, want string) {
	t.Helper()
	var g, w any
	if json.Unmarshal(got, &g) != nil || json.Unmarshal([]byte(want), &w) != nil {
		t.Fatalf("got %s, want %s", got, want)
	}
	gotText, _ := json.Marshal(g) // both were just decoded
	wantText, _ := json.Marshal(w)
	if string(gotText) != string(wantText) {
		t.Errorf("got %s, want %s", gotText, wantText)
	}
}

// TestRecordTellsTimes looks at the moments and annotations of a cold and a warm record.
func TestRecordTellsTimes(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	putPython(t, c, map[string]string{"wait": "import time\n\ndef main(args):\n    time.sleep(0.02)\n    print('waited')\n    return {}\n"})
	cold := stored(t, c, invoke(t, c, "wait", nil).ActivationID)
	warm := stored(t, c, invoke(t, c, "wait", nil).ActivationID)
	for _, r := range []*server.Record{cold, warm} {
		if r.Duration < 20 || r.End-r.Start < 20 || r.Annotation("waitTime") == nil {
			t.Errorf("a record of a function that waits 20 ms: start %d, end %d, duration %d, annotations %v", r.Start, r.End, r.Duration, r.Annotations)
		}
		if len(r.Logs) != 1 || !strings.HasSuffix(r.Logs[0], "stdout: waited") {
			t.Errorf("logs %q", r.Logs)
		}
	}
	if cold.Annotation("initTime") == nil || warm.Annotation("initTime") != nil {
		t.Errorf("initTime is %s cold and %s warm; it belongs to cold starts alone", cold.Annotation("initTime"), warm.Annotation("initTime"))
	}
}

// TestActivationsLeaveNothingToTheNext leaves a file, a process and a global behind, and looks for them. The global alone stays.
func TestActivationsLeaveNothingToTheNext(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{}))
	putPython(t, c, map[string]string{"messy": `
import os, subprocess, time
seen = []

def command(pid):
    try:
        return open(f"/proc/{pid}/cmdline", "rb").read()
    except OSError: # one that had ended, and is collected just now
        return b""

def main(args):
    seen.append(1)
    found = {"files": os.listdir("/tmp"), "global": len(seen), "processes": sum(
        b"leftover" in command(p) for p in os.listdir("/proc") if p.isdigit())}
    open("/tmp/leftover", "w").close()
    subprocess.Popen(["python3", "-c", "import time; time.sleep(600) # leftover"])
    return found
`})
	for n := 1; n <= 3; n++ {
		r := invoke(t, c, "messy", nil)
		equalJSON(t, r.Response.Result, fmt.Sprintf(`{"files":[],"global":%d,"processes":0}`, n))
	}
}
