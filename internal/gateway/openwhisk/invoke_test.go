package openwhisk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/speculate"
)

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

func TestInvoke(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	w.deploy("fail", "fail")
	w.deploy("crash", "crash")
	for _, test := range []struct {
		name, path, body string
		status           int
		member, want     string
	}{
		{"blocking", "echo?blocking=true", `{"b":1.0,"a":"<&>"}`, 200, "response", `{"result":{"a":"<&>","b":1},"size":19,"status":"success","success":true}`},
		{"result", "echo?blocking=true&result=true", `{"a":1}`, 200, "a", `1`},
		{"no body", "echo?blocking=true", "", 200, "response.result", `{}`},
		{"application error", "fail?blocking=true", `{}`, 502, "response.status", `"application error"`},
		{"its result", "fail?blocking=true&result=true", `{}`, 502, "error", `"no"`},
		{"developer error", "crash?blocking=true", `{}`, 502, "response.status", `"action developer error"`},
		{"result without blocking", "echo?result=true", `{}`, 202, "response", "none"},
		{"not there", "none?blocking=true", `{}`, 404, "error", `"The requested resource does not exist."`},
		{"no object", "echo?blocking=true", `[1]`, 400, "error", `"The request content was malformed:\nThe content must be a JSON object, not an array."`},
		{"no boolean", "echo?blocking=perhaps", `{}`, 400, "error", `"The query parameter 'blocking' was malformed:\n'perhaps' is not a valid Boolean value"`},
		{"too long a wait", "echo?blocking=true&timeout=60001", `{}`, 400, "error", `"The query parameter 'timeout' was malformed:\nTimeout must be number of milliseconds up to 60000."`},
	} {
		r := w.request("POST", actions+test.path, test.body)
		if got := member(t, r.body, test.member); r.status != test.status || got != test.want {
			t.Errorf("%s: %d %s", test.name, r.status, r.body)
		}
		if id := r.header.Get("x-openwhisk-activation-id"); (len(id) == 32) != (r.status != 404 && r.status != 400) {
			t.Errorf("%s: the header names activation %q", test.name, id)
		}
	}
}

func TestInvokeWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		let := make(chan struct{})
		w.functions["slow"] = func(r *forerun.Run) forerun.RunEnd {
			<-let
			return echo(r)
		}
		w.deploy("slow", "slow")
		for _, query := range []string{"", "?blocking=true", "?blocking=true&timeout=10"} {
			r := w.request("POST", actions+"slow"+query, `{}`)
			id := r.header.Get("x-openwhisk-activation-id")
			if r.status != http.StatusAccepted || r.body != `{"activationId":"`+id+`"}` {
				t.Errorf("%q: %d %s, header %s", query, r.status, r.body, id)
			}
			if got := w.request("GET", activations+"/"+id, ""); got.status != 404 {
				t.Errorf("before its end: %d", got.status)
			}
			let <- struct{}{}
			synctest.Wait()
			if got := w.request("GET", activations+"/"+id, ""); got.status != 200 {
				t.Errorf("after its end: %d %s", got.status, got.body)
			}
		}
	})
}

func TestBlockingInvocationOutlastsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.functions["minutes"] = func(r *forerun.Run) forerun.RunEnd {
			time.Sleep(61 * time.Second)
			return echo(r)
		}
		w.deploy("minutes", "minutes")
		begin := time.Now()
		r := w.request("POST", actions+"minutes?blocking=true", `{}`)
		if waited := time.Since(begin); r.status != http.StatusAccepted || waited != MaxWait {
			t.Errorf("%d after %s", r.status, waited)
		}
	})
}

// TestShortWaitsAreSaid: who waits for less than the longest time may be told an id before the end, and the controller hears of that.
func TestShortWaitsAreSaid(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	for query, want := range map[string]bool{"": false, "&timeout=60000": false, "&timeout=20": true} {
		r := httptest.NewRequest(http.MethodPost, actions+"echo?blocking=true"+query, http.NoBody)
		c := &call{r: r, query: r.URL.Query(), caller: gateway.Caller{Namespace: "guest"}}
		terms, err := c.terms()
		if err != nil {
			t.Fatal(err)
		}
		request, err := w.api.admit(c, forerun.Name{Namespace: "guest", Entity: "echo"}, json.RawMessage(`{}`), terms, w.api.Quotas.Invocation)
		if err != nil || request.Short != want {
			t.Errorf("%q: %v, %v", query, request.Short, err)
		}
	}
}

func TestPayloadLimit(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	payload := forerun.DefaultBounds().Payload
	body := `{"a":"` + strings.Repeat("x", payload-8) + `"}`
	if r := w.request("POST", actions+"echo?blocking=true&result=true", body); r.status != 200 || len(r.body) != payload {
		t.Errorf("at the limit: %d, %d bytes", r.status, len(r.body))
	}
	r := w.request("POST", actions+"echo", body+" ")
	if want := `"Request larger than allowed: 6291457 > 6291456 bytes."`; r.status != 413 || member(t, r.body, "error") != want {
		t.Errorf("over it: %d %s", r.status, r.body)
	}
}

func TestContentType(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	for given, want := range map[string]int{
		"": 202, "application/json": 202, "application/json; charset=UTF-8": 202,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, ";;": 415,
	} {
		if r := w.request("POST", actions+"echo", `{}`, "Content-Type", given); r.status != want {
			t.Errorf("%q: %d %s", given, r.status, r.body)
		}
	}
}

func TestFinalParametersStand(t *testing.T) {
	w := newWorld(t)
	body := `{"exec":{"kind":"python:3","code":"echo"},"parameters":[{"key":"fixed","value":1},{"key":"open","value":null}],"annotations":[{"key":"final","value":true}]}`
	if r := w.request("PUT", actions+"final", body); r.status != 200 {
		t.Fatal(r)
	}
	for input, want := range map[string]int{`{"other":1}`: 200, `{"open":2}`: 200, `{"fixed":2}`: 400} {
		if r := w.request("POST", actions+"final?blocking=true", input); r.status != want {
			t.Errorf("%s: %d %s", input, r.status, r.body)
		}
	}
}

func TestFunctionCallsFunction(t *testing.T) {
	w := newWorld(t)
	var inner reply
	var late *world
	w.functions["caller"] = func(r *forerun.Run) forerun.RunEnd {
		late = w.as(r)
		inner = late.request("POST", actions+"echo?blocking=true", `{"n":1}`)
		return echo(r)
	}
	w.deploy("echo", "echo")
	w.deploy("caller", "caller")
	outer := w.request("POST", actions+"caller?blocking=true", `{}`)
	if outer.status != 200 || inner.status != 200 || member(t, inner.body, "cause") != member(t, outer.body, "activationId") {
		t.Errorf("outer %s, inner %s", outer.body, inner.body)
	}
	if r := late.request("GET", activations, ""); r.status != 401 {
		t.Errorf("the token is good for %d when its activation is over", r.status)
	}
}

func TestSequenceAndComposition(t *testing.T) {
	w := newWorld(t)
	w.functions["true"] = func(*forerun.Run) forerun.RunEnd { return forerun.RunEnd{Result: []byte(`{"value":true}`)} }
	w.deploy("echo", "echo")
	w.deploy("true", "true")
	if r := w.request("PUT", actions+"seq", `{"exec":{"kind":"sequence","components":["/_/echo","/guest/true"]}}`); r.status != 200 {
		t.Fatal(r)
	}
	document := `{"type":"if","test":{"type":"action","name":"/_/true"},"consequent":{"type":"action","name":"/_/echo"},"alternate":{"type":"action","name":"/_/true"}}`
	if r := w.request("PUT", actions+"choose", `{"exec":{"kind":"nodejs:default","code":"//"},"annotations":[{"key":"conductor","value":`+document+`}]}`); r.status != 200 {
		t.Fatal(r)
	}
	for name, want := range map[string]string{"seq": `{"value":true}`, "choose": `{"n":1}`} {
		r := w.request("POST", actions+name+"?blocking=true", `{"n":1}`)
		if r.status != 200 || member(t, r.body, "response.result") != want || member(t, r.body, "logs.1") == "none" {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
}

// TestSpeculateHeaders: one that is empty, and one of two, is not taken for none: neither where an action is invoked, nor again, nor where a
// trigger is fired, of which nothing may come then.
func TestSpeculateHeaders(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	w.must(w.request("PUT", namespaces+"_/triggers/t", ""))
	w.must(w.request("PUT", namespaces+"_/rules/r", `{"trigger":"/_/t","action":"/_/echo"}`))
	w.must(w.request("POST", actions+"echo?blocking=true", "", once, "k"))
	for want, given := range map[string][]string{
		"":                                       {"all"},
		`\"\" does not say how far to speculate`: {""},
		"comes 2 times: send it once":            {"all", "off"},
	} {
		for _, path := range []string{actions + "echo?blocking=true", namespaces + "_/triggers/t"} {
			for _, key := range []string{"", "k"} {
				r := httptest.NewRequestWithContext(t.Context(), "POST", path, nil)
				r.SetBasicAuth(w.auth.UUID, w.auth.Key)
				r.Header["X-Forerun-Speculate"] = given
				if key != "" {
					r.Header.Set(once, key)
				}
				answer := httptest.NewRecorder()
				w.door.ServeHTTP(answer, r)
				if (answer.Code == 400) != (want != "") || !strings.Contains(answer.Body.String(), want) {
					t.Errorf("POST %s, key %q, %q: %d %s", path, key, given, answer.Code, answer.Body)
				}
			}
		}
	}
}

// TestSpeculateIgnored: settings that the server does not allow are named in the answer, whichever that is.
func TestSpeculateIgnored(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	w.must(w.request("PUT", namespaces+"_/triggers/t", ""))
	w.must(w.request("PUT", namespaces+"_/rules/r", `{"trigger":"/_/t","action":"/_/echo"}`))
	for _, path := range []string{actions + "echo?blocking=true", actions + "echo", namespaces + "_/triggers/t"} {
		for given, want := range map[string]string{"": "", "off": "", "all; depth=4; load=any": "all; load=any: the server has to be started with that, too"} {
			var headers []string
			if given != "" {
				headers = []string{"X-Forerun-Speculate", given}
			}
			answer := w.request("POST", path, "", headers...)
			if got := answer.header.Get("X-Forerun-Speculate-Ignored"); answer.status >= 300 || !strings.HasPrefix(got, want) || (got == "") != (want == "") {
				t.Errorf("POST %s with %q: %d, ignored %q", path, given, answer.status, got)
			}
		}
	}
}

// TestRefusedCallsAreNotKept: what a pure function gives because a call of it was refused, or answered before its end, it gives then only.
func TestRefusedCallsAreNotKept(t *testing.T) {
	w := newWorld(t)
	w.api.Controller.Speculation = speculate.Settings{Mode: speculate.All, Depth: 4}
	runs, path, ended := 0, "", make(chan struct{})
	w.functions["caller"] = func(r *forerun.Run) forerun.RunEnd {
		runs++
		inner := w.as(r).request("POST", actions+path, `{}`)
		if inner.status == http.StatusAccepted {
			close(ended)
		}
		return forerun.RunEnd{Result: fmt.Appendf(nil, `{"status":%d}`, inner.status)}
	}
	w.functions["slow"] = func(r *forerun.Run) forerun.RunEnd {
		<-ended
		return echo(r)
	}
	w.deploy("slow", "slow")
	w.deploy("caller", "caller", "pure-function", "true")
	for i, c := range []struct{ path, want string }{
		{"slow?blocking=true&timeout=1", `{"status":202}`},
		{"none?blocking=true", `{"status":404}`},
		{"slow?blocking=true", `{"status":200}`},
		{"none", `{"status":200}`}, // it is known now
	} {
		path = c.path
		r := w.request("POST", actions+"caller?blocking=true", `{}`)
		if got := member(t, r.body, "response.result"); got != c.want || runs != min(i+1, 3) {
			t.Errorf("%d, %s: %s after %d executions", i, path, got, runs)
		}
	}
}
