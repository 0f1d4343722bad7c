package gateway

import (
	"context"
	"net/http"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// Gate lets requests in until it is shut, and tells when those that came in have been answered.
type Gate struct {
	mu     sync.Mutex // guards what follows
	inside int
	shut   bool
	empty  chan struct{} // closed when it is shut and nobody is inside
}

// NewGate returns an open gate.
func NewGate() *Gate { return &Gate{empty: make(chan struct{})} }

// Open reports, as nil, that requests are let in.
func (g *Gate) Open() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return forerun.Errorf(forerun.Unavailable, "", "The server is shutting down. Try again when it has been started again.")
	}
	return nil
}

// Guard answers what comes to handler after Shut with 503, on a connection that ends with that.
func (g *Gate) Guard(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			endConn(w, r)
			w.Header().Set("Retry-After", "1")
			Fail(w, r, g.Open())
			return
		}
		defer g.leave()
		handler.ServeHTTP(w, r)
	})
}

func (g *Gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.left()
}

func (g *Gate) left() {
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// Shut lets nobody in any more, and returns when nobody is inside or ctx is done. It is called once.
func (g *Gate) Shut(ctx context.Context) {
	g.mu.Lock()
	g.shut = true
	g.left()
	g.mu.Unlock()
	select {
	case <-g.empty:
	case <-ctx.Done():
	}
}
