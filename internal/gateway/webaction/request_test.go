package webaction

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// FuzzInput: whatever a request carries, what it says of itself and what is final in the action cannot be replaced.
func FuzzInput(f *testing.F) {
	f.Add("a=b&c=%20", "a=b", "application/x-www-form-urlencoded", false)
	f.Add("", `{"__ow_user":"x"}`, "application/json", false)
	f.Add("fixed=2", `[1]`, "application/json", false)
	f.Add("", `{"fixed":1,"a":{"b":[1.0]}}`, "application/json", true)
	f.Add("&&=&a", "\xff\x00", "text/plain; charset=x", false)
	f.Fuzz(func(t *testing.T, query, body, contentType string, raw bool) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", contentType)
		action := &forerun.Action{
			Annotations: []forerun.KeyValue{{Key: "final", Value: json.RawMessage("true")}},
			Parameters:  []forerun.KeyValue{{Key: "fixed", Value: json.RawMessage("1")}},
		}
		if raw {
			action.Annotations = append(action.Annotations, forerun.KeyValue{Key: "raw-http", Value: json.RawMessage("true")})
		}
		input, err := (&request{Request: r, body: []byte(body), rest: "/rest"}).input(action)
		if err != nil {
			if kind := forerun.KindOf(err); kind != forerun.Invalid {
				t.Errorf("the error is of the kind %d: %v", kind, err)
			}
			return
		}
		var p parameters
		if err := json.Unmarshal(input, &p); err != nil {
			t.Fatalf("%s: %v", input, err)
		}
		if string(p[methodParameter]) != `"post"` || string(p[pathParameter]) != `"/rest"` || p[userParameter] != nil || p["fixed"] != nil {
			t.Errorf("the parameters are %s", input)
		}
	})
}

// TestConsoleCookie: a function is not told the console's cookie, which browsers send to every port of its host.
func TestConsoleCookie(t *testing.T) {
	for cookies, want := range map[string]string{"forerun-console=s; a=b": "a=b", "forerun-console=s": "", "a=b": "a=b"} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header["Cookie"] = []string{"x=y", cookies}
		input, err := (&request{Request: r}).input(new(forerun.Action))
		var given struct {
			Headers map[string]string `json:"__ow_headers"`
		}
		if err != nil || json.Unmarshal(input, &given) != nil || given.Headers["cookie"] != want {
			t.Errorf("of %q the function is told %s (%v)", cookies, input, err)
		}
	}
}
