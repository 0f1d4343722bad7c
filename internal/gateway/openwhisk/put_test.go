package openwhisk

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestPutAnswersTheWholeAction(t *testing.T) {
	w := newWorld(t)
	body := `{"exec":{"kind":"PYTHON:default","code":"def main(args):\n    return args\n","main":"main"},"parameters":[{"key":"a","value":{"b":"<"}}],
		"annotations":[{"key":"description","value":"d"}],"limits":{"timeout":1000},"publish":true}`
	r := w.request("PUT", actions+"hello", body)
	if r.status != 200 || names(t, r.body) != "annotations exec limits name namespace parameters publish updated version" {
		t.Fatalf("%d %s", r.status, r.body)
	}
	for path, want := range map[string]string{
		"namespace": `"guest"`, "name": `"hello"`, "version": `"0.0.1"`, "publish": "true",
		"exec":        `{"binary":false,"code":"def main(args):\n    return args\n","kind":"python:3","main":"main"}`,
		"parameters":  `[{"key":"a","value":{"b":"<"}}]`,
		"limits":      `{"concurrency":1,"logs":10,"memory":256,"timeout":1000}`,
		"annotations": `[{"key":"description","value":"d"},{"key":"provide-api-key","value":"invoke"},{"key":"exec","value":"python:3"}]`,
	} {
		if got := member(t, r.body, path); got != want {
			t.Errorf("%s is %s", path, got)
		}
	}
	if got := w.request("GET", actions+"hello", ""); got.status != 200 || got.body != r.body {
		t.Errorf("GET answers %d %s", got.status, got.body)
	}
	without := w.request("GET", actions+"hello?code=false", "")
	if got := member(t, without.body, "exec"); got != `{"binary":false,"kind":"python:3","main":"main"}` {
		t.Errorf("without code: %s", got)
	}
	if got := w.request("DELETE", actions+"hello", ""); got.status != 200 || got.body != r.body {
		t.Errorf("DELETE answers %d %s", got.status, got.body)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if got := w.request(method, actions+"hello", ""); got.status != 404 || member(t, got.body, "error") != `"The requested resource does not exist."` {
			t.Errorf("%s afterwards: %d %s", method, got.status, got.body)
		}
	}
}

func TestUpdateKeepsWhatTheBodyLeavesOut(t *testing.T) {
	w := newWorld(t)
	w.deploy("a", "echo", "x", "1", "y", "2")
	if r := w.request("PUT", actions+"a", `{"exec":{"kind":"python:3","code":"fail"}}`); r.status != 409 || member(t, r.body, "error") != `"resource already exists"` {
		t.Errorf("without overwrite: %d %s", r.status, r.body)
	}
	steps := []struct{ body, path, want string }{
		{`{"parameters":[{"key":"p","value":1}]}`, "exec.code", `"echo"`},
		{`{"limits":{"memory":128}}`, "parameters", `[{"key":"p","value":1}]`},
		{`{"limits":{"timeout":100}}`, "limits.memory", `128`},
		{`{"annotations":[{"key":"y","value":3}]}`, "annotations.1", `{"key":"y","value":3}`},
		{`{"delAnnotations":["x"]}`, "annotations.0.key", `"y"`},
		{`{}`, "version", `"0.0.7"`},
		{`{"version":"1.0.0"}`, "version", `"1.0.0"`},
		{`{"exec":{"kind":"sequence","components":["/_/b"]}}`, "parameters", `[{"key":"_actions","value":["/guest/b"]}]`},
		{`{"exec":{"kind":"python:3","code":"echo"}}`, "parameters", `[]`},
		{`{"publish":true}`, "annotations", `[{"key":"y","value":3},{"key":"provide-api-key","value":"invoke"},{"key":"exec","value":"python:3"}]`},
	}
	w.deploy("b", "echo")
	for _, step := range steps {
		r := w.request("PUT", actions+"a?overwrite=true", step.body)
		if got := member(t, r.body, step.path); r.status != 200 || got != step.want {
			t.Errorf("%s: %d, %s is %s", step.body, r.status, step.path, got)
		}
	}
}

func TestPutIsRefused(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	const python = `"exec":{"kind":"python:3","code":"echo"}`
	malformed := func(s string) string { return "The request content was malformed:\n" + s }
	for body, want := range map[string]string{
		``:               "exec undefined",
		`{}`:             "exec undefined",
		`{"exec":{}}`:    malformed("'kind' must be a string defined in 'exec'"),
		`{"exec":"x"}`:   malformed("'exec' must be an object, not string"),
		`[]`:             malformed("The content must be a JSON object, not array."),
		`{"exec":`:       malformed("The content is not valid JSON: unexpected end of JSON input"),
		`{` + python[:2]: malformed("The content is not valid JSON: unexpected end of JSON input"),
		`{"exec":{"kind":"nodejs:default","code":"x"}}`:                                                           malformed("The specified runtime 'nodejs:default' is not supported by this platform. Valid values are: 'python:3', 'sequence'."),
		`{"exec":{"kind":"go:default","code":"package main"}}`:                                                    malformed("Go source is not compiled by this server: `forerun action create` and `forerun deploy` compile it, or send the program that `CGO_ENABLED=0 go build` makes."),
		`{"exec":{"kind":"python:3"}}`:                                                                            malformed("'code' must be a string or attachment object defined in 'exec' for 'python:3' actions"),
		`{` + python + `,"parameters":{"a":1}}`:                                                                   malformed("parameters malformed!"),
		`{` + python + `,"parameters":[{"key":"a"}]}`:                                                             malformed("parameters malformed!"),
		`{` + python + `,"annotations":[{"value":1}]}`:                                                            malformed("parameters malformed!"),
		`{` + python + `,"version":"1.2"}`:                                                                        malformed("semantic version malformed"),
		`{` + python + `,"limits":{"timeout":99}}`:                                                                "duration 99 milliseconds below allowed threshold of 100 milliseconds",
		`{` + python + `,"limits":{"timeout":3600001}}`:                                                           "duration 3600001 milliseconds exceeds allowed threshold of 3600000 milliseconds. The operator can raise it with the flag --max-timeout of forerun serve.",
		`{` + python + `,"limits":{"memory":127}}`:                                                                "memory size 127 MB below allowed threshold of 128 MB",
		`{` + python + `,"limits":{"memory":513}}`:                                                                "memory size 513 MB exceeds allowed threshold of 512 MB. The operator can raise it with the flag --max-memory of forerun serve.",
		`{` + python + `,"limits":{"logs":11}}`:                                                                   "log size 11 MB exceeds allowed threshold of 10 MB. The operator can raise it with the flag --max-logs of forerun serve.",
		`{` + python + `,"limits":{"concurrency":2}}`:                                                             "concurrency 2 exceeds allowed threshold of 1",
		`{` + python + `,"limits":{"memory":"256"}}`:                                                              malformed("'limits.memory' must be an integer, not string"),
		`{"exec":{"kind":"sequence"}}`:                                                                            malformed("'components' must be defined for sequence kind"),
		`{"exec":{"kind":"sequence","components":[]}}`:                                                            "No component specified for the sequence.",
		`{"exec":{"kind":"sequence","components":["/_/none"]}}`:                                                   "Sequence component does not exist.",
		`{"exec":{"kind":"sequence","components":["echo"]}}`:                                                      malformed("The fully qualified name of the entity must contain at least the namespace and the name of the entity."),
		`{"exec":{"kind":"sequence","components":["/_/new"]}}`:                                                    "Sequence may not refer to itself.",
		`{"exec":{"kind":"sequence","components":[` + strings.Repeat(`"/_/echo",`, 50) + `"/_/echo"]}}`:           "Too many actions in the sequence.",
		`{"exec":{"kind":"sequence","components":[` + strings.Repeat(`"/",`, 50) + `"/"]}}`:                       "Too many actions in the sequence.",
		`{"exec":{"kind":"nodejs:default","code":""},"annotations":[{"key":"conductor","value":{"type":1}}]}`:     "",
		`{` + python + `,"annotations":[{"key":"pure-function","value":"true"}]}`:                                 malformed(`The annotation 'pure-function' must be true or false, without quotes, not "true".`),
		`{` + python + `,"annotations":[{"key":"non-speculative","value":1}]}`:                                    malformed("The annotation 'non-speculative' must be true or false, without quotes, not 1."),
		`{` + python + `,"annotations":[{"key":"keep-process","value":"x"}]}`:                                     malformed(`The annotation 'keep-process' must be true or false, without quotes, not "x".`),
		`{` + python + `,"annotations":[{"key":"read-hosts","value":["a.example:80","http://b"]}]}`:               malformed(`The annotation 'read-hosts' has "http://b", which is not a host: it is a URL, or a range of addresses. Write a name or an address, with ':' and a port or without.`),
		`{` + python + `,"annotations":[{"key":"read-hosts","value":["a.example:0"]}]}`:                           malformed(`The annotation 'read-hosts' has "a.example:0", which is not a host: its port is not a number from 1 to 65535. Write a name or an address, with ':' and a port or without.`),
		`{` + python + `,"annotations":[{"key":"read-hosts","value":[` + strings.Repeat(`"a",`, 256) + `"b"]}]}`:  malformed("The annotation 'read-hosts' has 257 hosts; at most 256 are allowed."),
		`{` + python + `,"annotations":[{"key":"read-hosts","value":"a.example"}]}`:                               malformed(`The annotation 'read-hosts' must be an array of hosts, each a string, not "a.example".`),
		`{` + python + `,"annotations":[{"key":"speculate","value":true}]}`:                                       malformed(`The annotation 'speculate' must be a string, not true: write off, branches or all, and perhaps ; depth=32 (1 to 64) ; band=0.1 (0 to less than 0.5, with its 0) ; least=1ms (0s to 1m, with its unit) ; load=any ; squash=handler (or sandbox) behind it.`),
		`{` + python + `,"annotations":[{"key":"speculate","value":null}]}`:                                       malformed(`The annotation 'speculate' must be a string, not null: write off, branches or all, and perhaps ; depth=32 (1 to 64) ; band=0.1 (0 to less than 0.5, with its 0) ; least=1ms (0s to 1m, with its unit) ; load=any ; squash=handler (or sandbox) behind it.`),
		`{"exec":{"kind":"sequence","components":["/_/echo"]},"annotations":[{"key":"cache-key","value":["a"]}]}`: malformed("The annotation 'cache-key' cannot be on a sequence, which has no results of its own. Annotate the functions in it."),
		`{` + python + `,"annotations":[{"key":"cache-ttl","value":"9600h"}]}`:                                    malformed(`The annotation 'cache-ttl' is "9600h", which is out of bounds. Write a string with a unit, such as "90s", "5m" or "24h": 1ms to 720h, which is 30 days.`),
		`{` + python + `,"annotations":[{"key":"pure-function","value":null}]}`:                                   malformed(`The annotation 'pure-function' must be true or false, without quotes, not null.`),
		`{` + python + `,"annotations":[{"key":"read-hosts","value":null}]}`:                                      malformed(`The annotation 'read-hosts' must be an array of hosts, each a string, not null.`),
		`{` + python + `,"annotations":[{"key":"speculate","value":"al"}]}`:                                       malformed(`The annotation 'speculate': "al" does not say how far to speculate: write off, branches or all, and perhaps ; depth=32 (1 to 64) ; band=0.1 (0 to less than 0.5, with its 0) ; least=1ms (0s to 1m, with its unit) ; load=any ; squash=handler (or sandbox) behind it.`),
	} {
		r := w.request("PUT", actions+"new", body)
		if got := member(t, r.body, "error"); r.status != 400 || want != "" && got != fmt.Sprintf("%q", want) {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := w.request("GET", actions+"new", ""); r.status != 404 {
		t.Errorf("something was stored: %s", r.body)
	}
}

func TestSequenceOfSequencesMayNotBeACircle(t *testing.T) {
	w := newWorld(t)
	w.deploy("a", "echo")
	r := w.request("PUT", actions+"b", `{"exec":{"kind":"sequence","components":["/_/a"]}}`)
	if r.status != 200 {
		t.Fatal(r)
	}
	r = w.request("PUT", actions+"a?overwrite=true", `{"exec":{"kind":"sequence","components":["/_/b"]}}`)
	if r.status != 400 || member(t, r.body, "error") != `"Sequence may not refer to itself."` {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestPutIsTooLarge(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("x ", maxParameters/2)
	for body, want := range map[string]string{
		`{"exec":{"kind":"python:3","code":"echo"},"parameters":[{"key":"a","value":"` + long + `"}]}`:  `"parameters larger than allowed: 1048579 > 1048576 bytes."`,
		`{"exec":{"kind":"python:3","code":"echo"},"annotations":[{"key":"a","value":"` + long + `"}]}`: `"annotations larger than allowed: 1048579 > 1048576 bytes."`,
	} {
		if r := w.request("PUT", actions+"big", body); r.status != 413 || member(t, r.body, "error") != want {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

func TestCodeIsTooLarge(t *testing.T) {
	code := strings.Repeat("x", forerun.DefaultBounds().Code)
	for main, want := range map[string]string{"": "", "m": "exec larger than allowed: 50331649 > 50331648 bytes."} {
		err := (&actionPut{Exec: &execPut{Code: &code, Main: main}}).checkSizes(len(code))
		if got := strings.TrimPrefix(fmt.Sprint(err), "exec: "); (err == nil) != (want == "") || err != nil && got != want {
			t.Errorf("main %q: %v", main, err)
		}
	}
}

func TestWhatIsNotThereYet(t *testing.T) {
	w := newWorld(t)
	for _, test := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"PUT", actions + "d", `{"exec":{"kind":"blackbox","image":"x"}}`, 501, "Docker images as actions (kind blackbox) are not part of Forerun. Deploy the code with a kind of its language, or an executable with the kind native; GET / lists the kinds."},
		{"PUT", namespaces + "_/things/t", `{}`, 404, "The requested resource could not be found."},
		{"PUT", namespaces + "other/triggers/t", `{}`, 403, "The supplied authentication is not authorized to access 'other/t'."},
	} {
		if r := w.request(test.method, test.path, test.body); r.status != test.status || member(t, r.body, "error") != fmt.Sprintf("%q", test.says) {
			t.Errorf("%s %s: %d %s", test.method, test.path, r.status, r.body)
		}
	}
	for _, collection := range []string{"triggers", "rules", "packages"} {
		if r := w.request("GET", namespaces+"_/"+collection, ""); r.status != 200 || r.body != "[]" {
			t.Errorf("list of %s: %d %s", collection, r.status, r.body)
		}
	}
}

// meanwhile is a body in the middle of which something else happens.
type meanwhile struct {
	io.Reader
	what func()
}

func (m *meanwhile) Read(b []byte) (int, error) {
	n, err := m.Reader.Read(b[:min(len(b), 8)])
	if m.what != nil {
		m.what()
		m.what = nil
	}
	return n, err
}

// TestKeyIsVoidWhileTheBodyComes: who has begun a request before its key became void does nothing with it any more.
func TestKeyIsVoidWhileTheBodyComes(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	for path, body := range map[string]string{
		"PUT " + actions + "new":                   `{"exec":{"kind":"python:3","code":"echo"}}`,
		"PUT " + namespaces + "_/triggers/new":     `{"annotations":[]}`,
		"POST " + actions + "echo?blocking=true":   `{"longer":"than eight bytes"}`,
		"POST " + namespaces + "_/rules/none":      `{"status":"inactive"}`,
		"POST " + actions + "echo?blocking=false&": `{"longer":"than eight bytes"}`,
	} {
		method, path, _ := strings.Cut(path, " ")
		r := httptest.NewRequestWithContext(t.Context(), method, path, &meanwhile{strings.NewReader(body), func() {
			credentials, err := w.api.Keys.Tenants.RotateKeys(t.Context(), "guest")
			if err != nil {
				t.Error(err)
			}
			w.auth = credentials
		}})
		r.SetBasicAuth(w.auth.UUID, w.auth.Key)
		r.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		if w.door.ServeHTTP(recorder, r); recorder.Code != http.StatusUnauthorized {
			t.Errorf("%s %s: %d %s", method, path, recorder.Code, recorder.Body)
		}
	}
}
