package openwhisk

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestWhoStopsSending: who closes its sending half while it waits for an invocation counts as gone. It is told nothing, not even 200
// without a word, and the invocation goes on; so it is for one of two who wait for the same.
func TestWhoStopsSending(t *testing.T) {
	w := newWorld(t)
	begun, let := make(chan struct{}), make(chan struct{})
	w.functions["slow"] = func(r *forerun.Run) forerun.RunEnd {
		begun <- struct{}{}
		<-let
		return echo(r)
	}
	w.deploy("slow", "slow")
	address := listening(t, w, 10, 10)
	ask := func(header string) *net.TCPConn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(c, "POST %sslow?blocking=true HTTP/1.0\r\n%sAuthorization: %s\r\nContent-Length: 0\r\n\r\n", actions, header, basic(w))
		return c.(*net.TCPConn)
	}
	for _, header := range []string{"", "Idempotency-Key: k\r\n"} {
		goes := ask(header)
		<-begun
		var stays *net.TCPConn
		if header != "" {
			stays = ask(header)
		}
		if err := goes.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if answer, _ := io.ReadAll(goes); len(answer) > 0 {
			t.Errorf("%q: who has gone is told %q", header, answer)
		}
		_ = goes.Close()
		let <- struct{}{}
		if stays == nil {
			continue
		}
		if answer, err := io.ReadAll(stays); err != nil || !strings.Contains(string(answer), " 200 OK") || !strings.Contains(string(answer), `"success":true`) {
			t.Errorf("who has stayed is told %q, %v", answer, err)
		}
		_ = stays.Close()
	}
	for strings.Count(w.request("GET", activations, "").body, `"activationId"`) < 2 { // until both have ended
	}
}

// basic is the header of a request with the tenant's key.
func basic(w *world) string {
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	r.SetBasicAuth(w.auth.UUID, w.auth.Key)
	return r.Header.Get("Authorization")
}
