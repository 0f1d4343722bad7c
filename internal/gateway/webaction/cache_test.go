package webaction

import (
	"strings"
	"testing"
)

// TestConditionalAnswers: GET and HEAD of an annotated action are answered with a tag, and 304 without an execution where the client has the
// answer.
func TestConditionalAnswers(t *testing.T) {
	w := newWorld(t)
	w.put("f", `{"body":"<p>hello</p>"}`, "state_cache", "true", "cache-key", `["city"]`, "cache-ttl", `"1h"`)
	w.put("tagged", `{"body":"x","headers":{"ETag":"W/\"mine\"","Cache-Status":"Origin; hit"}}`, "state_cache", "true")
	w.put("lost", `{"body":"x","statusCode":404}`, "state_cache", "true")
	w.put("plain", `{"body":"x"}`)
	first := w.ask("GET", "guest/default/f?city=Ulm&id=1", "")
	tag := first.header.Get("Etag")
	if first.status != 200 || first.header.Get("Cache-Status") != "Forerun; fwd=miss; detail=no_row" || len(tag) < 10 || tag[0] != '"' || first.header.Get("Age") != "" {
		t.Errorf("%d %v", first.status, first.header)
	}
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
		cache, body  string
		runs         int64
	}{
		{"GET", "f?city=Ulm&id=2", nil, 200, "Forerun; hit", "<p>hello</p>", 0},
		{"GET", "f?city=Ulm", []string{"If-None-Match", tag}, 304, "Forerun; hit", "", 0},
		{"GET", "f?city=Ulm", []string{"If-None-Match", `"a", W/` + tag}, 304, "Forerun; hit", "", 0},
		{"GET", "f?city=Ulm", []string{"If-None-Match", "*"}, 304, "Forerun; hit", "", 0},
		{"GET", "f?city=Ulm", []string{"If-None-Match", `"a"`}, 200, "Forerun; hit", "<p>hello</p>", 0},
		{"GET", "f?city=Ulm", []string{"Cache-Control", "no-cache"}, 200, "Forerun; hit", "<p>hello</p>", 0},
		{"GET", "f?city=Bonn", []string{"If-None-Match", tag}, 304, "Forerun; fwd=miss; detail=no_row", "", 1},
		{"GET", "f?city=Ulm", []string{"Cookie", "a=b"}, 200, "Forerun; fwd=bypass; detail=bypass", "<p>hello</p>", 1},
		{"GET", "f?city=Ulm", []string{"Authorization", "Bearer x"}, 200, "Forerun; fwd=bypass; detail=bypass", "<p>hello</p>", 1},
		{"POST", "f?city=Ulm", []string{"If-None-Match", tag}, 200, "", "<p>hello</p>", 1},
		{"GET", "tagged", nil, 200, "Origin; hit,Forerun; fwd=miss; detail=no_row", "x", 1},
		{"GET", "tagged", []string{"If-None-Match", `"mine"`}, 304, "Origin; hit,Forerun; fwd=miss; detail=no_row", "", 1},
		{"GET", "tagged", []string{"If-None-Match", `"mine"`}, 304, "Origin; hit,Forerun; hit", "", 0},
		{"GET", "tagged", []string{"Cookie", "a=b"}, 200, "Origin; hit,Forerun; fwd=miss; detail=no_row", "x", 1},
		{"GET", "tagged", []string{"Cookie", "a=b"}, 200, "Origin; hit,Forerun; hit", "x", 0}, // it counts
		{"GET", "lost", []string{"If-None-Match", "*"}, 404, "Forerun; fwd=miss; detail=no_row", "x", 1},
		{"GET", "plain", []string{"If-None-Match", "*"}, 200, "", "x", 1},
	} {
		before := w.runs.Load()
		r := w.ask(c.method, "guest/default/"+c.path, "", c.headers...)
		if got := strings.Join(r.header.Values("Cache-Status"), ","); r.status != c.status || got != c.cache || r.body != c.body || w.runs.Load()-before != c.runs {
			t.Errorf("%s %s %v: %d %q %s, %d runs", c.method, c.path, c.headers, r.status, got, r.body, w.runs.Load()-before)
		}
		if hit := strings.HasPrefix(c.path, "f") && c.cache == "Forerun; hit"; hit != (r.header.Get("Age") != "") || hit && r.header.Get("Etag") != tag {
			t.Errorf("%s %v: %v", c.path, c.headers, r.header)
		}
		if plain := c.path == "plain" || c.path == "lost"; plain && r.header.Get("Etag") != "" {
			t.Errorf("%s has a tag", c.path)
		}
	}
	if r := w.ask("HEAD", "guest/default/f?city=Ulm", ""); r.status != 200 || r.header.Get("Etag") != tag {
		t.Errorf("HEAD: %d %v", r.status, r.header)
	}
}

// TestAnswersThatAreNotKept: what the headers of an answer forbid is executed each time.
func TestAnswersThatAreNotKept(t *testing.T) {
	w := newWorld(t)
	for headers, want := range map[string]string{
		`"Set-Cookie":"a=b"`:                                "miss; detail=sets_cookie",
		`"set-cookie":["a=b","c=d"]`:                        "miss; detail=sets_cookie",
		`"Cache-Control":"max-age=5, no-store"`:             "miss; detail=no_store",
		`"Cache-Control":"PRIVATE=\"x\""`:                   "miss; detail=no_store",
		`"Vary":"Accept-Language"`:                          "hit",
		`"Vary":"accept-language, Cookie"`:                  "miss; detail=varies",
		`"Vary":"*"`:                                        "miss; detail=varies",
		`"Cache-Control":"max-age=0"`:                       "stale; detail=ttl_over",
		`"Cache-Control":"max-age=1000, s-maxage=0"`:        "stale; detail=ttl_over",
		`"Cache-Control":"max-age=x"`:                       "stale; detail=ttl_over",
		`"Cache-Control":"max-age=1000"`:                    "hit",
		`"Cache-Control":"max-age=99999999999999999"`:       "hit",
		`"Content-Type":"text/html","Cache-Control":"none"`: "hit",
	} {
		w.put("f", `{"body":"x","headers":{`+headers+`}}`, "state_cache", "true", "cache-key", `["__ow_headers.accept-language"]`)
		w.ask("GET", "guest/default/f", "")
		r := w.ask("GET", "guest/default/f", "")
		if got := strings.TrimPrefix(strings.TrimPrefix(r.header.Get("Cache-Status"), "Forerun; "), "fwd="); got != want {
			t.Errorf("%s: %q, not %q", headers, got, want)
		}
	}
}
