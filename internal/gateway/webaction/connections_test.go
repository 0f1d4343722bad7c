package webaction

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/seats"
)

// TestConnectionsAreTheOwners: who calls a web action has a connection of the owner's.
func TestConnectionsAreTheOwners(t *testing.T) {
	w := newWorld(t)
	w.put("page", `{"body":"hello"}`)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := gateway.NewServer(w.door, seats.New(1, 100), nil, slog.New(slog.NewTextHandler(t.Output(), nil)))
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	for i, want := range []int{200, 429} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+Prefix+"guest/default/page", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := new(http.Transport).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body) // so that the connection stays
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("caller %d: %d, not %d", i, answer.StatusCode, want)
		}
	}
}
