package openwhisk

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
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

// TestTenantThatGoesAsAnInvocationBegins: the deletion of a tenant takes with it what is begun as it comes, after the last look at the tenant.
func TestTenantThatGoesAsAnInvocationBegins(t *testing.T) {
	w := newWorld(t)
	w.deploy("slow", "slow")
	killed, gone := make(chan struct{}), make(chan struct{})
	w.functions["slow"] = func(*forerun.Run) forerun.RunEnd {
		<-killed
		return forerun.RunEnd{}
	}
	w.api.Quotas = gateway.NewQuotas(w.api.Registry, nil, func(string) int {
		if _, err := w.api.Registry.DeleteTenant(t.Context(), "guest"); err != nil {
			t.Error(err)
		}
		go func() {
			defer close(gone)
			w.api.Controller.EndNamespace(t.Context(), "guest", "The tenant was deleted.")
		}()
		select {
		case <-gone: // too early
		case <-time.After(20 * time.Millisecond):
		}
		return 0
	})
	if r := w.request("POST", actions+"slow?blocking=true", ""); !strings.Contains(r.body, "The tenant was deleted.") {
		t.Errorf("%d %s", r.status, r.body)
	}
	<-gone
	close(killed)
}

// TestInvocationBehindTheLast: what comes when the server waits for no more invocations is told that, and nothing of records.
func TestInvocationBehindTheLast(t *testing.T) {
	w := newWorld(t)
	w.deploy("echo", "echo")
	w.api.Controller.Close(t.Context())
	r := w.request("POST", actions+"echo?blocking=true", "")
	if got := member(t, r.body, "error"); r.status != http.StatusServiceUnavailable || got != `"The server is shutting down. Try again when it has been started again."` {
		t.Errorf("%d %s", r.status, r.body)
	}
}
