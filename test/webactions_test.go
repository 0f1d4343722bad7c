package test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// site is a server with web actions, for the examples of OpenWhisk's own documentation.
type site struct {
	t *testing.T
	s *server.Server
	c *server.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := start(t, server.Options{})
	return &site{t, s, client(t, s)}
}

// put deploys a web action; more are annotations as JSON.
func (s *site) put(name, code string, parameters map[string]any, more map[string]any) {
	s.t.Helper()
	type pair struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	}
	annotations, bound := []pair{{"web-export", true}, {"final", true}}, []pair{}
	for key, value := range more {
		annotations = append(annotations, pair{key, value})
	}
	for key, value := range parameters {
		bound = append(bound, pair{key, value})
	}
	body := map[string]any{"exec": map[string]any{"kind": "python:3", "code": code}, "annotations": annotations, "parameters": bound}
	if code, answer := status(s.t, s.c, "PUT", "actions/"+name+"?overwrite=true", body); code != http.StatusOK {
		s.t.Fatalf("%s: %d %s", name, code, answer)
	}
}

// ask requests a page as anybody may; headers are pairs.
func (s *site) ask(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.s.URL+"/api/v1/web/guest/default/"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return send(s.t, r)
}

func TestWebActionAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put("hello", `
def main(args):
    name = args.get("name")
    return {"body": "<html><body><h3>%s</h3></body></html>" % ("hello " + name + "!" if name else "you did not tell me who you are.")}
`, nil, nil)
	for path, want := range map[string]string{
		"hello.http?name=Jane": "<html><body><h3>hello Jane!</h3></body></html>",
		"hello?name=Jane":      "<html><body><h3>hello Jane!</h3></body></html>",
		"hello.html":           "<html><body><h3>you did not tell me who you are.</h3></body></html>",
	} {
		if r, body := s.ask("GET", path, ""); r.StatusCode != 200 || body != want || r.Header.Get("Content-Type") != "text/html; charset=UTF-8" {
			t.Errorf("%s: %d %q %s", path, r.StatusCode, r.Header.Get("Content-Type"), body)
		}
	}
	if r, body := s.ask("HEAD", "hello", ""); r.StatusCode != 200 || body != "" {
		t.Errorf("HEAD: %d %q", r.StatusCode, body)
	}
	s.put("redirect", `def main(args): return {"headers": {"location": "http://openwhisk.org"}, "statusCode": 302}`, nil, nil)
	if r, _ := s.ask("GET", "redirect", ""); r.StatusCode != 302 || r.Header.Get("Location") != "http://openwhisk.org" {
		t.Errorf("redirect: %d %v", r.StatusCode, r.Header)
	}
	s.put("cookies", `
def main(args):
    return {"headers": {"Set-Cookie": ["UserID=Jane; Max-Age=3600; Version=", "SessionID=asdfgh123456; Path = /"], "Content-Type": "text/html"},
        "statusCode": 200, "body": "<html><body><h3>hello</h3></body></html>"}
`, nil, nil)
	if r, body := s.ask("GET", "cookies", ""); r.StatusCode != 200 || len(r.Header["Set-Cookie"]) != 2 || !strings.Contains(body, "hello") {
		t.Errorf("cookies: %d %v %s", r.StatusCode, r.Header, body)
	}
	s.put("picture", `
import base64
def main(args): return {"headers": {"Content-Type": "image/png"}, "statusCode": 200, "body": base64.b64encode(bytes(range(256))).decode()}
`, nil, nil)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	if r, body := s.ask("GET", "picture.http", ""); r.Header.Get("Content-Type") != "image/png" || !slices.Equal([]byte(body), all) {
		t.Errorf("picture: %d %v, %d bytes", r.StatusCode, r.Header, len(body))
	}
	s.put("params", `def main(args): return {"statusCode": 200, "headers": {"Content-Type": "application/json"}, "body": args}`, nil, nil)
	if r, body := s.ask("GET", "params?a=b", ""); r.Header.Get("Content-Type") != "application/json" || !strings.Contains(body, "\n  \"a\": \"b\"") {
		t.Errorf("params: %d %v %s", r.StatusCode, r.Header, body)
	}
	s.put("teapot", `def main(args): return {"error": {"statusCode": 418, "body": "short and stout"}}`, nil, nil)
	if r, body := s.ask("GET", "teapot", ""); r.StatusCode != 418 || body != "short and stout" {
		t.Errorf("teapot: %d %s", r.StatusCode, body)
	}
	s.put("broken", `def main(args): raise Exception("secret")`, nil, nil)
	if r, body := s.ask("GET", "broken", ""); r.StatusCode != 400 || strings.Contains(body, "secret") && r.Header.Get("X-Openwhisk-Activation-Id") == "" {
		t.Errorf("broken: %d %s", r.StatusCode, body)
	}
}

func TestWebActionContext(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put("hello", `def main(args): return {"response": args}`, nil, nil)
	s.put("raw", `def main(args): return {"response": args}`, nil, map[string]any{"raw-http": true})
	for _, c := range []struct {
		method, path, body, media string
		want                      string // __ow_headers is looked at apart
	}{
		{"GET", "hello.json", "", "", `{"__ow_method":"get","__ow_path":""}`},
		{"GET", "hello.json?name=Jane", "", "", `{"name":"Jane","__ow_method":"get","__ow_path":""}`},
		{"POST", "hello.json", "name=Jane", "application/x-www-form-urlencoded", `{"name":"Jane","__ow_method":"post","__ow_path":""}`},
		{"POST", "hello.json/more/of%20it", `{"name":"Jane"}`, "application/json", `{"name":"Jane","__ow_method":"post","__ow_path":"/more/of%20it"}`},
		{"POST", "hello.json", "Jane", "text/plain", `{"__ow_body":"Jane","__ow_method":"post","__ow_path":""}`},
		{"POST", "raw.json?name=Jane", `{"name":"Jane"}`, "application/json", `{"__ow_body":"eyJuYW1lIjoiSmFuZSJ9","__ow_query":"name=Jane","__ow_method":"post","__ow_path":""}`},
		{"PATCH", "raw.json", "Decoded body", "application", `{"__ow_body":"RGVjb2RlZCBib2R5","__ow_query":"","__ow_method":"patch","__ow_path":""}`},
	} {
		r, body := s.ask(c.method, c.path, c.body, "Content-Type", c.media, "X-Mine", "v")
		var answer struct{ Response map[string]json.RawMessage }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || r.StatusCode != 200 {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.StatusCode, body)
			continue
		}
		var headers map[string]string
		if err := json.Unmarshal(answer.Response["__ow_headers"], &headers); err != nil || headers["x-mine"] != "v" || "http://"+headers["host"] != s.s.URL {
			t.Errorf("%s %s tells the headers %v", c.method, c.path, headers)
		}
		delete(answer.Response, "__ow_headers")
		got, err := json.Marshal(answer.Response)
		if err != nil {
			t.Fatal(err)
		}
		equalJSON(t, got, c.want)
	}
	if r, body := s.ask("POST", "hello.json", strings.Repeat("x", 6<<20+1)); r.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("too large a body: %d %s", r.StatusCode, body)
	}
}

func TestWebActionProtection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const code = "def main(args): return {'body': args['name']}"
	s.put("fixed", code, map[string]any{"name": "Jane"}, nil)
	if _, body := s.ask("GET", "fixed", ""); body != "Jane" {
		t.Errorf("fixed: %s", body)
	}
	if r, body := s.ask("GET", "fixed?name=Joe", ""); r.StatusCode != 400 || !strings.Contains(body, "Request defines parameters that are not allowed") {
		t.Errorf("a fixed parameter: %d %s", r.StatusCode, body)
	}
	s.put("secret", code, nil, map[string]any{"require-whisk-auth": "my-secret"})
	for secret, want := range map[string]int{"my-secret": 200, "other": 401, "": 401} {
		if r, body := s.ask("GET", "secret?name=Jane", "", "X-Require-Whisk-Auth", secret); r.StatusCode != want {
			t.Errorf("with the secret %q: %d %s", secret, r.StatusCode, body)
		}
	}
	s.put("users", "def main(args): return {'body': args['__ow_user']}", nil, map[string]any{"require-whisk-auth": true})
	if r, body := s.ask("GET", "users", ""); r.StatusCode != 401 {
		t.Errorf("nobody: %d %s", r.StatusCode, body)
	}
	uuid, key, _ := strings.Cut(operate(t, s.s, "create", "ada"), ":")
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.s.URL+"/api/v1/web/guest/default/users", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth(uuid, key)
	answer, body := send(t, r)
	if answer.StatusCode != 200 || body != "ada" {
		t.Errorf("ada: %d %s", answer.StatusCode, body)
	}
	if record := stored(t, s.c, answer.Header.Get("X-Openwhisk-Activation-Id")); record.Name != "users" {
		t.Errorf("the owner's record is %+v", record)
	}
	if code, _ := status(t, as(t, s.s, uuid+":"+key), "GET", "activations/"+answer.Header.Get("X-Openwhisk-Activation-Id"), nil); code != 404 {
		t.Errorf("the caller finds the owner's record: %d", code)
	}
	putPython(t, s.c, map[string]string{"private": code})
	for _, path := range []string{"private", "private.json", "nothing", "nothing.http"} {
		if r, body := s.ask("GET", path, ""); r.StatusCode != 404 || !strings.Contains(body, "The requested resource does not exist.") {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}
}

func TestWebActionOptions(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.put("hello", "def main(args): return {'body': 'hi'}", nil, nil)
	r, _ := s.ask("OPTIONS", "hello", "", "Access-Control-Request-Headers", "x-custom-header")
	if r.StatusCode != 200 || r.Header.Get("Access-Control-Allow-Origin") != "*" || r.Header.Get("Access-Control-Allow-Headers") != "x-custom-header" ||
		r.Header.Get("Access-Control-Allow-Methods") != "OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	s.put("custom", `
def main(args):
    if args["__ow_method"] == "options":
        return {"headers": {"Access-Control-Allow-Methods": "OPTIONS, GET", "Access-Control-Allow-Origin": "example.com"}, "statusCode": 200}
    return {"body": "no"}
`, nil, map[string]any{"web-custom-options": true})
	r, _ = s.ask("OPTIONS", "custom", "")
	if r.StatusCode != 200 || r.Header.Get("Access-Control-Allow-Origin") != "example.com" || r.Header.Get("Access-Control-Allow-Methods") != "OPTIONS, GET" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
}

// TestWebActionsInPackages: parameters come of the package, the binding and the action, and none of them can be replaced.
func TestWebActionsInPackages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	must(t, s.c, "PUT", "_/packages/demo", `{"parameters":[{"key":"a","value":"A"},{"key":"b","value":"b"}]}`)
	must(t, s.c, "PUT", "_/packages/bound", `{"binding":{"namespace":"_","name":"demo"},"parameters":[{"key":"a","value":"a"},{"key":"c","value":"c"}]}`)
	s.put("demo/web", "def main(args):\n    return {k: v for k, v in args.items() if not k.startswith('__')}\n", map[string]any{"d": "d"}, nil)
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.s.URL+"/api/v1/web/guest/"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, body := send(t, r)
		return answer.StatusCode, body
	}
	for path, want := range map[string]string{
		"demo/web.json?q=1":  `{"a":"A","b":"b","d":"d","q":"1"}`,
		"bound/web.json?q=1": `{"a":"a","b":"b","c":"c","d":"d","q":"1"}`,
	} {
		status, body := get(path)
		if status != http.StatusOK {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		equalJSON(t, json.RawMessage(body), want)
	}
	for path, want := range map[string]int{
		"demo/web.json?a=x": 400, "bound/web.json?c=x": 400, "bound/web.json?d=x": 400, "demo/web.json?c=x": 200,
		"default/web.json": 404, "other/web.json": 404, "demo/other.json": 404,
	} {
		if status, body := get(path); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	must(t, s.c, "DELETE", "_/packages/demo?force=true", "")
	if status, body := get("bound/web.json"); status != http.StatusNotFound {
		t.Errorf("a binding to nothing: %d %s", status, body)
	}
}
