package native

import (
	"context"
	"sync"
	"time"
)

// gate holds what a speculative activation sends through the server.
type gate struct {
	mu      sync.Mutex    // guards the rest
	open    chan struct{} // closed when the gate is opened; nil while it is open
	waiting int           // how many wait
	since   time.Time     // since when any do
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
}

// lift opens it, and returns for how long any have waited.
func (g *gate) lift() (waited time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return 0
	}
	close(g.open)
	g.open = nil
	if g.waiting > 0 {
		waited = time.Since(g.since)
	}
	return waited
}

// pass returns when the gate is open, and reports whether it was before ctx was done.
func (g *gate) pass(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.open
	g.mu.Unlock()
	if opened == nil {
		return ctx.Err() == nil
	}
	g.wait(1)
	defer g.wait(-1)
	select {
	case <-opened:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// wait counts who waits.
func (g *gate) wait(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == 0 {
		g.since = time.Now()
	}
	g.waiting += more
}
