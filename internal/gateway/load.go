package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// Bounds of what the bodies of requests take of the server's memory.
const (
	smallBody = 64 << 10  // is not counted
	maxBodies = 512 << 20 // of one tenant, until they are answered
	maxApart  = 8 << 20   // of one tenant, while they are taken apart: many small members take fifty times as much
)

// Body reads a request's body of at most limit bytes for a tenant. What comes in counts among the tenant's until the request's
// context ends, as it does with the answer. The errors are those of the function Body, and forerun.TooMany if the tenant sends
// too much at a time.
func (q *Quotas) Body(w http.ResponseWriter, r *http.Request, namespace string, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return Body(w, r, limit)
	}
	r.Body = &load{ReadCloser: r.Body, ctx: r.Context(), all: &q.meter(namespace).bodies}
	return Body(w, r, limit)
}

// Apart waits until a tenant's body may be taken apart, beside its others; done says that it was.
func (q *Quotas) Apart(ctx context.Context, namespace string, body []byte) (done func(), err error) {
	if len(body) <= smallBody {
		return func() {}, nil
	}
	bytes, apart := min(int64(len(body)), maxApart), q.meter(namespace).apart
	if apart.Acquire(ctx, bytes) != nil {
		return nil, forerun.Errorf(forerun.Unavailable, "body", "The client has gone: its request was given up.")
	}
	return func() { apart.Release(bytes) }, nil
}

// load is a body that is counted while it is read.
type load struct {
	io.ReadCloser
	ctx  context.Context
	all  *atomic.Int64 // bytes of the tenant's bodies
	read int64

	mu      sync.Mutex // guards what follows
	counted int64      // of all
	over    bool       // the request is
}

// Read implements io.Reader.
func (l *load) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.read += int64(n); l.read <= smallBody {
		return n, err
	}
	if others, ok := l.count(l.read); !ok {
		l.end() // the rest is read for the client's sake, and not kept
		return 0, tooMany(1, "Too many large requests at a time (bytes: %d, allowed: %d).", others+l.read, maxBodies)
	}
	return n, err
}

// count makes the body count for so many bytes. It reports false if that is too much beside others.
func (l *load) count(bytes int64) (others int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return 0, true
	}
	if l.counted == 0 {
		context.AfterFunc(l.ctx, l.end)
	}
	others = l.all.Add(bytes-l.counted) - bytes
	l.counted = bytes
	return others, others+bytes <= maxBodies
}

// end makes the body count no longer. It may be called twice.
func (l *load) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Add(-l.counted)
	l.counted, l.over = 0, true
}
