package harness

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serve answers with what it is sent, or with 502 where the path says so. It counts its connections.
func serve(t *testing.T) (url string, connections map[string]bool) {
	connections = make(map[string]bool)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		connections[r.RemoteAddr] = true
		if user, password, _ := r.BasicAuth(); user != "me" || password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body) // what lacks shows in the answer
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s.URL, connections
}

func connection(t *testing.T, url, body, want string) *Connection {
	t.Helper()
	r, err := NewRequest(url, "me:secret", body, want)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestConnectionIsKept(t *testing.T) {
	url, connections := serve(t)
	long := `{"x":1,"long":"` + strings.Repeat("x", 10_000) + `"}` // its answer comes in chunks
	c := connection(t, url+"/path?query", long, long)
	for range 3 {
		if took, err := c.Call(t.Context()); err != nil || took <= 0 {
			t.Fatalf("%v, %v", took, err)
		}
	}
	if len(connections) != 1 {
		t.Errorf("%d connections for three calls", len(connections))
	}
}

func TestWrongAnswersAreErrors(t *testing.T) {
	url, _ := serve(t)
	for _, c := range []struct{ path, want, part string }{
		{"/", "other", `the answer was 200: {"x":1}`},
		{"/bad", `"x":1`, `the answer was 502: {"x":1}`},
	} {
		_, err := connection(t, url+c.path, `{"x":1}`, c.want).Call(t.Context())
		if err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}
