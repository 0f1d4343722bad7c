package gateway

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// TestPage: browsers see a page, clients see JSON as before, and functions' door has none.
func TestPage(t *testing.T) {
	page, err := NewPage(PageConfig{
		Metrics: true, Version: "1.2.3",
		Protections: []Protection{{What: "namespaces", On: true}, {What: "limits of memory", Why: "no <cgroup>"}},
		Documents:   fstest.MapFS{"guide/web.md": {Data: []byte("# A web page\n\ntext\n")}, "reference/api.md": {Data: []byte("# The API\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		WriteJSON(w, http.StatusOK, map[string]string{"api": r.URL.Path})
	})
	ask := func(page http.Handler, method, path, accept string) *httptest.ResponseRecorder {
		door := New(Config{API: api, Page: page, Metrics: http.NotFoundHandler(), Gate: NewGate()})
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		return w
	}
	w := ask(page, "GET", "/", "text/html,application/xhtml+xml,*/*;q=0.8")
	body := w.Body.String()
	for _, want := range []string{"Forerun 1.2.3", "enforced: namespaces", "NOT enforced: limits of memory (no &lt;cgroup&gt;)", `href="/metrics"`, `<a href="/docs/guide/web.md">guide: A web page</a>`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not say %q:\n%s", want, body)
		}
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") || w.Header().Get("Content-Type") != "text/html; charset=utf-8" || w.Header().Get("Vary") != "Accept" {
		t.Errorf("the headers are %v", w.Header())
	}
	if outside := regexp.MustCompile(`<script|<img|<link|https?://|url\(`).FindString(body); outside != "" {
		t.Errorf("the page loads something: %s", outside)
	}
	for _, c := range []struct{ method, path, accept, media, body string }{
		{"GET", "/", "", "application/json", `{"api":"/"}`},
		{"GET", "/", "application/json", "application/json", `{"api":"/"}`},
		{"GET", "/", "*/*", "application/json", `{"api":"/"}`},
		{"POST", "/", "text/html", "application/json", `{"api":"/"}`},
		{"GET", "/api/v1", "text/html", "application/json", `{"api":"/api/v1"}`},
		{"GET", "/docs/guide/web.md", "", "text/plain; charset=utf-8", "# A web page\n\ntext\n"},
		{"HEAD", "/docs/guide/web.md", "", "text/plain; charset=utf-8", ""},
	} {
		w := ask(page, c.method, c.path, c.accept)
		if w.Code != 200 || w.Header().Get("Content-Type") != c.media || strings.TrimSpace(w.Body.String()) != strings.TrimSpace(c.body) {
			t.Errorf("%s %s for %q: %d %s %q", c.method, c.path, c.accept, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
	for _, path := range []string{"/docs/", "/docs/guide", "/docs/guide/", "/docs/none.md", "/docs/../gateway.go", "/docs/guide/%2e%2e/%2e%2e/x.md"} {
		if w := ask(page, "GET", path, "text/html"); w.Code != 404 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(nil, "GET", "/", "text/html"); w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("without a page: %v", w.Header())
	}
}
