package admin

import (
	"io"
	"net"
	"net/http"
	"testing"

	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/seats"
)

// TestOperatorsConnections: one that was a tenant's is none of the tenant's when the operator's key is shown on it.
func TestOperatorsConnections(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := gateway.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ada" {
			w.door.ServeHTTP(answer, r)
		} else if gateway.Seat(answer, r, "ada") != nil {
			answer.WriteHeader(http.StatusTooManyRequests)
		}
	}), seats.New(1, 100), nil, w.api.Log)
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	one, other := new(http.Transport), new(http.Transport)
	for i, step := range []struct {
		client *http.Transport
		path   string
		want   int
	}{{one, "/ada", 200}, {other, "/ada", 429}, {one, Prefix + "tenants", 200}, {other, "/ada", 200}} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+step.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("operator", "0123456789abcdef")
		answer, err := step.client.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body) // so that the connection stays
		_ = answer.Body.Close()
		if answer.StatusCode != step.want {
			t.Errorf("request %d: %d, not %d", i, answer.StatusCode, step.want)
		}
	}
}
