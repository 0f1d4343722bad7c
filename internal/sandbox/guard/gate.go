package guard

import (
	"sync"
	"time"
)

// gate holds the connections to the outside that a speculative activation asks for, until it is promoted. One that is
// squashed is killed, and its connections are never made.
type gate struct {
	mu   sync.Mutex    // guards open
	open chan struct{} // closed when the gate is opened; nil while it is open
}

// Hold shuts the gate, or opens it.
func (s *Supervisor) Hold(held bool) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case held && g.open == nil:
		g.open = make(chan struct{})
	case !held && g.open != nil:
		close(g.open)
		g.open = nil
	}
}

func (g *gate) opens() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open
}

// pass returns when the gate is open, and reports whether the caller of a held call still lives.
func (s *Supervisor) pass(id uint64) bool {
	opened := s.gate.opens()
	if opened == nil {
		return true
	}
	look := time.NewTicker(liveness)
	defer look.Stop()
	for {
		select {
		case <-opened:
			return s.listener.valid(id)
		case <-look.C:
			if !s.listener.valid(id) {
				return false
			}
		}
	}
}
