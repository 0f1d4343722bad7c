package openwhisk

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestCacheHeader: each answer of an annotated action says which way it went, and a hit has a record that names the execution.
func TestCacheHeader(t *testing.T) {
	w := newWorld(t)
	runs := 0
	w.functions["count"] = func(*forerun.Run) forerun.RunEnd {
		runs++
		return forerun.RunEnd{Result: json.RawMessage(`{}`)}
	}
	w.deploy("f", "count", "state_cache", "true")
	w.deploy("fails", "fail", "state_cache", "true")
	w.deploy("plain", "count")
	w.must(w.request("PUT", actions+"seq", `{"exec":{"kind":"sequence","components":["/_/f"]},"annotations":[{"key":"state_cache","value":true}]}`))
	first := ""
	for i, c := range []struct{ path, header, want string }{
		{"f?blocking=true", "", "miss; no result on this input is kept"},
		{"f?blocking=true", "", "hit"},
		{"f?blocking=true&result=true", "", "hit"},
		{"f?blocking=true", "bypass", "bypass; the request says so"},
		{"f", "", ""},
		{"seq?blocking=true", "", "bypass; a workflow has no results of its own: annotate its functions"},
		{"fails?blocking=true", "", "miss; no result on this input is kept"},
		{"fails?blocking=true", "", "miss; no result on this input is kept"},
		{"plain?blocking=true", "", ""},
		{"plain?blocking=true", "bypass", ""},
	} {
		answer := w.request("POST", actions+c.path, "", cacheHeader, c.header)
		if got := answer.header.Get(cacheHeader); got != c.want {
			t.Errorf("%s, %s: %q, not %q", c.path, c.header, got, c.want)
		}
		id := answer.header.Get("X-Openwhisk-Activation-Id")
		switch i {
		case 0:
			first = id
		case 1:
			record := w.must(w.request("GET", activations+"/"+id+"?trace=true", "")).body
			if of := member(t, record, "trace.cache.of"); of != `"`+first+`"` || member(t, record, "trace.cache.outcome") != `"hit"` || id == first {
				t.Errorf("a hit of %s: %s", first, record)
			}
			if !strings.Contains(record, `"key":"cached"`) || member(t, record, "logs") != "[]" {
				t.Errorf("the record of a hit: %s", record)
			}
		}
	}
	if runs != 4 {
		t.Errorf("it ran %d times, not for the first, the bypass and twice the plain one", runs)
	}
	for range 2 { // the second is the first's answer again
		if got := w.request("POST", actions+"f?blocking=true", `{"n":1}`, once, "k").header.Get(cacheHeader); got != "miss; no result on this input is kept" {
			t.Errorf("with a key: %q", got)
		}
	}
	w.api.Controller.Cache = false
	if got := w.request("POST", actions+"f?blocking=true", "").header.Get(cacheHeader); got != "off; the server was started with --cache off" {
		t.Errorf("off: %q", got)
	}
}

// TestCacheHeaderRefused: a request that says something else than bypass, or says it twice, is refused before anything is executed.
func TestCacheHeaderRefused(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo", "state_cache", "true")
	for want, given := range map[string][]string{
		`can only be bypass, which executes the action, not \"\"`:    {""},
		`can only be bypass, which executes the action, not \"off\"`: {"off"},
		"comes 2 times: send it once":                                {"bypass", "bypass"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", actions+"echo?blocking=true", nil)
		r.SetBasicAuth(w.auth.UUID, w.auth.Key)
		r.Header[cacheHeader] = given
		answer := httptest.NewRecorder()
		w.door.ServeHTTP(answer, r)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%q: %d %s", given, answer.Code, answer.Body)
		}
	}
	if list := w.request("GET", activations, "").body; list != "[]" {
		t.Errorf("a refused request has records: %s", list)
	}
}

func TestInASCII(t *testing.T) {
	if got := inASCII("\"tr\u00edp\r\n\U0001f600~\" was written"); got != `"tr\u00edp\u000d\u000a\U0001f600~" was written` {
		t.Error(got)
	}
}

// TestCacheAPI: a tenant sees and drops the results of its own actions.
func TestCacheAPI(t *testing.T) {
	w := newWorld(t)
	w.functions["one"] = func(*forerun.Run) forerun.RunEnd { return forerun.RunEnd{Result: json.RawMessage(`{"secret":1}`)} }
	w.deploy("f", "one", "state_cache", "true")
	const cache = "/api/v1/namespaces/_/cache"
	explain := func() string {
		return w.must(w.request("POST", cache+"/explain", `{"action":"f","input":{"a":1}}`)).body
	}
	if got := explain(); member(t, got, "outcome") != `"miss"` || member(t, got, "text") != `"miss: no result on this input is kept; the next call executes"` {
		t.Error(got)
	}
	first := w.request("POST", actions+"f?blocking=true", `{"a":1}`).header.Get("X-Openwhisk-Activation-Id")
	w.request("POST", actions+"f?blocking=true", `{"a":1}`)
	if got := explain(); member(t, got, "outcome") != `"hit"` || member(t, got, "of") != `"`+first+`"` || member(t, got, "reason.code") != `"pure"` {
		t.Error(got)
	}
	list := w.must(w.request("GET", cache+"/rows?action=f", "")).body
	if member(t, list, "0.of") != `"`+first+`"` || strings.Contains(list, "secret") {
		t.Errorf("a list without show: %s", list)
	}
	if shown := w.must(w.request("GET", cache+"/rows?show=true", "")).body; member(t, shown, "0.output") != `{"secret":1}` {
		t.Errorf("a list with show: %s", shown)
	}
	if skipped := w.must(w.request("GET", cache+"/rows?skip=5", "")).body; skipped != "[]" {
		t.Error(skipped)
	}
	stats := w.must(w.request("GET", cache, "")).body
	if member(t, stats, "0.hits") != "1" || member(t, stats, "0.misses") != "1" || member(t, stats, "0.rows") != "1" {
		t.Error(stats)
	}
	advice := w.must(w.request("GET", cache+"/advice?action=f", "")).body
	if member(t, advice, "0.class") != `"computational"` || member(t, advice, "0.annotated") != "true" || member(t, advice, "0.count") != "2" || !strings.Contains(advice, "nothing was seen against that") {
		t.Error(advice)
	}
	if r := w.request("GET", cache+"/advice?action=none", ""); r.status != http.StatusNotFound {
		t.Errorf("advice for no action: %d", r.status)
	}
	for _, c := range []struct{ body, want string }{
		{`{"action":"f","input":{"a":2}}`, `{"purged":0}`},
		{`{"record":"none"}`, `{"purged":0}`},
		{`{"action":"f","input":{ "a" : 1 }}`, `{"purged":1}`},
		{``, `{"purged":0}`},
	} {
		if got := w.must(w.request("POST", cache+"/purge", c.body)).body; strings.ReplaceAll(got, " ", "") != c.want {
			t.Errorf("%s: %s, not %s", c.body, got, c.want)
		}
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "/purge", `{"input":{}}`, 400},
		{"POST", "/purge", `{"action":"none"}`, 404},
		{"POST", "/explain", `{}`, 400},
		{"POST", "/explain", `{"action":"f","input":[]}`, 400},
		{"POST", "/explain", `{"action":"none"}`, 404},
		{"GET", "/rows?limit=x", "", 400},
		{"GET", "/rows?what=x", "", 400},
		{"DELETE", "/rows", "", 405},
	} {
		if r := w.request(c.method, cache+c.path, c.body); r.status != c.status {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, r.status, r.body)
		}
	}
	if r := w.request("GET", "/api/v1/namespaces/other/cache", ""); r.status != 403 {
		t.Errorf("another's: %d %s", r.status, r.body)
	}
}
