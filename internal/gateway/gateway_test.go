package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"forerun.dev/forerun/internal/forerun"
)

// newDoor makes a front door before an API.
func newDoor(t *testing.T, log io.Writer, api http.HandlerFunc, gate *Gate) http.Handler {
	t.Helper()
	if gate == nil {
		gate = NewGate()
	}
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	return New(Config{API: api, Metrics: metrics, Gate: gate, Log: slog.New(slog.NewTextHandler(log, nil))})
}

func get(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHealth(t *testing.T) {
	request := httptest.NewRequest(http.MethodGet, "/healthz", nil)
	if w := get(newDoor(t, t.Output(), nil, nil), request); w.Code != 200 || w.Body.String() != `{"status":"ok"}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	shut := NewGate()
	shut.Shut(t.Context())
	for _, path := range []string{"/healthz", "/api/v1"} {
		w := get(newDoor(t, t.Output(), nil, shut), httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != 503 || !strings.Contains(w.Body.String(), `{"error":"The server is shutting down. Try again when it has been started again.","code":"`) {
			t.Errorf("%s while it shuts down: %d %s", path, w.Code, w.Body)
		}
	}
	if w := get(newDoor(t, t.Output(), nil, nil), httptest.NewRequest(http.MethodGet, "/metrics", nil)); w.Body.String() != "metrics" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for _, path := range []string{"/healthz", "/metrics"} {
		w := get(newDoor(t, t.Output(), nil, nil), httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != 405 || w.Header().Get("Allow") != "GET, HEAD" || !strings.Contains(w.Body.String(), `{"error":"HTTP method not allowed, supported methods: GET, HEAD","code":"`) {
			t.Errorf("POST %s: %d %s, allowed %s", path, w.Code, w.Body, w.Header().Get("Allow"))
		}
	}
}

// TestEncodedPaths: a path leads to a handler as it was sent; encoded letters of its beginning lead to the API, which knows none such.
func TestEncodedPaths(t *testing.T) {
	says := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }
	}
	h := New(Config{
		API: says("api"), Web: says("web"), Admin: says("admin"), Page: says("page"), Metrics: says("metrics"), Gate: NewGate(), Log: slog.New(slog.DiscardHandler),
	})
	for path, want := range map[string]string{
		"/admin/v1/tenants/a%2Fb": "admin", "/%61dmin/v1/tenants": "api", "/admin%2Fv1/tenants": "api", "/x/../admin/v1/tenants": "api", "/./admin/": "api", "//admin/": "api",
		"/metrics": "metrics", "/metric%73": "api", "/docs/guide/web.md": "page", "/doc%73/guide/web.md": "api",
		"/api/v1/web/a/b/c%2Fd": "web", "/api/v1/we%62/a/b/c": "api", "/api/v1/web/whisk.system/apimgmt/getApi.http": "api",
	} {
		if w := get(h, httptest.NewRequest(http.MethodGet, path, nil)); w.Body.String() != want {
			t.Errorf("%s leads to %s, not %s", path, w.Body, want)
		}
	}
}

func TestOurFailuresGoToTheLogAlone(t *testing.T) {
	for name, api := range map[string]http.HandlerFunc{
		"error": func(w http.ResponseWriter, r *http.Request) {
			Fail(w, r, fmt.Errorf("reading: %w", errors.New("secret detail")))
		},
		"panic": func(http.ResponseWriter, *http.Request) { panic("secret detail") },
	} {
		var log strings.Builder
		r := httptest.NewRequest(http.MethodGet, "/x", nil)
		r.Header.Set("X-Request-ID", "tid")
		w := get(newDoor(t, &log, api, nil), r)
		if w.Code != 500 || w.Body.String() != `{"error":"There was an internal server error.","code":"tid"}` {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if !strings.Contains(log.String(), "secret detail") || !strings.Contains(log.String(), "transaction=tid") {
			t.Errorf("%s: the log says %s", name, log.String())
		}
	}
}

func TestAbortedHandlerStaysAborted(t *testing.T) {
	defer func() {
		if p := recover(); p != any(http.ErrAbortHandler) {
			t.Errorf("recovered %v", p)
		}
	}()
	get(newDoor(t, t.Output(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil), httptest.NewRequest(http.MethodGet, "/", nil))
}

// TestNobodyIsLeft: a request that was given up as its client has gone has no answer, and is no failure of ours.
func TestNobodyIsLeft(t *testing.T) {
	var log strings.Builder
	defer func() {
		if p := recover(); p != any(http.ErrAbortHandler) || log.Len() > 0 {
			t.Errorf("recovered %v; the log says %s", p, log.String())
		}
	}()
	gone, leave := context.WithCancel(t.Context())
	leave()
	api := func(w http.ResponseWriter, r *http.Request) { Fail(w, r, fmt.Errorf("reading: %w", r.Context().Err())) }
	get(newDoor(t, &log, api, nil), httptest.NewRequestWithContext(gone, http.MethodGet, "/x", nil))
}

func TestBody(t *testing.T) {
	for _, test := range []struct {
		name    string
		content io.Reader
		length  int64
		want    string
		kind    forerun.Kind
	}{
		{name: "none", content: http.NoBody, length: 0},
		{name: "whole", content: strings.NewReader("0123456789"), length: 10, want: "0123456789"},
		{name: "chunked", content: strings.NewReader("0123456789"), length: -1, want: "0123456789"},
		{name: "declared too large", content: strings.NewReader("x"), length: 11, kind: forerun.TooLarge},
		{name: "chunked too large", content: strings.NewReader("0123456789x"), length: -1, kind: forerun.TooLarge},
		{name: "cut off", content: strings.NewReader("01234"), length: 10, kind: forerun.Invalid},
		{name: "broken", content: iotest.ErrReader(errors.New("reset")), length: -1, kind: forerun.Invalid},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", test.content)
		r.ContentLength = test.length
		got, err := Body(httptest.NewRecorder(), r, 10)
		if string(got) != test.want || (err == nil) != (test.kind == 0) || err != nil && forerun.KindOf(err) != test.kind {
			t.Errorf("%s: %q, %v", test.name, got, err)
		}
	}
}

// TestWhatIsDrainedCountsForNobody: it is read past what a handler has put in the body's place.
func TestWhatIsDrainedCountsForNobody(t *testing.T) {
	sent := strings.NewReader(strings.Repeat("x", 2*smallBody))
	get(newDoor(t, t.Output(), func(w http.ResponseWriter, r *http.Request) {
		r.Body = io.NopCloser(iotest.ErrReader(errors.New("too much of this tenant")))
		Fail(w, r, forerun.Errorf(forerun.Unauthorized, "", "no"))
	}, nil), httptest.NewRequest(http.MethodPost, "/", sent))
	if sent.Len() != 0 {
		t.Errorf("%d bytes are not read", sent.Len())
	}
}

// TestAnnouncedBodiesTakeNoMemory: what was announced was taken at once, before anything came.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := read(strings.NewReader("x"), 256<<20); err == nil {
		t.Error("a body that is cut off was read")
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 1<<20 {
		t.Errorf("a byte takes %d bytes", bytes)
	}
	whole := strings.Repeat("0123456789", smallBody/3)
	if got, err := read(strings.NewReader(whole), int64(len(whole))); err != nil || string(got) != whole {
		t.Errorf("%d bytes became %d: %v", len(whole), len(got), err)
	}
}
