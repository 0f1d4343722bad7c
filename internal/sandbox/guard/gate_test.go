package guard

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
)

// TestSwitch: whoever shuts a gate while connections are opened sees those that are through it, and whoever lifts it those that wait.
func TestSwitch(t *testing.T) {
	const connections, turns = 4, 20_000
	shared := new(Switch)
	s := &Supervisor{gate: gate{shared: shared}}
	g := &s.gate
	var through, done atomic.Int64
	var opening sync.WaitGroup
	for range connections {
		opening.Go(func() {
			defer done.Add(1)
			for range turns {
				if opened := g.enter(netip.AddrPort{}); opened != nil {
					g.wait(1)
					for opened = g.enter(netip.AddrPort{}); opened != nil; opened = g.enter(netip.AddrPort{}) {
						<-opened
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
	for done.Load() < connections {
		shared.Shut()
		if !shared.Connected() {
			shuts++
			for range 10 {
				if n := through.Load(); n != 0 {
					t.Fatalf("%d connections are through a gate that is shut, and nobody is seen to be", n)
				}
			}
		}
		if shared.Lift() {
			waits++
			s.Release()
		}
	}
	opening.Wait() // nobody waits for ever
	if shuts == 0 || waits == 0 || shared.Connected() || shared.waiting.Load() != 0 {
		t.Errorf("nobody was through it %d times, some waited %d times; at the end %d are counted as through it, %d wait", shuts, waits, shared.open.Load(), shared.waiting.Load())
	}
}
