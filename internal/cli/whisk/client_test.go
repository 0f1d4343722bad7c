package whisk

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestBaseURL(t *testing.T) {
	for host, want := range map[string]string{
		"localhost": "http://localhost:3233", "localhost:80": "http://localhost:80", "127.0.0.1": "http://127.0.0.1:3233", "[::1]:80": "http://[::1]:80",
		"example.com": "https://example.com", "10.0.0.1:8080": "https://10.0.0.1:8080", " https://example.com/api ": "https://example.com",
		"http://example.com:1/": "http://example.com:1", "": "", "ftp://x": "", "http://": "", "a b": "", "::": "",
	} {
		if got, err := BaseURL(host); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v, want %q", host, got, err, want)
		}
	}
}

// TestKeysStayOnHTTPS: an API that leads from HTTPS to HTTP is not followed, and is sent no key there.
func TestKeysStayOnHTTPS(t *testing.T) {
	inTheClear := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it was asked %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer inTheClear.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(inTheClear.URL, http.StatusTemporaryRedirect))
	defer secure.Close()
	c, err := New(Options{Host: secure.URL, Auth: "uuid:key", Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Get[Action](t.Context(), c, "x", nil); err == nil || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("the client is told %v", err)
	}
}

// TestKeysStayOnTheirHost: an API that leads to another host is not followed there, also not to one below its own; to another port it is.
func TestKeysStayOnTheirHost(t *testing.T) {
	for _, c := range []struct {
		from, to string
		ok       bool
	}{
		{"https://example.com/a", "https://EXAMPLE.com:8443/b", true},
		{"https://example.com/a", "https://api.example.com/a", false},
		{"http://localhost:3233/a", "http://127.0.0.1:3233/a", false},
	} {
		asked := httptest.NewRequest(http.MethodGet, c.from, nil)
		if err := mayFollow(httptest.NewRequest(http.MethodGet, c.to, nil), []*http.Request{asked}); (err == nil) != c.ok {
			t.Errorf("from %s to %s: %v", c.from, c.to, err)
		}
	}
}

// TestRedirects: others are followed, but not for ever.
func TestRedirects(t *testing.T) {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, key, _ := r.BasicAuth(); {
		case r.URL.Path == "/api/v1/once":
			http.Redirect(w, r, server.URL+"/there", http.StatusTemporaryRedirect)
		case r.URL.Path == "/there" && key == "key":
			_, _ = w.Write([]byte(`{"name":"x"}`))
		default:
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	defer server.Close()
	c, err := New(Options{Host: server.URL, Auth: "uuid:key"})
	if err != nil {
		t.Fatal(err)
	}
	if is, err := Get[Action](t.Context(), c, "once", nil); err != nil || is.Value.Name != "x" {
		t.Errorf("%v, %v", is.Value, err)
	}
	if _, err := Get[Action](t.Context(), c, "circle", nil); err == nil || !strings.Contains(err.Error(), "redirected more than 10 times") {
		t.Errorf("the client is told %v", err)
	}
}
