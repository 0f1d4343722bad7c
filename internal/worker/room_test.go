package worker

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// shop is a worker with sandboxes that were never started, to see which of them it would close.
type shop struct {
	*Worker
	t *testing.T
}

func newShop(t *testing.T, memoryMiB int) *shop { return &shop{New(Config{MemoryMiB: memoryMiB}), t} }

// idleSandboxes gives an action of a tenant sandboxes that became idle so long ago.
func (s *shop) idleSandboxes(namespace, name string, n int, mib int64, since time.Duration) *pool {
	a := action(name)
	p := s.poolOf(&forerun.Run{Action: a, Namespace: namespace}, &language{})
	for range n {
		b := s.newSandbox(p.language)
		p.adopt(b)
		s.startOver(p)
		b.measured, b.cost = mib<<20, time.Second
		s.rest(b, time.Now().Add(-since))
		p.sandboxes[len(p.sandboxes)-1] = b
	}
	return p
}

// closes says whose sandbox makes room for one more of a pool.
func (s *shop) closes(p *pool, first bool) *pool {
	if b := s.victim(need{tenant: p.tenant, bytes: p.memory(), sandboxes: 1, first: first}); b != nil {
		return b.pool()
	}
	return nil
}

func TestGreedyDual(t *testing.T) {
	s := newShop(t, 100_000)
	often := s.idleSandboxes("guest", "often", 1, 10, time.Hour)
	seldom := s.idleSandboxes("guest", "seldom", 1, 10, time.Minute)
	large := s.idleSandboxes("guest", "large", 1, 100, time.Second)
	dear := s.idleSandboxes("guest", "dear", 1, 100, 2*time.Second)
	often.runs, seldom.runs, large.runs, dear.runs = 100, 2, 10, 10
	dear.sandboxes[0].cost = time.Minute
	asks := &pool{tenant: s.tenantOf("guest"), action: action("asks")}
	for _, want := range []*pool{large, seldom, often, dear} { // 0.1, 0.2, 10 and 6 a MiB: what was used last goes first
		if want == often {
			want = dear
		} else if want == dear {
			want = often
		}
		got := s.closes(asks, true)
		if got != want {
			t.Fatalf("the sandbox of %q goes; want that of %q", got.action.Exec.Code, want.action.Exec.Code)
		}
		s.evict(got.sandboxes[0])
	}
	if s.clock != 10 || s.charged != 0 || s.sandboxes != 0 || len(s.pools) != 0 {
		t.Errorf("clock %v, %d bytes of %d sandboxes, %d pools", s.clock, s.charged, s.sandboxes, len(s.pools))
	}
}

func TestWhatNobodyUsesGrowsOld(t *testing.T) {
	s := newShop(t, 100_000)
	old := s.idleSandboxes("guest", "once used much", 1, 10, time.Hour)
	old.runs = 100 // 10
	asks := &pool{tenant: s.tenantOf("guest"), action: action("asks")}
	for n := 1; ; n++ {
		p := s.idleSandboxes("guest", "new", 1, 10, time.Minute)
		p.runs = 20 // 2 above the clock
		if p = s.closes(asks, true); p == old {
			break
		}
		s.evict(p.sandboxes[0])
		if n > 10 {
			t.Fatal("it stays for ever")
		}
	}
}

func TestManySandboxesOfAnActionAreWorthLessEach(t *testing.T) {
	s := newShop(t, 100_000)
	many := s.idleSandboxes("guest", "many", 10, 10, time.Minute)
	one := s.idleSandboxes("guest", "one", 1, 10, time.Hour)
	many.runs, one.runs = 50, 10
	if got := s.closes(&pool{tenant: s.tenantOf("guest"), action: action("asks")}, true); got != many {
		t.Error("an action's only sandbox goes before the tenth of another")
	}
}

func TestRoomIsSharedByTenants(t *testing.T) {
	s := newShop(t, 1000)
	flood := s.idleSandboxes("flood", "a", 6, 100, 2*time.Second)
	other := s.idleSandboxes("other", "a", 1, 100, time.Hour)
	flood.runs = 1000
	if got := s.closes(flood, false); got != flood {
		t.Error("who holds more than its share takes another's sandbox to grow")
	}
	if got := s.closes(other, false); got != other {
		t.Error("the sandbox that is worth least stays")
	}
	other.sandboxes[0].since = time.Now()
	if got := s.closes(other, false); got != flood {
		t.Error("who holds less than its share cannot grow")
	}
	for _, b := range flood.sandboxes {
		b.since = time.Now()
	}
	if got := s.closes(flood, false); got != nil {
		t.Error("two busy actions take each other's sandboxes")
	}
	if got := s.closes(&pool{tenant: flood.tenant, action: action("new")}, true); got != flood {
		t.Error("a new action of who holds much takes another's sandbox")
	}
}

// TestWhoHoldsMuchGivesFirst: of two others the one gives that holds more than its share, though its sandboxes are worth more.
func TestWhoHoldsMuchGivesFirst(t *testing.T) {
	s := newShop(t, 900)
	flood := s.idleSandboxes("flood", "a", 5, 100, 2*time.Second)
	small := s.idleSandboxes("small", "a", 1, 100, time.Hour)
	flood.runs = 1000
	asks := &pool{tenant: s.tenantOf("asks"), action: action("asks")}
	for _, want := range []*pool{flood, flood, small} {
		got := s.closes(asks, true)
		if got != want {
			t.Errorf("with %d sandboxes of one and %d of another that of %q goes", len(flood.sandboxes), len(small.sandboxes), got.tenant.name)
		}
		s.evict(got.sandboxes[0])
	}
}

func TestIdleSandboxesAreChargedWhatTheyUse(t *testing.T) {
	g := newRig(t, func(c *Config) { c.MemoryMiB = 700 }) // two that work, three that were not measured
	g.maker.memory.Store(10 << 20)
	var actions []*forerun.Action
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		actions = append(actions, numbered(name))
		g.call(actions[len(actions)-1], `{}`)
		g.awaitStats("it was measured", func(s Stats) bool { return s.Idle == len(actions) && s.MemoryMiB == 11*len(actions) })
	}
	calls := newCalls(t)
	g.ServeAPI(calls)
	var all []*heard
	for _, name := range []string{"x", "y", "z"} {
		_, h := g.begin(caller(name), `{"path":"/"}`)
		all = append(all, h)
	}
	calls.next()
	calls.next()
	if s := g.Stats(); s.Busy != 2 || s.Starting != 0 || s.Queued != 1 || s.MemoryMiB > 700 || s.MemoryMiB < 512 {
		t.Errorf("with two at work: %+v", s)
	}
	calls.answer <- "ok"
	calls.next()
	calls.answer <- "ok"
	calls.answer <- "ok"
	for _, h := range all {
		if end := g.wait(h); end.Status != forerun.Success {
			t.Errorf("%s", end.Result)
		}
	}
	if s := g.Stats(); s.ColdStarts != 9 {
		t.Errorf("%+v", s)
	}
}

func TestWarmSandboxWaitsForMemory(t *testing.T) {
	g := newRig(t, func(c *Config) { c.MemoryMiB = 300 })
	g.maker.memory.Store(10 << 20)
	calls := newCalls(t)
	g.ServeAPI(calls)
	g.call(caller("a"), `{}`)
	g.awaitStats("it was measured", func(s Stats) bool { return s.Idle == 1 && s.MemoryMiB == 11 })
	_, b := g.begin(caller("b"), `{"path":"/b"}`)
	calls.next()
	_, a := g.begin(caller("a"), `{"path":"/a"}`) // its sandbox is there, its memory is not
	if s := g.Stats(); s.Busy != 1 || s.Idle != 1 || s.Queued != 1 {
		t.Errorf("%+v", s)
	}
	calls.answer <- "ok"
	calls.next()
	calls.answer <- "ok"
	for _, h := range []*heard{a, b} {
		if end := g.wait(h); end.Status != forerun.Success {
			t.Errorf("%s", end.Result)
		}
	}
	if s := g.Stats(); s.ColdStarts != 2 || s.Evicted != 0 {
		t.Errorf("%+v", s)
	}
}

// TestNothingIsClosedInVain: where there would be no room all the same, no sandbox is closed; where there is, no more than it takes.
func TestNothingIsClosedInVain(t *testing.T) {
	s := newShop(t, 600)
	s.config.MaxSandboxes = 100
	p := s.idleSandboxes("guest", "a", 1, 10, time.Minute)
	other := s.idleSandboxes("guest", "b", 3, 100, time.Minute)
	works := s.newSandbox(p.language)
	for _, step := range []struct {
		mib  int64
		left int
	}{{400, 3}, {230, 1}} {
		s.charge(works, step.mib<<20)
		room := s.makeRoom(need{tenant: p.tenant, bytes: 256 << 20, keep: p.sandboxes[0], first: true})
		if room != (step.left < 3) || len(other.sandboxes) != step.left {
			t.Errorf("with %d MiB in use: room %v, %d of 3 are left", step.mib, room, len(other.sandboxes))
		}
	}
}

// TestNothingOfItsOwnIsClosedInVain: a tenant that would exceed its share with all of its own idle sandboxes closed gets no other tenant's, and keeps its own.
// A tenant that would not exceed its share gets those as well.
func TestNothingOfItsOwnIsClosedInVain(t *testing.T) {
	for name, c := range map[string]struct {
		own        int
		works, mib int64
		room       bool
		left       [2]int // of its own, of the other's
	}{
		"more than its share": {own: 3, mib: 512, left: [2]int{3, 5}},
		"its share":           {own: 1, works: 200, mib: 450, room: true, left: [2]int{0, 3}},
	} {
		s := newShop(t, 1000)
		own, other := s.idleSandboxes("own", "a", c.own, 100, time.Minute), s.idleSandboxes("other", "a", 5, 100, time.Minute)
		s.charge(s.newSandbox(own.language), c.works<<20)
		s.wait(own, 0)
		room := s.makeRoom(need{tenant: own.tenant, bytes: c.mib << 20, sandboxes: 1})
		if left := [2]int{len(own.sandboxes), len(other.sandboxes)}; room != c.room || left != c.left {
			t.Errorf("%s: room %v, left %v; want %v, %v", name, room, left, c.room, c.left)
		}
	}
}

// TestNothingOfOthersIsClosedInVain: a tenant gives up a sandbox that was busy just now only while it holds more than its share. Where there would be
// no room with that, nothing is closed.
func TestNothingOfOthersIsClosedInVain(t *testing.T) {
	for _, c := range []struct {
		mib  int64
		room bool
		left int
	}{{450, false, 9}, {400, true, 5}} {
		s := newShop(t, 1000)
		asks := s.idleSandboxes("asks", "a", 0, 0, 0)
		s.charge(s.newSandbox(asks.language), 100<<20)
		s.idleSandboxes("other", "a", 2, 100, time.Minute)
		s.idleSandboxes("other", "b", 7, 100, 0)
		if room := s.makeRoom(need{tenant: asks.tenant, bytes: c.mib << 20}); room != c.room || len(s.idle) != c.left {
			t.Errorf("%d MiB: room %v, %d of 9 are left; want %v, %d", c.mib, room, len(s.idle), c.room, c.left)
		}
	}
}
