package console

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

const host = "127.0.0.1:3235"

// world is a console before an API that notes what it was asked.
type world struct {
	*testing.T
	door    http.Handler
	tenants *registry.Registry
	key     registry.Credentials
	asked   *http.Request // by the API, the last one
	status  int           // that it answers with
	waits   chan context.Context
}

func newWorld(t *testing.T, secure bool) *world {
	t.Helper()
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := registry.ParseKeyring(registry.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, tenants: registry.Open(store, registry.DefaultLimits(), keyring), status: http.StatusOK}
	t.Cleanup(func() {
		w.tenants.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	if w.key, err = w.tenants.CreateTenant(t.Context(), "guest", registry.Quotas{}); err != nil {
		t.Fatal(err)
	}
	page, err := New(Config{API: w, Tenants: w.tenants, Files: fstest.MapFS{
		"index.html": {Data: []byte("<!DOCTYPE html>")}, "main.js": {Data: []byte("let a")}, ".gitignore": {Data: []byte("*")},
	}, Secure: secure, APIURL: "http://api"})
	if err != nil {
		t.Fatal(err)
	}
	w.door = gateway.New(gateway.Config{API: page, Web: page, Gate: gateway.NewGate(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	return w
}

// ServeHTTP is the API.
func (w *world) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	w.asked = r
	if w.waits != nil {
		w.waits <- r.Context()
		<-r.Context().Done()
	}
	to.Header().Set("Access-Control-Allow-Origin", "*")
	to.Header().Set("WWW-Authenticate", "Basic")
	gateway.WriteJSON(to, w.status, "answer")
}

// send sends a request; headers are pairs, of which an empty value removes one.
func (w *world) send(method, path, body string, headers ...string) *http.Response {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, strings.NewReader(body))
	r.Host = host
	if method != http.MethodGet {
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	answer := httptest.NewRecorder()
	w.door.ServeHTTP(answer, r)
	return answer.Result()
}

// login returns the headers that a session's requests have.
func (w *world) login(headers ...string) []string {
	w.Helper()
	answer := w.send("POST", "/console/login", fmt.Sprintf(`{"key":%q}`, w.key.String()), headers...)
	var told loginDocument
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil || answer.StatusCode != 200 || told.Namespace != "guest" || told.API != "http://api" {
		w.Fatalf("the login is answered %d %+v (%v)", answer.StatusCode, told, err)
	}
	cookie := answer.Cookies()[0]
	return append([]string{"Cookie", cookie.Name + "=" + cookie.Value, TokenHeader, told.Token}, headers...)
}

const (
	actions = "/api/v1/namespaces/_/actions"
	hello   = actions + "/hello?blocking=true"
)

func TestLogin(t *testing.T) {
	for secure, want := range map[bool]string{
		false: "forerun-console=ID; Path=/; HttpOnly; SameSite=Strict", true: "__Host-forerun-console=ID; Path=/; HttpOnly; Secure; SameSite=Strict",
	} {
		w, origin := newWorld(t, secure), "http://"+host
		if secure {
			origin = "https://" + host
		}
		answer := w.send("POST", "/console/login", fmt.Sprintf(`{"key":%q}`, w.key.String()), "Origin", origin)
		set := answer.Header.Get("Set-Cookie")
		if id := answer.Cookies()[0].Value; len(id) < 50 || strings.Replace(set, id, "ID", 1) != want {
			t.Errorf("the cookie is %q", set)
		}
		s := w.login("Origin", origin)
		if answer := w.send("POST", hello, "{}", s...); answer.StatusCode != 200 {
			t.Errorf("an invocation: %d", answer.StatusCode)
		}
	}
	w := newWorld(t, false)
	good := fmt.Sprintf(`{"key":%q}`, w.key.String())
	for name, c := range map[string]struct {
		body    string
		headers []string
		want    int
	}{
		"a wrong key":         {`{"key":"` + w.key.UUID + `:x"}`, nil, 401},
		"no key":              {`{}`, nil, 401},
		"too much":            {`{"key":"` + strings.Repeat("x", maxLogin) + `"}`, nil, 400},
		"a form":              {good, []string{"Content-Type", "text/plain"}, 400},
		"another origin":      {good, []string{"Origin", "http://127.0.0.1:3234"}, 403},
		"another scheme":      {good, []string{"Origin", "https://" + host}, 403},
		"no origin":           {good, []string{"Origin", ""}, 403},
		"another site's page": {good, []string{"Sec-Fetch-Site", "cross-site"}, 403},
	} {
		if answer := w.send("POST", "/console/login", c.body, c.headers...); answer.StatusCode != c.want || answer.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, c.want)
		}
	}
}

// TestBothSecrets: a request reaches the API only with the cookie and the token of one session, from a page of the console.
func TestBothSecrets(t *testing.T) {
	w := newWorld(t, false)
	s, other := w.login(), w.login()
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"a list":                    {"GET", actions, s, 200},
		"a page's":                  {"GET", actions, append(s[:4:4], "Sec-Fetch-Site", "same-origin"), 200},
		"no token":                  {"GET", actions, s[:2], 401},
		"no cookie":                 {"GET", actions, s[2:], 401},
		"no session":                {"GET", actions, nil, 401},
		"a key":                     {"GET", actions, []string{"Authorization", "Basic eDp5"}, 401},
		"another's token":           {"GET", actions, append(s[:2:2], other[2:]...), 401},
		"another port's page":       {"GET", actions, append(s[:4:4], "Sec-Fetch-Site", "same-site"), 403},
		"another port's origin":     {"GET", actions, append(s[:4:4], "Origin", "http://127.0.0.1:3234"), 403},
		"an invocation":             {"POST", hello, s, 200},
		"in a package":              {"POST", actions + "/p/hello", s, 200},
		"an invocation, no token":   {"POST", hello, s[:2], 401},
		"an invocation, no origin":  {"POST", hello, append(s[:4:4], "Origin", ""), 403},
		"an invocation from null":   {"POST", hello, append(s[:4:4], "Origin", "null"), 403},
		"an invocation, other port": {"POST", hello, append(s[:4:4], "Origin", "http://127.0.0.1:3234"), 403},
		"a change":                  {"PUT", actions + "/hello", s, 405},
		"a deletion":                {"DELETE", actions + "/hello", s, 405},
		"a firing":                  {"POST", "/api/v1/namespaces/_/triggers/bell", s, 405},
		"a purge":                   {"POST", "/api/v1/namespaces/_/cache/purge", s, 405},
		"secrets":                   {"GET", actions + "/hello?secrets=true", s, 405},
		"a preflight":               {"OPTIONS", actions, s, 405},
		"a web action":              {"GET", "/api/v1/web/guest/default/page", s, 404},
		"the operator's API":        {"GET", "/admin/v1/tenants", s, 404},
	} {
		w.asked = nil
		answer := w.send(c.method, c.path, "{}", c.headers...)
		if answer.StatusCode != c.want || (w.asked != nil) != (c.want == 200) {
			t.Errorf("%s: %d, want %d (the API was asked: %t)", name, answer.StatusCode, c.want, w.asked != nil)
		}
		if h := answer.Header; h.Get("Access-Control-Allow-Origin") != "" || h.Get("WWW-Authenticate") != "" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: the answer has %v", name, h)
		}
	}
	w.send("GET", actions, "", append(s, "Authorization", "Basic eDp5")...)
	uuid, key, _ := w.asked.BasicAuth()
	if uuid != w.key.UUID || key != w.key.Key || w.asked.Header.Get("Cookie") != "" || w.asked.Header.Get(TokenHeader) != "" {
		t.Errorf("the API is asked with %v", w.asked.Header)
	}
}

// TestSessionEnds: with a logout, with its key, with an answer that the key is void, and when a tenant has too many.
func TestSessionEnds(t *testing.T) {
	for name, end := range map[string]func(*world, []string){
		"logout": func(w *world, s []string) {
			if answer := w.send("POST", "/console/logout", "", s...); answer.StatusCode != 204 || !strings.Contains(answer.Header.Get("Set-Cookie"), "Max-Age=0") {
				w.Errorf("a logout: %d %v", answer.StatusCode, answer.Header)
			}
		},
		"key rotated": func(w *world, _ []string) {
			if _, err := w.tenants.RotateKeys(w.Context(), "guest"); err != nil {
				w.Error(err)
			}
		},
		"key void, says the API": func(w *world, s []string) {
			w.status = http.StatusUnauthorized
			w.send("GET", actions, "", s...)
			w.status = http.StatusOK
		},
		"too many": func(w *world, _ []string) {
			for range mostOfATime {
				w.login()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, false)
			s := w.login()
			if answer := w.send("POST", "/console/logout", "", s[:2]...); answer.StatusCode != 401 {
				t.Errorf("a logout without the token: %d", answer.StatusCode)
			}
			if answer := w.send("GET", actions, "", s...); answer.StatusCode != 200 {
				t.Fatalf("before: %d", answer.StatusCode)
			}
			end(w, s)
			if answer := w.send("GET", actions, "", s...); answer.StatusCode != 401 {
				t.Errorf("after: %d", answer.StatusCode)
			}
		})
	}
}

// TestSessionsAreFew: however fast logins come, a tenant keeps no more sessions than it may have, and another one has its own.
func TestSessionsAreFew(t *testing.T) {
	var all sessions
	never := func(string, func()) func() { return func() {} }
	other := all.begin("other", registry.Credentials{}, never)
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range mostOfATime {
				all.begin("guest", registry.Credentials{}, never)
			}
		})
	}
	running.Wait()
	last := all.begin("guest", registry.Credentials{}, never)
	alive := 0
	all.mu.Lock()
	for _, s := range all.byID {
		if s.namespace == "guest" && s.ctx.Err() == nil {
			alive++
		}
	}
	all.mu.Unlock()
	if alive != mostOfATime || all.find(last.id) != last || all.find(other.id) != other {
		t.Errorf("%d sessions have not ended, want %d", alive, mostOfATime)
	}
}

// TestRequestsEndWithTheSession: what a session waits for, such as the feed, ends with it.
func TestRequestsEndWithTheSession(t *testing.T) {
	w := newWorld(t, false)
	s := w.login()
	w.waits = make(chan context.Context)
	done := make(chan int)
	go func() { done <- w.send("GET", "/api/v1/namespaces/_/feed", "", s...).StatusCode }()
	<-w.waits
	w.send("POST", "/console/logout", "", s...)
	<-done
}

func TestFiles(t *testing.T) {
	w := newWorld(t, false)
	for path, want := range map[string]string{
		"/console/": "text/html; charset=utf-8", "/console/runs/x": "text/html; charset=utf-8", "/console/main.js": "text/javascript; charset=utf-8",
		"/console/.gitignore": "text/html; charset=utf-8", "/console/none.js": "", "/x": "", "/docs/x.md": "", "/metrics": "",
	} {
		answer := w.send("GET", path, "")
		if kind := answer.Header.Get("Content-Type"); (answer.StatusCode == 200) != (want != "") || want != "" && kind != want || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %s", path, answer.StatusCode, kind)
		}
	}
	answer := w.send("GET", "/console/main.js", "", "Accept-Encoding", "br, gzip")
	unpacked, err := gzip.NewReader(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unpacked); err != nil || string(text) != "let a" {
		t.Errorf("compressed it is %q (%v)", text, err)
	}
	if again := w.send("GET", "/console/main.js", "", "If-None-Match", answer.Header.Get("ETag")); again.StatusCode != 304 {
		t.Errorf("the same again: %d", again.StatusCode)
	}
	if answer := w.send("POST", "/console/", ""); answer.StatusCode != 405 {
		t.Errorf("a POST: %d", answer.StatusCode)
	}
	if answer := w.send("GET", "/", ""); answer.Header.Get("Location") != Prefix {
		t.Errorf("the root: %d %v", answer.StatusCode, answer.Header)
	}
}

// TestBundle holds the bound of the page's size, where it was built: compressed, all of it has at most 60 kB.
func TestBundle(t *testing.T) {
	all, err := pack(Bundle())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Skip("the page is not built here: make build")
	}
	sum := 0
	for _, f := range all {
		sum += len(f.packed)
	}
	if sum > 60_000 {
		t.Errorf("the page has %d bytes", sum)
	}
}
