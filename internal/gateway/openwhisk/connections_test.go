package openwhisk

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/seats"
)

// TestConnectionsAreTheTenants: a connection is the tenant's whose key is shown on it.
func TestConnectionsAreTheTenants(t *testing.T) {
	w := newWorld(t)
	address := listening(t, w, 1, 100)
	ask := func(client *http.Client, withKey bool) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+actions, nil)
		if err != nil {
			t.Fatal(err)
		}
		if withKey {
			r.SetBasicAuth(w.auth.UUID, w.auth.Key)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body) // so that the connection stays
		return answer.StatusCode
	}
	one, other := &http.Client{Transport: new(http.Transport)}, &http.Client{Transport: new(http.Transport)}
	for i, step := range []struct {
		client  *http.Client
		withKey bool
		want    int
	}{{other, false, 401}, {one, true, 200}, {one, true, 200}, {other, true, 429}, {other, false, 401}} {
		if got := ask(step.client, step.withKey); got != step.want {
			t.Errorf("request %d: %d, not %d", i, got, step.want)
		}
	}
	one.CloseIdleConnections()
	for ask(other, true) != 200 { // until the server knows
	}
}

// listening opens a world's door on a port of its own, and returns its address.
func listening(t *testing.T, w *world, conns, strangers int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := gateway.NewServer(w.door, seats.New(conns, strangers), nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}
