package native

import (
	"context"
	"sync"
)

// gate holds what a speculative activation sends through the server.
type gate struct {
	mu   sync.Mutex    // guards open
	open chan struct{} // closed when the gate is opened; nil while it is open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		g.open = make(chan struct{})
	}
}

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

// pass returns when the gate is open, and reports whether it was before ctx was done.
func (g *gate) pass(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.open
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
