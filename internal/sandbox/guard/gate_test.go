package guard

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSwitch: whoever shuts a gate while connections are opened sees those that are through it, and whoever lifts it those that wait.
func TestSwitch(t *testing.T) {
	const connections, enough = 4, 100_000
	shared := new(Switch)
	s := &Supervisor{gate: gate{shared: shared}}
	g := &s.gate
	var through, blocked atomic.Int64
	var over atomic.Bool
	var opening sync.WaitGroup
	for range connections {
		opening.Go(func() {
			for !over.Load() {
				if opened := g.enter(netip.AddrPort{}); opened != nil {
					for opened = g.lineUp(netip.AddrPort{}); opened != nil; opened = g.enter(netip.AddrPort{}) {
						blocked.Add(1)
						<-opened
						blocked.Add(-1)
					}
					g.wait(-1)
				}
				through.Add(1)
				through.Add(-1)
				g.leave()
			}
		})
	}
	shuts, waits := 0, 0
	for turn := 0; shuts < enough || waits < enough; turn++ {
		shared.Shut()
		if !shared.Connected() {
			shuts++
			never(t, &through, "are through a gate that is shut")
		}
		if turn%2 == 0 {
			runtime.Gosched()
		}
		if shared.Lift() {
			waits++
			s.Release()
		} else {
			never(t, &blocked, "wait at a gate that is lifted")
		}
	}
	over.Store(true)
	opening.Wait() // nobody waits for ever
	if shared.Connected() || shared.waiting.Load() != 0 {
		t.Errorf("at the end %d are counted as through it, %d as waiting", shared.open.Load(), shared.waiting.Load())
	}
}

// never looks for a while whether there are connections that nobody was told of.
func never(t *testing.T, connections *atomic.Int64, what string) {
	t.Helper()
	for range 200 {
		if n := connections.Load(); n != 0 {
			t.Fatalf("%d connections %s, and nobody is told so", n, what)
		}
	}
}
