package test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"forerun.dev/forerun/test/server"
)

// cacheHeader says which way an annotated action went.
const cacheHeader = "X-Forerun-Cache"

const cacheReads = `
import os, redis
def main(args):
    print("it runs")
    store = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)
    return {"trip": store.get("trip"), "seats": store.hgetall("seats")}
`

const cachePasses = `
def main(args):
    return args
`

// cacheRemembers is for a process that stays: it reads a record once.
const cacheRemembers = `
import os, redis
kept = {}
def main(args):
    if not kept:
        kept["trip"] = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True).get("trip")
    return kept
`

// cacheThreads has a thread once it is loaded.
const cacheThreads = `
import threading, time
threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
def main(args):
    return {}
`

const cacheCalls = `
import base64, json, os, urllib.request
def main(args):
    r = urllib.request.Request(os.environ["__OW_API_HOST"] + "/api/v1/namespaces/_/actions/remembers?blocking=true&result=true", b"{}")
    r.add_header("Authorization", "Basic " + base64.b64encode(os.environ["__OW_API_KEY"].encode()).decode())
    r.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(r) as answer:
        return json.load(answer)
`

// cacheLies have an effect, or read what has no version, whatever their annotation says.
var cacheLies = map[string]struct{ code, want string }{
	"writes": {`
import os, redis
def main(args):
    return {"n": redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None).incr("count")}
`, `miss; it writes "count"`},
	"connects": {`
import socket
def main(args):
    try:
        socket.create_connection(("192.0.2.1", 9), 0.01)
    except OSError:
        pass
    return {}
`, "miss; it reaches for the outside"},
	"sends": {`
import socket
def main(args):
    try:
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 9))
    except OSError:
        pass
    return {}
`, "miss; it reaches for the outside"},
	"loads": {`
import socket
try:
    socket.create_connection(("192.0.2.1", 9), 0.01)
except OSError:
    pass
def main(args):
    return {}
`, "miss; it reaches for the outside"},
	"lists": {`
import os, redis
def main(args):
    redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None).keys("*")
    return {}
`, "miss; KEYS reads something that has no version"},
	"lives": {`
import os, redis
def main(args):
    return {"ttl": redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None).ttl("trip")}
`, "miss; TTL reads something that has no version"},
}

// putCached deploys an annotated Python action.
func putCached(t *testing.T, c *server.Client, name, code string) {
	t.Helper()
	put(t, c, name, map[string]any{
		"exec": map[string]any{"kind": "python:3", "code": code}, "annotations": []any{map[string]any{"key": "state_cache", "value": true}},
	})
}

// asked invokes an action, and returns its header of the cache, its result and its id.
func asked(t *testing.T, c *server.Client, name string, headers ...string) (cache, result, id string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+"/api/v1/namespaces/_/actions/"+name+"?blocking=true&result=true", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	user, key, _ := strings.Cut(c.Auth, ":")
	r.SetBasicAuth(user, key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, body := send(t, r)
	return answer.Header.Get(cacheHeader), body, answer.Header.Get("X-Openwhisk-Activation-Id")
}

// TestCache: an annotated action, alone and in a sequence, is answered from a result until another client writes what it read, with speculation
// and without. An action that has an effect, or reads what has no version, is executed each time.
func TestCache(t *testing.T) {
	t.Parallel()
	needPackages(t)
	for _, speculate := range []string{"all", "off"} {
		t.Run(speculate, func(t *testing.T) {
			t.Parallel()
			s := start(t, server.Options{Redis: true, Args: []string{"--speculate", speculate}})
			c, outside := client(t, s), redisClient(s)
			defer func() { _ = outside.Close() }()
			putCached(t, c, "reads", cacheReads)
			putPython(t, c, map[string]string{"passes": cachePasses})
			if err := c.PutSequence(t.Context(), "seq", "reads", "passes"); err != nil {
				t.Fatal(err)
			}
			must := func(want, result string, headers ...string) string {
				t.Helper()
				cache, got, id := asked(t, c, "reads", headers...)
				if cache != want || got != result {
					t.Errorf("%q gave %s, not %q and %s", cache, got, want, result)
				}
				return id
			}
			first := must("miss; no result on this input is kept", `{"seats":{},"trip":null}`)
			hit := stored(t, c, must("hit", `{"seats":{},"trip":null}`))
			if string(hit.Annotation("cached")) != `"`+first+`"` || len(hit.Logs) > 0 || hit.ActivationID == first {
				t.Errorf("the record of a hit: %+v", hit)
			}
			if err := outside.HSet(t.Context(), "seats", "12", "free").Err(); err != nil {
				t.Fatal(err)
			}
			must(`stale; "seats" was written`, `{"seats":{"12":"free"},"trip":null}`)
			must("hit", `{"seats":{"12":"free"},"trip":null}`)
			must("bypass; the request says so", `{"seats":{"12":"free"},"trip":null}`, cacheHeader, "bypass")

			if cache, got, id := asked(t, c, "seq"); cache != "" || got != `{"seats":{"12":"free"},"trip":null}` {
				t.Errorf("%q, %s", cache, got)
			} else if steps := stored(t, c, id).Logs; len(steps) != 2 || stored(t, c, steps[0]).Annotation("cached") == nil || stored(t, c, steps[1]).Annotation("cached") != nil {
				t.Errorf("a sequence of %v", steps)
			}
			if err := outside.Set(t.Context(), "trip", "Ulm", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if _, got, id := asked(t, c, "seq"); got != `{"seats":{"12":"free"},"trip":"Ulm"}` || stored(t, c, stored(t, c, id).Logs[0]).Annotation("cached") != nil {
				t.Errorf("after a write it gave %s", got)
			}
			must("hit", `{"seats":{"12":"free"},"trip":"Ulm"}`)
			remembersNothing(t, c, outside)
			staysCurrent(t, s, c)

			for name, lie := range cacheLies {
				putCached(t, c, name, lie.code)
				asked(t, c, name)
				for range 2 {
					if got, _, _ := asked(t, c, name); got != lie.want {
						t.Errorf("%s: %q, not %q", name, got, lie.want)
					}
				}
			}
			if n, err := outside.Get(t.Context(), "count").Int(); err != nil || n != 3 {
				t.Errorf("of 3 invocations that count %d did (%v)", n, err)
			}
		})
	}
}

// remembersNothing: no result of an action stands on what the process of a function that it called remembers.
func remembersNothing(t *testing.T, c *server.Client, outside *redis.Client) {
	t.Helper()
	put(t, c, "remembers", map[string]any{
		"exec": map[string]any{"kind": "python:3", "code": cacheRemembers}, "annotations": []any{map[string]any{"key": "keep-process", "value": true}},
	})
	putCached(t, c, "calls", cacheCalls)
	for _, trip := range []string{"Ulm", "Bonn", "Kiel"} {
		if err := outside.Set(t.Context(), "trip", trip, 0).Err(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if cache, got, _ := asked(t, c, "calls"); cache == "hit" && got != fmt.Sprintf(`{"trip":%q}`, trip) {
				t.Errorf("the record is %s, and a hit gives %s", trip, got)
			}
		}
	}
}

// TestCacheOff: with --cache off annotated actions are executed each time, and the answer says why.
func TestCacheOff(t *testing.T) {
	t.Parallel()
	c := client(t, start(t, server.Options{Args: []string{"--cache", "off"}}))
	putCached(t, c, "passes", cachePasses)
	for range 2 {
		cache, _, id := asked(t, c, "passes")
		if cache != "off; the server was started with --cache off" || stored(t, c, id).Annotation("cached") != nil {
			t.Errorf("%q", cache)
		}
	}
}

const cacheQuotes = `
import os, redis
def main(args):
    store = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None, decode_responses=True)
    return {"price": store.get("price"), "given": sorted(args)}
`

// TestCacheCommands: a user sees results, why the next invocation is a hit or not, and drops them; the operator switches the cache off, and it
// stays off over a restart.
func TestCacheCommands(t *testing.T) {
	t.Parallel()
	needPackages(t)
	o := server.Options{Redis: true, Data: filepath.Join(t.TempDir(), "data")}
	s := start(t, o)
	sh, outside := newShell(t, s), redisClient(s)
	defer func() { _ = outside.Close() }()
	sh.save(t, map[string]string{"quote.py": cacheQuotes})
	const invoke, explain = "invoke quote -r -o jsonl -p city Ulm -p id ", "cache explain quote -p city Ulm -p id "
	sh.follow(t, []step{
		{"action create quote quote.py -a state_cache true -a cache-ttl 9600h", 4, "", "out of bounds"},
		{`action create quote quote.py -a state_cache true -a cache-ttl 720h -a cache-key '["city"]'`, 0, "", "ok: "},
		{explain + "1", 0, "miss: no result on this input is kept; the next call executes", ""},
		{invoke + "1", 0, `={"given":["city"],"price":null}` + "\n", ""},
		{invoke + "2", 0, `={"given":["city"],"price":null}` + "\n", ""},
		{explain + "3", 0, "the next call gives its result", ""},
		{"cache list quote", 0, "/guest/quote", ""},
		{"cache list --show", 0, `"price":null`, ""},
		{"cache list --show -o jsonl", 0, `"given":{"city":"Ulm"}`, ""},
		{"cache stats -o jsonl", 0, `"hits":1,"misses":1`, ""},
	})
	if err := outside.Set(t.Context(), "price", 7, 0).Err(); err != nil {
		t.Fatal(err)
	}
	operator := " --operator " + filepath.Join(o.Data, "operator")
	sh.follow(t, []step{
		{explain + "4", 0, `stale: record "price" is at version `, ""},
		{explain + "4", 0, "it was absent when it was read; the next call executes", ""},
		{invoke + "4", 0, `={"given":["city"],"price":"7"}` + "\n", ""},
		{"cache purge --record trip", 0, "", "ok: dropped 0 known results"},
		{`cache purge quote --input '{"city": "Ulm"}'`, 0, "", "ok: dropped 1 known results"},
		{"cache purge --input {}", 2, "", "--input needs ACTION"},
		{explain + "5", 0, "miss: no result on this input is kept", ""},
		{"cache explain none", 4, "", "There is no action /guest/none."},
		{"cache off" + operator, 0, "", "ok: turned off the result cache of the server"},
		{explain + "6", 0, "off: the operator has switched the cache off; the next call executes", ""},
	})
	if hits, stale := gauge(t, s, `forerun_cache_requests_total{outcome="hit"}`), gauge(t, s, `forerun_cache_requests_total{outcome="stale"}`); hits != "1" || stale != "1" {
		t.Errorf("%q hits and %q stale are counted", hits, stale)
	}
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
	s = start(t, o)
	eventually(t, func() bool {
		return strings.Contains(s.Log(), "the result cache is off because the operator has switched it off")
	})
	sh = newShell(t, s)
	sh.follow(t, []step{
		{explain + "7", 0, "off: the operator has switched the cache off", ""},
		{"cache on" + operator, 0, "", "ok: turned on the result cache of the server"},
		{invoke + "7", 0, `={"given":["city"],"price":"7"}` + "\n", ""},
		{explain + "8", 0, "hit: ", ""},
		{"action update quote --web true", 0, "/api/v1/web/guest/default/quote", "ok: "},
	})
	putCached(t, client(t, s), "clock", "import time\ndef main(args):\n    return {'at': time.time_ns(), 'is': 1}\n")
	for _, request := range [][]string{{}, {cacheHeader, "bypass"}} {
		asked(t, client(t, s), "clock", request...)
	}
	const wrong = `off; it gave another "at" on the same input and records, so its results are suspended`
	if got, _, _ := asked(t, client(t, s), "clock"); got != wrong {
		t.Errorf("a wrong annotation: %q", got)
	}
	eventually(t, func() bool { return strings.Contains(s.Log(), "its results are suspended") })
	sh.follow(t, []step{
		{"activation trace --last", 0, `cache off: it gave another "at"`, ""},
		{"cache stats", 0, `it gave another "at"`, ""},
		{"cache resume clock", 0, "", "ok: resumed results of action clock"},
		{"cache explain clock", 0, "miss: no result on this input is kept", ""},
	})
	put(t, client(t, s), "threads", map[string]any{
		"exec":        map[string]any{"kind": "python:3", "code": cacheThreads},
		"annotations": []any{map[string]any{"key": "keep-process", "value": true}, map[string]any{"key": "state_cache", "value": true}},
	})
	const why = "miss; its process had served others before, and a new process cannot give the same behind an answer: its code shares memory between its processes, or has threads, once it is loaded"
	eventually(t, func() bool {
		got, _, _ := asked(t, client(t, s), "threads")
		return got == why
	})
	get := func(tag string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/web/guest/default/quote.json?city=Ulm", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("If-None-Match", tag)
		answer, _ := send(t, r)
		return answer
	}
	first := get(`"none"`)
	if again := get(first.Header.Get("ETag")); first.StatusCode != http.StatusOK || again.StatusCode != http.StatusNotModified || again.Header.Get("Cache-Status") != "Forerun; hit" || again.Header.Get("Age") == "" {
		t.Errorf("on the web: %d %v, then %d %v", first.StatusCode, first.Header, again.StatusCode, again.Header)
	}
}
