package webaction

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"
)

// png is a small picture in base64.
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// Each case is a result and how it is answered; those of OpenWhisk's own tests are among them.
func TestAnswers(t *testing.T) {
	bytes, err := base64.StdEncoding.DecodeString(png)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	const (
		html, plain = "text/html; charset=UTF-8", "text/plain; charset=UTF-8"
		noHTTP      = "Response is not valid 'message/http'."
		mismatch    = "Response type in header did not match generated content type."
	)
	for _, c := range []struct {
		extension, result string
		status            int
		media, body       string // what is said of an error is its body
	}{
		{".json", `{"foobar":"foobar"}`, 200, jsonMedia, "{\n  \"foobar\": \"foobar\"\n}"},
		{".json", `{}`, 200, jsonMedia, "{\n\n}"},
		{".json", `{"a":[1,{"b":1.0}],"c":"<é>\n"}`, 200, jsonMedia, "{\n  \"a\": [1, {\n    \"b\": 1.0\n  }],\n  \"c\": \"<é>\\n\"\n}"},
		{".html", `{"html":"<html>hi</html>"}`, 200, html, "<html>hi</html>"},
		{".html", `{"html":"no","body":"<b>"}`, 200, html, "<b>"},
		{".html", `{"other":1}`, 400, jsonMedia, "Response is not valid 'text/html'."},
		{".svg", `{"svg":"<svg/>"}`, 200, "image/svg+xml", "<svg/>"},
		{".svg", `{"svg":1}`, 400, jsonMedia, "Response is not valid 'image/svg+xml'."},
		{".text", `{"text":"default text"}`, 200, plain, "default text"},
		{".text", `{"body":{"a":"A"}}`, 200, plain, "{\n  \"a\": \"A\"\n}"},
		{".text", `{"body":["a"]}`, 200, plain, `["a"]`},
		{".text", `{"body":true}`, 200, plain, "true"},
		{".text", `{"body":1}`, 200, plain, "1"},
		{".text", `{"body":null}`, 200, plain, "null"},
		{".text", `{"other":1}`, 404, jsonMedia, "Response does not include requested property."},

		{".http", `{}`, 204, "", ""},
		{".http", `{"body":""}`, 204, "", ""},
		{".http", `{"body":null}`, 204, "", ""},
		{".http", `{"statusCode":200}`, 200, "", ""},
		{"", `{"statusCode":201,"headers":{"content-type":"application/json"}}`, 201, "", ""},
		{"", `{"statusCode":444}`, 444, "", ""},
		{"", `{"statusCode":"201","body":"x"}`, 201, html, "x"},
		{"", `{"statusCode":2e2,"body":"x"}`, 200, html, "x"},
		{"", `{"StatusCode":500,"Headers":1,"Body":"x"}`, 204, "", ""},
		{"", `{"statusCode":"nope"}`, 400, jsonMedia, noHTTP},
		{"", `{"statusCode":200.5}`, 400, jsonMedia, noHTTP},
		{"", `{"statusCode":true}`, 400, jsonMedia, noHTTP},
		{"", `{"statusCode":0}`, 400, jsonMedia, noHTTP},
		{"", `{"statusCode":600}`, 400, jsonMedia, noHTTP},
		{"", `{"statusCode":-200}`, 400, jsonMedia, noHTTP},
		{"", `{"headers":1}`, 400, jsonMedia, noHTTP},
		{"", `{"headers":{"a":{}}}`, 400, jsonMedia, noHTTP},
		{"", `{"headers":{"a":null}}`, 400, jsonMedia, noHTTP},
		{"", `{"body":"hello"}`, 200, html, "hello"},
		{"", `{"body":3}`, 200, jsonMedia, "3"},
		{"", `{"body":{"field":"value"}}`, 200, jsonMedia, "{\n  \"field\": \"value\"\n}"},
		{"", `{"headers":{"content-type":"application/json"},"body":"{\"field\":\"value\"}"}`, 200, jsonMedia, `{"field":"value"}`},
		{"", `{"headers":{"content-type":"application/json; charset=utf-8"},"body":[1]}`, 200, jsonMedia, "[1]"},
		{"", `{"headers":{"content-type":"text/html"},"body":{"field":"value"}}`, 400, jsonMedia, mismatch},
		{"", `{"headers":{"content-type":"application/hal+json"},"body":{"a":1}}`, 200, "application/hal+json", "{\n  \"a\": 1\n}"},
		{"", `{"headers":{"content-type":"application/json-patch+json"},"body":"eyJmaWVsZCI6InZhbHVlIn0="}`, 200, "application/json-patch+json", `{"field":"value"}`},
		{"", `{"headers":{"content-type":"application/json-patch+json"},"body":{"a":1}}`, 200, "application/json-patch+json", "{\n  \"a\": 1\n}"},
		{"", `{"headers":{"Content-Type":"image/png"},"body":"` + png + `"}`, 200, "image/png", string(bytes)},
		{"", `{"headers":{"Content-Type":"image/png"},"body":"no base64"}`, 400, jsonMedia, mismatch},
		{"", `{"headers":{"Content-Type":"text/plain"},"body":"eA=="}`, 200, plain, "eA=="},
		{"", `{"headers":{"Content-Type":"text/plain; charset=us-ascii; a=b"},"body":"x"}`, 200, "text/plain; a=b; charset=UTF-8", "x"},
		{"", `{"headers":{"Content-Type":"application/unheard"},"body":"eA=="}`, 200, "application/unheard", "x"},
		{"", `{"headers":{"Content-Type":"multipart/mixed; boundary=b"},"body":"LS1iLS0="}`, 200, "multipart/mixed; boundary=b", "--b--"},
		{"", `{"headers":{"Content-Type":"multipart/mixed; boundary=b"},"body":"--b--"}`, 400, jsonMedia, mismatch},
		{"", `{"headers":{"Content-Type":"application/unheard; charset=utf-8"},"body":"eA=="}`, 200, "application/unheard; charset=UTF-8", "eA=="},
		{"", `{"headers":{"Content-Type":"xyz"},"body":"x"}`, 400, jsonMedia, "Response did not specify a known content-type."},
		{"", `{"headers":{"Content-Type":"xyz"},"body":{}}`, 400, jsonMedia, mismatch},

		{".json", `fail {"error":{"custom":1}}`, 200, jsonMedia, "{\n  \"custom\": 1\n}"},
		{".json", `fail {"error":"text"}`, 400, jsonMedia, "Response is not valid 'application/json'."},
		{".text", `fail {"error":"text"}`, 200, plain, "text"},
		{"", `fail {"error":{"statusCode":404,"body":"nothing here"}}`, 404, html, "nothing here"},
		{"", `fail {"error":"text"}`, 400, jsonMedia, noHTTP},
		{".json", "crash", 400, jsonMedia, "There was an error processing your request."},
	} {
		w.put("web", c.result)
		r := w.ask("GET", "guest/default/web"+c.extension, "")
		if strings.HasPrefix(c.body, "Response") || strings.HasPrefix(c.body, "There") {
			w.refused(r, c.status, c.body)
		} else if r.status != c.status || r.body != c.body {
			t.Errorf("%s %s is answered %d %q, want %d %q", c.extension, c.result, r.status, r.body, c.status, c.body)
		}
		if got := r.header.Get("Content-Type"); got != c.media {
			t.Errorf("%s %s is answered as %q, want %q", c.extension, c.result, got, c.media)
		}
		if r.header.Get("X-Openwhisk-Activation-Id") == "" {
			t.Errorf("%s %s has no activation id", c.extension, c.result)
		}
	}
}

func TestHeaders(t *testing.T) {
	w := newWorld(t)
	w.put("redirect", `{"headers":{"location":"http://openwhisk.org"},"statusCode":302}`)
	if r := w.ask("GET", "guest/default/redirect", ""); r.status != 302 || r.header.Get("Location") != "http://openwhisk.org" {
		t.Errorf("%d %v", r.status, r.header)
	}
	w.put("cookies", `{"headers":{"Set-Cookie":["a=b; Max-Age=3600","c=d; Path = /"],"X-Number":1.50,"X-True":true,"Content-Length":7,"Connection":"close","Transfer-Encoding":"x"},"body":"x"}`)
	r := w.ask("GET", "guest/default/cookies", "")
	if !slices.Equal(r.header["Set-Cookie"], []string{"a=b; Max-Age=3600", "c=d; Path = /"}) || r.header.Get("X-Number") != "1.50" || r.header.Get("X-True") != "true" {
		t.Errorf("%v", r.header)
	}
	for _, name := range []string{"Content-Length", "Connection", "Transfer-Encoding"} {
		if r.header.Get(name) != "" {
			t.Errorf("the action has set %s", name)
		}
	}
	w.put("lines", `{"headers":{"X-Lines":["two\nlines","\r\nX: y\u0000\u007f","caf\u00e9"]},"body":"x"}`)
	got := w.ask("GET", "guest/default/lines", "").header["X-Lines"]
	if !slices.Equal(got, []string{"two lines", "X: y", "caf\u00e9"}) || slices.ContainsFunc(got, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }) {
		t.Errorf("values with control characters: %q", got)
	}
}

// FuzzAnswers: whatever an action returns is answered with a status that HTTP knows, and no panic.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `[]`, `"x"`, `{"statusCode":"200","headers":{"a":[1,["b"]],"content-type":"image/png"},"body":"eA=="}`,
		`{"headers":{"content-type":"a/b;c=d"},"body":{"a":[]}}`, `{"body":{"a":{"b":[1,{}]}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, result string) {
		if !json.Valid([]byte(result)) {
			return
		}
		for _, e := range extensions() {
			w := httptest.NewRecorder()
			if err := e.answer(&page{ResponseWriter: w}, json.RawMessage(strings.TrimSpace(result))); err == nil && (w.Code < 200 || w.Code > 599) {
				t.Errorf("%s %s is answered %d", e.name, result, w.Code)
			}
		}
	})
}

func TestNegotiation(t *testing.T) {
	w := newWorld(t)
	w.put("text", `{"body":"<b>"}`)
	w.put("json", `{"body":{}}`)
	w.put("empty", `{}`)
	w.put("redirect", `{"statusCode":302,"body":"there"}`)
	w.put("failure", `{"statusCode":404,"body":"nothing"}`)
	const only = "Resource representation is only available with these types:\n"
	for _, c := range []struct{ path, accept, media string }{
		{"text", "application/json", "text/html; charset=UTF-8"},
		{"text.text", "image/*, text/plain;q=0", "text/plain; charset=UTF-8"},
		{"text.html", "text/html;q=0.0, */*", "text/html; charset=UTF-8"},
		{"json", "text/html", "application/json"},
		{"json.json", "text/*", "application/json"},
		{"redirect", "application/json", "text/html; charset=UTF-8"},
	} {
		r := w.ask("GET", "guest/default/"+c.path, "", "Accept", c.accept)
		if want, _ := json.Marshal(only + c.media); r.status != 406 || member(t, r.body, "error") != string(want) {
			t.Errorf("%s for %s: %d %s", c.path, c.accept, r.status, r.body)
		}
	}
	for _, c := range []struct{ path, accept string }{
		{"text", ""},
		{"text", "*"},
		{"text", "*/*"},
		{"text", "text/*;q=0.1"},
		{"text", "application/json, text/html;level=1;q=0.5"},
		{"text", "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"},
		{"text", "nonsense"},
		{"text", "text/html;q=x"},
		{"text", "text/*;q=0, text/html"},
		{"json", "application/json"},
		{"empty", "application/json"},
		{"failure", "application/json"},
	} {
		if r := w.ask("GET", "guest/default/"+c.path, "", "Accept", c.accept); r.status == 406 {
			t.Errorf("%s for %s: %d %s", c.path, c.accept, r.status, r.body)
		}
	}
}

// TestPrettyIsBounded: indented, it would be a hundred times as long.
func TestPrettyIsBounded(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 500) + `{"a":0` + strings.Repeat(`,"a":0`, 1000) + strings.Repeat("}", 501)
	if got := pretty([]byte(deep)); string(got) != deep {
		t.Errorf("%d bytes became %d", len(deep), len(got))
	}
}
