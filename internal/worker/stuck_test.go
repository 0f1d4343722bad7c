package worker

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// work has a pool's sandboxes be busy with activations that began so long ago.
func (s *shop) work(p *pool, ago time.Duration) {
	for _, b := range p.sandboxes {
		s.unidle(b)
		s.charge(b, b.memory())
		b.state, b.since = sandboxBusy, time.Now().Add(-ago)
	}
}

// wait has one more activation of a pool wait, since so long ago.
func (s *shop) wait(p *pool, ago time.Duration) {
	since := time.Now().Add(-ago)
	s.push(p, &run{Run: new(forerun.Run), queued: since, asked: since, pool: p})
}

// large is a pool with a sandbox that waits for the memory that its activation may use, 512 MiB.
func (s *shop) large() *pool {
	p := s.idleSandboxes("large", "large", 1, 10, time.Minute)
	p.action.Limits.Memory = 512
	s.wait(p, 10*time.Second)
	s.starve(p)
	return p
}

// frees has a sandbox's activation end, and reports whether another gets its sandbox.
func (s *shop) frees(b *pooledSandbox) bool {
	r, _ := s.next(b)
	return r != nil
}

// TestHopelessOnesHoldNobodyBack: while what runs for long has the room of one that needs more, others use what there is. Once there could
// be enough it comes first again.
func TestHopelessOnesHoldNobodyBack(t *testing.T) {
	for name, end := range map[string]func(*shop, *pooledSandbox){
		"one ends":         func(s *shop, b *pooledSandbox) { s.frees(b) },
		"its sandbox dies": func(s *shop, b *pooledSandbox) { s.forget(b) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t, 1100)
			long, small := s.idleSandboxes("long", "long", 3, 10, 0), s.idleSandboxes("small", "small", 1, 10, 0)
			s.work(long, time.Minute)
			s.work(small, 0)
			large := s.large()
			for range 3 {
				s.wait(small, time.Second)
			}
			s.lookStuck(time.Now())
			if !s.frees(small.sandboxes[0]) {
				t.Error("a sandbox is left to one that it is of no use to")
			}
			if s.goesBehind(small) {
				t.Error("no sandbox is started where there would be room")
			}
			if s.lookLate(time.Now()).room {
				t.Error("what runs ahead makes way in vain")
			}
			end(s, long.sandboxes[0])
			if !s.lookLate(time.Now()).room {
				t.Error("what runs ahead makes no way")
			}
			if s.frees(small.sandboxes[0]) || large.sandboxes[0].state != sandboxBusy {
				t.Error("a small one takes a large one's room")
			}
		})
	}
}

// TestWhatTakesLongLeavesRoom: else a large one would never have any, as one that takes long ends after the other.
func TestWhatTakesLongLeavesRoom(t *testing.T) {
	s := newShop(t, 1050)
	flood := s.idleSandboxes("flood", "a", 4, 10, 0)
	s.work(flood, time.Minute)
	large := s.large()
	for range 4 {
		s.wait(flood, time.Second)
	}
	s.lookStuck(time.Now())
	for n, b := range flood.sandboxes[:2] {
		if s.frees(b) {
			t.Errorf("the sandbox that is free as number %d is not left to a large one", n+1)
		}
	}
	if large.sandboxes[0].state != sandboxBusy {
		t.Error("the large one has no room")
	}
}

// TestTooLargeHoldsNobodyBack: nobody waits for one that needs more than there is in all.
func TestTooLargeHoldsNobodyBack(t *testing.T) {
	s := newShop(t, 300)
	s.large()
	small := s.idleSandboxes("small", "small", 1, 10, 0)
	s.wait(small, time.Second)
	s.starve(small)
	if s.hungriest() != small {
		t.Error("it is not the turn of one that fits")
	}
}

func TestIsStuck(t *testing.T) {
	now := time.Now()
	since := now.Add(-2 * stuckAfter)
	for name, c := range map[string]struct {
		b    *pooledSandbox
		want bool
	}{
		"busy":         {&pooledSandbox{state: sandboxBusy, since: since}, true},
		"starting":     {&pooledSandbox{state: sandboxStarting, since: since}, true},
		"for a moment": {&pooledSandbox{state: sandboxBusy, since: now.Add(-stuckAfter / 2)}, false},
		"idle":         {&pooledSandbox{state: sandboxIdle, since: since}, false},
		"runs ahead":   {&pooledSandbox{state: sandboxBusy, since: since, current: &run{promoted: t.Context()}}, false},
		"is parked":    {&pooledSandbox{state: sandboxBusy, since: since, current: &run{parkedAt: since}}, false},
	} {
		if got := c.b.isStuck(now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
