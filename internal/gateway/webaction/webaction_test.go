package webaction

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/activation"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

// world is a server but for its sandboxes: an action's code is its result, or one of the words that Run knows.
type world struct {
	t       testing.TB
	door    http.Handler
	tenants *registry.Registry
	log     *activation.Log
	auth    registry.Credentials
	runs    atomic.Int64
	release chan struct{} // lets actions of the code "wait" end
}

func newWorld(t testing.TB) *world {
	t.Helper()
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, tenants: registry.Open(store, registry.DefaultLimits(), nil), log: activation.Open(store, false), release: make(chan struct{})}
	c := controller.New(controller.Config{Worker: w, Actions: w.tenants, Records: w.log, State: store, Bridge: new(controller.Bridge), Cache: true})
	h := New(Config{
		Resolve: w.tenants.Action, Tenants: w.tenants, Controller: c, Keys: &gateway.Keys{Tenants: w.tenants, Activations: c},
		Quotas: gateway.NewQuotas(w.tenants, nil, nil), MaxPayload: 1000, MaxWait: time.Minute,
	})
	w.door = gateway.New(gateway.Config{API: http.NotFoundHandler(), Web: h, Metrics: http.NotFoundHandler(), Gate: gateway.NewGate(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	for _, name := range []string{"guest", "other"} {
		if w.auth, err = w.tenants.CreateTenant(t.Context(), name, registry.Quotas{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		close(w.release)
		c.Close(context.Background())
		w.tenants.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// Run implements forerun.Worker.
func (w *world) Run(r *forerun.Run) {
	go func() {
		w.runs.Add(1)
		r.Events.Started(r.Activation, time.Now(), 0)
		end := forerun.RunEnd{Result: json.RawMessage(r.Action.Exec.Code), Reach: forerun.Inside}
		switch code, failure, _ := strings.Cut(r.Action.Exec.Code, " "); code {
		case "echo":
			end.Result = r.Input
		case "fail":
			end.Status, end.Result = forerun.ApplicationError, json.RawMessage(failure)
		case "crash":
			end.Status, end.Result = forerun.DeveloperError, json.RawMessage(`{"error":"exited"}`)
		case "wait":
			<-w.release
			end.Result = json.RawMessage(`{}`)
		}
		end.At = time.Now()
		r.Events.Ended(r.Activation, end)
	}()
}

// Await implements forerun.Worker.
func (w *world) Await(_, _ forerun.ActivationID) {}

// Promote implements forerun.Worker.
func (w *world) Promote(forerun.ActivationID) {}

// Squash implements forerun.Worker.
func (w *world) Squash(forerun.ActivationID) {}

// put deploys an action of the guest's; annotations are pairs, and web-export is among them.
func (w *world) put(name, code string, annotations ...string) {
	w.t.Helper()
	n, err := forerun.ParseName(name, "guest")
	if err != nil {
		w.t.Fatal(err)
	}
	kvs := []forerun.KeyValue{{Key: "web-export", Value: json.RawMessage("true")}}
	for i := 0; i+1 < len(annotations); i += 2 {
		kvs = append(kvs, forerun.KeyValue{Key: annotations[i], Value: json.RawMessage(annotations[i+1])})
	}
	if len(annotations) == 1 { // none at all
		kvs = nil
	}
	if n.Package != "" {
		pkg := forerun.Name{Namespace: n.Namespace, Entity: n.Package}
		_, err := w.tenants.PutEntity(w.t.Context(), registry.Packages, pkg, true, func(*registry.Entity) (*registry.Entity, error) {
			return new(registry.Entity), nil
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	_, err = w.tenants.PutAction(w.t.Context(), n, true, func(*forerun.Action) (*forerun.Action, error) {
		return &forerun.Action{
			Exec: forerun.Exec{Kind: "python:3", Code: code}, Limits: forerun.DefaultLimits(), Annotations: kvs,
			Parameters: []forerun.KeyValue{{Key: "y", Value: json.RawMessage(`"Y"`)}, {Key: "empty", Value: json.RawMessage("null")}},
		}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

type reply struct {
	status int
	header http.Header
	body   string
}

// ask makes a request; headers are pairs.
func (w *world) ask(method, path, body string, headers ...string) reply {
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequestWithContext(context.Background(), method, Prefix+path, content)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, r)
	return reply{recorder.Code, recorder.Header(), recorder.Body.String()}
}

// member reads a member of a JSON object; "none" if there is none.
func member(t testing.TB, document, path string) string {
	t.Helper()
	value := json.RawMessage(document)
	for step := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(value, &members); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		var ok bool
		if value, ok = members[step]; !ok {
			return "none"
		}
	}
	return string(value)
}

func (w *world) refused(r reply, status int, message string) {
	w.t.Helper()
	if r.status != status || member(w.t, r.body, "error") != fmt.Sprintf("%q", message) || strings.Count(r.body, "\n") != 3 || r.header.Get("X-Request-ID") == "" {
		w.t.Errorf("answered %d %s, want %d %q", r.status, r.body, status, message)
	}
}

const gone = "The requested resource does not exist."

func allMethods() []string {
	return []string{"GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"}
}

func TestSplitExtension(t *testing.T) {
	for _, ext := range []string{".http", ".json", ".text", ".html", ".svg"} {
		for _, base := range []string{"t", "tt", "t.wxyz", "tt.wxyz", "t.json"} {
			if name, e := splitExtension(base + ext); name != base || e.name != ext {
				t.Errorf("%s%s is split into %s and %s", base, ext, name, e.name)
			}
		}
	}
	for _, whole := range []string{"t", "tt", "abcde", "abcdef", "t.wxyz"} {
		if name, e := splitExtension(whole); name != whole || e.name != ".http" {
			t.Errorf("%s is split into %s and %s", whole, name, e.name)
		}
	}
}

func TestWhatIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.put("private", "echo", "not exported")
	w.put("p/web", "echo")
	w.put("off", "echo", "web-export", "false")
	for _, method := range allMethods() {
		for _, path := range []string{"a", "a/b", "/a", "guest/c", "guest//c"} {
			if r := w.ask(method, path, ""); r.status != 404 {
				t.Errorf("%s %s: %d", method, path, r.status)
			}
		}
		for _, path := range []string{"nobody/default/web", "guest/nopackage/web", "guest/default/private", "guest/default/private.json", "guest/p/nothing", "guest/default/web"} {
			r := w.ask(method, path, "")
			w.refused(r, 404, gone)
			if r.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s has CORS headers", method, path)
			}
		}
	}
	if r := w.ask("TRACE", "guest/p/web", ""); r.status != 405 || r.header.Get("Allow") != methods {
		t.Errorf("TRACE: %d %v", r.status, r.header)
	}
}

func TestInput(t *testing.T) {
	w := newWorld(t)
	w.put("p/web", "echo")
	w.put("raw", "echo", "raw-http", "true")
	png := "\x89PNG\r\n"
	for _, c := range []struct {
		method, path, body, media string
		want                      string // without __ow_headers and __ow_method
	}{
		{"GET", "guest/p/web.json", "", "", `{"__ow_path":"","empty":null,"y":"Y"}`},
		{"GET", "guest/p/web.json?a=b&c=d&c=e&empty=1", "", "", `{"__ow_path":"","a":"b","c":"e","empty":"1","y":"Y"}`},
		{"POST", "guest/p/web.json?a=b&c=d", `{"a":1,"extra":[1.0]}`, "application/json", `{"__ow_path":"","a":1,"c":"d","empty":null,"extra":[1.0],"y":"Y"}`},
		{"POST", "guest/p/web.json/", `{"a":1}`, "application/json; charset=utf-8", `{"__ow_path":"/","a":1,"empty":null,"y":"Y"}`},
		{"PUT", "guest/p/web.json/content/x%20y", "", "", `{"__ow_path":"/content/x%20y","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", `[1]`, "application/json", `{"__ow_body":[1],"__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", `null`, "application/json", `{"__ow_body":null,"__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", `{"a":1}`, "application/hal+json", `{"__ow_path":"","a":1,"empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json?c=d", `a=b+c&c=%C3%A9`, "application/x-www-form-urlencoded", `{"__ow_path":"","a":"b c","c":"é","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", "Jane", "text/plain", `{"__ow_body":"Jane","__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", "<a/>", "application/xml", `{"__ow_body":"<a/>","__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", png, "image/png", `{"__ow_body":"` + base64.StdEncoding.EncodeToString([]byte(png)) + `","__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", png, "multipart/form-data; boundary=b", `{"__ow_body":"` + base64.StdEncoding.EncodeToString([]byte(png)) + `","__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/default/raw.json", png, "multipart/form-data; boundary=b", `{"__ow_body":"` + base64.StdEncoding.EncodeToString([]byte(png)) + `","__ow_path":"","__ow_query":"","empty":null,"y":"Y"}`},
		{"POST", "guest/p/web.json", "x", "", `{"__ow_body":"eA==","__ow_path":"","empty":null,"y":"Y"}`},
		{"POST", "guest/default/raw.json?name=Jane&y=%20", `{"name":"Jane"}`, "application/json", `{"__ow_body":"eyJuYW1lIjoiSmFuZSJ9","__ow_path":"","__ow_query":"name=Jane&y=%20","empty":null,"y":"Y"}`},
		{"POST", "guest/default/raw.json", `a=b`, "application/x-www-form-urlencoded", `{"__ow_body":"a=b","__ow_path":"","__ow_query":"","empty":null,"y":"Y"}`},
		{"GET", "guest/default/raw.json", "", "", `{"__ow_body":"","__ow_path":"","__ow_query":"","empty":null,"y":"Y"}`},
	} {
		headers := []string{"X-Custom", "v"}
		if c.media != "" {
			headers = append(headers, "Content-Type", c.media)
		}
		r := w.ask(c.method, c.path, c.body, headers...)
		var got map[string]json.RawMessage
		if r.status != 200 || json.Unmarshal([]byte(r.body), &got) != nil {
			t.Errorf("%s %s: %d %s", c.method, c.path, r.status, r.body)
			continue
		}
		if method := string(got["__ow_method"]); method != `"`+strings.ToLower(c.method)+`"` {
			t.Errorf("%s is told as %s", c.method, method)
		}
		if h := string(got["__ow_headers"]); member(t, h, "x-custom") != `"v"` || member(t, h, "host") != `"example.com"` {
			t.Errorf("the headers are told as %s", h)
		}
		delete(got, "__ow_method")
		delete(got, "__ow_headers")
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(got); err != nil || strings.TrimSpace(text.String()) != c.want {
			t.Errorf("%s %s %q gives %s (%v), want %s", c.method, c.path, c.body, text.String(), err, c.want)
		}
	}
}

func TestInputIsRefused(t *testing.T) {
	w := newWorld(t)
	w.put("web", "echo", "final", "true")
	const message = "Request defines parameters that are not allowed (e.g., reserved properties)."
	for _, query := range []string{"y=1", "__ow_method=x", "__ow_user=x", "__ow_body=", "__ow_query=", "__ow_headers=", "__ow_path="} {
		w.refused(w.ask("GET", "guest/default/web.json?"+query, ""), 400, message)
		w.refused(w.ask("POST", "guest/default/web.json", query, "Content-Type", "application/x-www-form-urlencoded"), 400, message)
	}
	w.refused(w.ask("POST", "guest/default/web.json", `{"y":1}`, "Content-Type", "application/json"), 400, message)
	if r := w.ask("GET", "guest/default/web.json?empty=1&other=2", ""); r.status != 200 || member(t, r.body, "empty") != `"1"` {
		t.Errorf("a final parameter without a value: %d %s", r.status, r.body)
	}
	if r := w.ask("POST", "guest/default/web.json", `{"a":`, "Content-Type", "application/json"); r.status != 400 || !strings.Contains(r.body, "The request content was malformed") {
		t.Errorf("malformed JSON: %d %s", r.status, r.body)
	}
	if r := w.ask("GET", "guest/default/web.json?a=%zz", ""); r.status != 400 {
		t.Errorf("a malformed query: %d %s", r.status, r.body)
	}
	w.refused(w.ask("POST", "guest/default/web.json", strings.Repeat("x", 1001)), 413, "Request larger than allowed: 1001 > 1000 bytes.")
}

func TestAuthentication(t *testing.T) {
	w := newWorld(t)
	w.put("user", "echo", "require-whisk-auth", "true")
	w.put("off", "echo", "require-whisk-auth", "false")
	w.put("secret", "echo", "require-whisk-auth", `"my-secret"`)
	w.put("number", "echo", "require-whisk-auth", "12345678901234567890")
	w.put("odd", "echo", "require-whisk-auth", "[]")
	w.put("empty", "echo", "require-whisk-auth", `""`)
	w.put("own", "echo", "require-whisk-auth", `["_"]`)
	w.put("others", "echo", "require-whisk-auth", `["x","other"]`)
	owners, err := w.tenants.AddKey(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	own := "Basic " + base64.StdEncoding.EncodeToString([]byte(owners.String()))
	key := "Basic " + base64.StdEncoding.EncodeToString([]byte(w.auth.String()))
	wrong := "Basic " + base64.StdEncoding.EncodeToString([]byte(w.auth.UUID+":no"))
	const header = "X-Require-Whisk-Auth"
	for _, c := range []struct {
		name, header, value string
		want                int
	}{
		{"user", "Authorization", key, 200},
		{"user", "Authorization", wrong, 401},
		{"user", "X-Other", "", 401},
		{"off", "X-Other", "", 200},
		{"off", "Authorization", wrong, 200},
		{"secret", header, "my-secret", 200},
		{"secret", header, "My-secret", 401},
		{"secret", header, "", 401},
		{"secret", "Authorization", key, 401},
		{"number", header, "12345678901234567890", 200},
		{"number", header, "12345678901234567891", 401},
		{"odd", header, "[]", 401},
		{"empty", "X-Other", "", 401},
		{"own", "Authorization", own, 200},
		{"own", "Authorization", key, 401},
		{"own", "X-Other", "", 401},
		{"others", "Authorization", key, 200},
		{"others", "Authorization", own, 401},
	} {
		for _, method := range allMethods() {
			r := w.ask(method, "guest/default/"+c.name+".json", "", c.header, c.value)
			switch {
			case method == "OPTIONS":
				if r.status != 200 || r.body != "" {
					t.Errorf("OPTIONS is answered %d %s", r.status, r.body)
				}
			case r.status != c.want:
				t.Errorf("%s %s with %s %q: %d %s", method, c.name, c.header, c.value, r.status, r.body)
			case r.status == 401:
				w.refused(r, 401, "Authentication is possible but has failed or not yet been provided.")
			case c.value == key && member(t, r.body, "__ow_user") != `"other"`:
				t.Errorf("the user is told as %s", member(t, r.body, "__ow_user"))
			case c.value == own && member(t, r.body, "__ow_user") != `"guest"`:
				t.Errorf("the owner is told as %s", member(t, r.body, "__ow_user"))
			case c.value != key && c.value != own && member(t, r.body, "__ow_user") != "none":
				t.Errorf("a user is told: %s", r.body)
			}
		}
	}
	if r := w.ask("POST", "guest/default/user.json", strings.Repeat("x", 1001)); r.status != 401 {
		t.Errorf("the body of who has no key is read: %d %s", r.status, r.body)
	}
}

// TestCodeGetsNoKey: an action does not see the key of its caller, nor the secret of its own door, but it sees other credentials.
func TestCodeGetsNoKey(t *testing.T) {
	w := newWorld(t)
	w.put("open", "echo")
	w.put("raw", "echo", "raw-http", "true")
	w.put("user", "echo", "require-whisk-auth", "true")
	w.put("secret", "echo", "require-whisk-auth", `"my-secret"`)
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	key := w.auth.String()
	token, operator := strings.Repeat("0a", 16)+":"+strings.Repeat("b1", 32), strings.Repeat("c", 32)+":"+strings.Repeat("d", 64)
	for _, c := range []struct{ name, header, value, want string }{
		{"open", "Authorization", basic(key), "none"},
		{"raw", "Authorization", basic(key), "none"},
		{"user", "Authorization", basic(key), "none"},
		{"open", "Authorization", basic(key[:len(key)-1] + "x"), "none"}, // not valid, or not any more
		{"open", "Authorization", "basic   " + strings.TrimPrefix(basic(key), "Basic "), "none"},
		{"open", "Authorization", "Bearer " + key, "none"},
		{"open", "Authorization", basic(token), "none"},
		{"open", "Authorization", basic(operator), "none"},
		{"open", "X-Require-Whisk-Auth", "my-secret", "none"},
		{"open", "X-Forwarded-Authorization", basic(key), "none"},
		{"open", "Proxy-Authorization", basic(key), "none"},
		{"open", "Cookie", "a=b; auth=" + key + "; c=d", "none"},
		{"open", "Referer", "https://" + key + "@example.org/", "none"},
		{"open", "Referer", "https://example.org/?key=" + url.QueryEscape(key), "none"},
		{"open", "X-Key", strings.TrimRight(basic(key), "="), "none"},
		{"open", "X-Key", base64.RawURLEncoding.EncodeToString([]byte("\xff\xfe\xff??" + key + "?>\xff")), "none"},
		{"open", "X-Key", base64.StdEncoding.EncodeToString([]byte(`{"auth":"` + key + `"}`)), "none"},
		{"open", "X-Key", "cut" + base64.StdEncoding.EncodeToString([]byte("x" + key))[1:], "none"},
		{"open", "Authorization", "Bearer e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"k":"`+token+`"}`)) + ".c2ln", "none"},
		{"open", "X-Sum", strings.Repeat("0a", 100), `"` + strings.Repeat("0a", 100) + `"`},
		{"open", "X-Uuid", key[:36], `"` + key[:36] + `"`},
		{"secret", "X-Require-Whisk-Auth", "my-secret", "none"},
		{"open", "Authorization", "Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln", `"Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln"`},
		{"open", "Authorization", basic("ada:password"), `"` + basic("ada:password") + `"`},
		{"open", "Authorization", "Digest username=ada", `"Digest username=ada"`},
	} {
		r := w.ask("GET", "guest/default/"+c.name+".json", "", c.header, c.value, "X-Custom", "v")
		headers := member(t, r.body, "__ow_headers")
		if r.status != 200 || member(t, headers, "x-custom") != `"v"` {
			t.Errorf("%v: %d %s", c, r.status, r.body)
		} else if got := member(t, headers, strings.ToLower(c.header)); got != c.want {
			t.Errorf("%s: the action sees the %s %q as %s", c.name, c.header, c.value, got)
		}
	}
	r := httptest.NewRequest("GET", Prefix+"guest/default/open.json", nil)
	r.Header["Authorization"] = []string{basic(key), "Bearer other"}
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, r)
	if got := member(t, member(t, recorder.Body.String(), "__ow_headers"), "authorization"); got != "none" {
		t.Errorf("of two lines, one with a key, the action sees %s", got)
	}
}

// TestHeaderNames: a name that is not a token is reserved, for net/http sends "Trailer:NAME" as a trailer.
func TestHeaderNames(t *testing.T) {
	for name, want := range map[string]bool{http.TrailerPrefix + "X-Own": true, "X Own": true, "": true, "X-Own": false} {
		if isReserved(http.CanonicalHeaderKey(name)) != want {
			t.Errorf("%q is reserved: %t", name, !want)
		}
	}
}

// TestReservedHeaders: an action sets no header of the connection, of the server, or of all that the host serves.
func TestReservedHeaders(t *testing.T) {
	w := newWorld(t)
	names := []string{
		"service-worker-allowed", "Clear-Site-Data", "STRICT-TRANSPORT-SECURITY", "Public-Key-Pins", "Expect-CT", "Alt-Svc", "Accept-CH", "Origin-Agent-Cluster",
		"NEL", "Report-To", "Reporting-Endpoints", "Critical-CH", "Accept-CH-Lifetime", "Set-Login", "Use-As-Dictionary", "Public-Key-Pins-Report-Only", "Origin-Trial",
		"Secure-Session-Registration", "Sec-Session-Registration", "X-Accel-Redirect", "X-Accel-Buffering", "X-Sendfile", "X-SendFile-Type", "X-Sendfile2", "X-Reproxy-URL",
		"X-LIGHTTPD-send-file", "X-LiteSpeed-Location", "Surrogate-Control", "Edge-Control", "X-Envoy-Immediate-Health-Check-Fail", "Proxy-Authenticate", "X-Request-ID", "x-openwhisk-activation-id", "X-Content-Type-Options", "X-Forerun-Squashed", "Trailer", "Keep-Alive",
	}
	headers := map[string]string{"Set-Cookie": "a=b", "Content-Security-Policy": "sandbox", "X-Own": "mine", "Refresh": "9"}
	for _, name := range names {
		headers[name] = "mine"
	}
	for code, status := range map[string]int{"full": 200, "empty": 204} {
		result := map[string]any{"headers": headers}
		if code == "full" {
			result["body"] = "<b>hi</b>"
		}
		text, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		w.put(code, string(text))
		r := w.ask("GET", "guest/default/"+code, "")
		for _, name := range names {
			if slices.Contains(r.header.Values(name), "mine") {
				t.Errorf("%s: the action sets %s", code, name)
			}
		}
		if r.status != status || r.header.Get("Set-Cookie") != "a=b" || r.header.Get("Content-Security-Policy") != "sandbox" || r.header.Get("X-Own") != "mine" || r.header.Get("Refresh") != "9" {
			t.Errorf("%s: %d %v", code, r.status, r.header)
		}
		if r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("X-Request-Id") == "" || r.header.Get("X-Openwhisk-Activation-Id") == "" {
			t.Errorf("%s: the server's own are %v", code, r.header)
		}
	}
	for _, path := range []string{"guest/default/none", "guest"} {
		if r := w.ask("GET", path, ""); r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}

func TestOptions(t *testing.T) {
	w := newWorld(t)
	w.put("web", "echo")
	w.put("custom", `{"headers":{"Access-Control-Allow-Methods":"OPTIONS, GET"},"statusCode":200}`, "web-custom-options", "true", "require-whisk-auth", "true")
	for _, method := range allMethods() {
		r := w.ask(method, "guest/default/web.json", "")
		if r.header.Get("Access-Control-Allow-Origin") != "*" || r.header.Get("Access-Control-Allow-Methods") != "OPTIONS, GET, DELETE, POST, PUT, HEAD, PATCH" ||
			r.header.Get("Access-Control-Allow-Headers") != "Authorization, Origin, X-Requested-With, Content-Type, Accept, User-Agent" {
			t.Errorf("%s: %v", method, r.header)
		}
	}
	if r := w.ask("OPTIONS", "guest/default/web", "", "Access-Control-Request-Headers", "x-custom"); r.header.Get("Access-Control-Allow-Headers") != "x-custom" {
		t.Errorf("%v", r.header)
	}
	r := w.ask("OPTIONS", "guest/default/custom", "")
	if r.status != 200 || r.header.Get("Access-Control-Allow-Methods") != "OPTIONS, GET" || r.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("custom: %d %v", r.status, r.header)
	}
	if r := w.ask("GET", "guest/default/custom", ""); r.status != 401 {
		t.Errorf("custom, without a key: %d", r.status)
	}
}

func TestRecordIsTheOwners(t *testing.T) {
	w := newWorld(t)
	w.put("web", "echo")
	r := w.ask("GET", "guest/default/web", "", "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(w.auth.String())))
	id := forerun.ActivationID(r.header.Get("X-Openwhisk-Activation-Id"))
	if record, err := w.log.Get(t.Context(), "guest", id); err != nil || record.Subject != "guest" || record.Cause != "" {
		t.Errorf("the record: %+v, %v", record, err)
	}
	none := 0
	if _, err := w.tenants.SetQuotas(t.Context(), "guest", registry.Quotas{InvocationsPerMinute: &none}); err != nil {
		t.Fatal(err)
	}
	if r = w.ask("GET", "guest/default/web", ""); r.header.Get("Retry-After") == "" {
		t.Errorf("over the quota: %v", r.header)
	}
	w.refused(r, 429, "Too many requests in the last minute (count: 1, allowed: 0).")
}

func TestWaitIsOver(t *testing.T) {
	w := newWorld(t)
	w.put("web", "wait")
	h := New(Config{
		Resolve: w.tenants.Action, Tenants: w.tenants, MaxPayload: 10, MaxWait: time.Nanosecond, Quotas: gateway.NewQuotas(w.tenants, nil, nil),
		Controller: controller.New(controller.Config{Worker: w, Actions: w.tenants, Records: w.log}),
	})
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), "GET", Prefix+"guest/default/web.json", nil))
	if recorder.Code != 202 || !strings.Contains(recorder.Body.String(), `"error": "Response not yet ready."`) || recorder.Header().Get("X-Openwhisk-Activation-Id") == "" {
		t.Errorf("%d %v %s", recorder.Code, recorder.Header(), recorder.Body)
	}
	w.release <- struct{}{}
	h.Controller.Close(t.Context())
}

// slow is the writer of an answer that is read until a deadline.
type slow struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (s *slow) SetWriteDeadline(t time.Time) error {
	s.deadlines = append(s.deadlines, t)
	return nil
}

func TestLargeAnswerIsNotKeptForEver(t *testing.T) {
	w := newWorld(t)
	w.put("large", `{"body":"`+strings.Repeat("x", 100_000)+`"}`)
	client := &slow{ResponseRecorder: httptest.NewRecorder()}
	w.door.ServeHTTP(client, httptest.NewRequestWithContext(t.Context(), "GET", Prefix+"guest/default/large", nil))
	if n := len(client.deadlines); client.Code != http.StatusOK || n != 2 || client.deadlines[0].IsZero() || !client.deadlines[1].IsZero() {
		t.Errorf("status %d, deadlines %v", client.Code, client.deadlines)
	}
}

// leaving is a body with which its reader's tenant goes.
type leaving struct {
	io.Reader
	tenants *registry.Registry
}

func (l *leaving) Read(b []byte) (int, error) {
	_, _ = l.tenants.DeleteTenant(context.Background(), "guest") // the second time there is none
	return l.Reader.Read(b)
}

// TestOwnerThatGoesWhileABodyComes: nothing runs as a tenant's who has gone.
func TestOwnerThatGoesWhileABodyComes(t *testing.T) {
	w := newWorld(t)
	w.put("echo", "echo")
	r := httptest.NewRequest(http.MethodPost, Prefix+"guest/default/echo.json", &leaving{strings.NewReader(`{"a":1}`), w.tenants})
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	w.door.ServeHTTP(recorder, r)
	if recorder.Code != http.StatusNotFound || recorder.Header().Get("X-Openwhisk-Activation-Id") != "" {
		t.Errorf("%d %s", recorder.Code, recorder.Body)
	}
}

// TestSuspendedOwner: a stranger cannot tell a suspended owner's action from one that is not there, and a suspended caller's key counts as none.
func TestSuspendedOwner(t *testing.T) {
	w := newWorld(t)
	w.put("open", "echo")
	w.put("keys", "echo", "require-whisk-auth", "true")
	key := "Basic " + base64.StdEncoding.EncodeToString([]byte(w.auth.String())) // of the tenant "other"
	if r := w.ask("GET", "guest/default/keys.json", "", "Authorization", key); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if _, err := w.tenants.Suspend(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if r := w.ask("GET", "guest/default/keys.json", "", "Authorization", key); r.status != 401 {
		t.Errorf("a suspended caller is answered %d %s", r.status, r.body)
	}
	if r := w.ask("GET", "guest/default/open.json", "", "Authorization", key); r.status != 200 {
		t.Errorf("where no key is needed, a suspended caller is answered %d %s", r.status, r.body)
	}
	owner, err := w.tenants.Tenant(t.Context(), "guest")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.tenants.Suspend(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"GET", "POST", "OPTIONS"} {
		there, nowhere := w.ask(method, "guest/default/open.json", ""), w.ask(method, "nobody/default/open.json", "")
		w.refused(there, 404, gone)
		if len(there.header) != len(nowhere.header) || nowhere.status != 404 {
			t.Errorf("%s: %v and %d %v", method, there.header, nowhere.status, nowhere.header)
		}
	}
	h := Handler{Config{Tenants: w.tenants}}
	if err := h.isStill(t.Context(), owner); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("an owner who was found before is suspended: %v", err)
	}
	if _, err := w.tenants.Resume(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if r := w.ask("GET", "guest/default/open.json", ""); r.status != 200 {
		t.Errorf("after it was resumed: %d %s", r.status, r.body)
	}
}
