package native

import (
	"context"
	"sync"
	"time"

	"forerun.dev/forerun/internal/sandbox/guard"
)

// gate holds the sends of a speculative activation through the server.
type gate struct {
	mu    sync.Mutex // guards the rest
	latch guard.Latch
	ever  bool // something has waited since forget
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latch.Shut()
}

// lift opens it, and returns for how long any have waited.
func (g *gate) lift() (waited time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latch.Lift()
}

// reached reports whether any have waited since forget.
func (g *gate) reached() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ever
}

func (g *gate) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ever = false
}

// waiting is how many wait at it.
func (g *gate) waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latch.Waiting()
}

// pass returns when the gate is open, and reports whether it was before ctx was done.
func (g *gate) pass(ctx context.Context) bool {
	g.mu.Lock()
	opened := g.latch.Opened()
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

// wait counts a waiting call.
func (g *gate) wait(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latch.Wait(more)
	g.ever = g.ever || more > 0 // the leaving call may have been killed, and another be there
}
