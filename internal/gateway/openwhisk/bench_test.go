package openwhisk

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/state/embedded"
)

// BenchmarkInvoke is the way of a warm blocking invocation through everything but a sandbox and the network. All that it allocates is the
// server's, as the request and the recorder of the answer are made once.
func BenchmarkInvoke(b *testing.B) {
	w := newWorldIn(b, b.TempDir(), embedded.Options{})
	w.deploy("echo", "echo")
	body := strings.NewReader(`{"name":"ada"}`)
	r := httptest.NewRequestWithContext(context.WithValue(b.Context(), sandboxKey{}, w.sandbox), http.MethodPost, actions+"echo?blocking=true", body)
	r.SetBasicAuth(w.auth.UUID, w.auth.Key)
	r.Header.Set("Content-Type", "application/json")
	content, taken := r.Body, &taker{header: make(http.Header)}
	b.ReportAllocs()
	for b.Loop() {
		clear(taken.header)
		r.Body = content
		_, _ = body.Seek(0, io.SeekStart)
		if w.door.ServeHTTP(taken, r); taken.status != http.StatusOK {
			b.Fatal(taken.status)
		}
	}
}

// taker takes an answer, and forgets all of it but its status.
type taker struct {
	header http.Header
	status int
}

func (t *taker) Header() http.Header         { return t.header }
func (t *taker) WriteHeader(status int)      { t.status = status }
func (t *taker) Write(p []byte) (int, error) { return len(p), nil }

// A handler may set these on its connection: here they always work.
func (t *taker) Flush()                           {}
func (t *taker) EnableFullDuplex() error          { return nil }
func (t *taker) SetReadDeadline(time.Time) error  { return nil }
func (t *taker) SetWriteDeadline(time.Time) error { return nil }
