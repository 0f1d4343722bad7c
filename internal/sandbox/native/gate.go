package native

import (
	"context"
	"sync"
	"time"
)

// gate holds what a speculative activation sends through the server.
type gate struct {
	mu    sync.Mutex    // guards the rest
	open  chan struct{} // closed when the gate is opened; nil while it is open
	since time.Time     // when the first came that waits since it was shut; zero: none did
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open, g.since = make(chan struct{}), time.Time{}
	}
}

// lift opens it, and returns for how long the first that waits has.
func (g *gate) lift() (waited time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return 0
	}
	close(g.open)
	g.open = nil
	if !g.since.IsZero() {
		waited = time.Since(g.since)
	}
	return waited
}

// pass returns when the gate is open, and reports whether it was before ctx was done.
func (g *gate) pass(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.open
	if opened != nil && g.since.IsZero() {
		g.since = time.Now()
	}
	g.mu.Unlock()
	if opened == nil {
		return ctx.Err() == nil
	}
	select {
	case <-opened:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
