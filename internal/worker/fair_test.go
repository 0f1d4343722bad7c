package worker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// beginFor asks for a run of a tenant's.
func (g *rig) beginFor(namespace string, a *forerun.Action, input string) *heard {
	h := newHeard()
	g.Run(&forerun.Run{Activation: forerun.NewActivationID(time.Now()), Action: a, Input: []byte(input), Namespace: namespace, Events: h})
	return h
}

// TestOneThatFloodsWaitsForItself has one tenant ask for much at once, with one action or with many, and then another
// tenant for little: however much was there before, the other is served next but one.
func TestOneThatFloodsWaitsForItself(t *testing.T) {
	for name, actions := range map[string]int{"one action": 1, "many actions": 10} {
		t.Run(name, func(t *testing.T) {
			g, calls := newCallingRig(t, single)
			var all []*heard
			for n := range 10 {
				all = append(all, g.beginFor("flood", caller(fmt.Sprintf("f%d", n%actions)), `{"path":"/flood"}`))
			}
			order := []string{calls.next()}
			for range 2 {
				all = append(all, g.beginFor("other", caller("o"), `{"path":"/other"}`))
			}
			for range 11 {
				calls.answer <- "ok"
				order = append(order, calls.next())
			}
			calls.answer <- "ok"
			for _, h := range all {
				if end := g.wait(h); end.Status != forerun.Success {
					t.Errorf("%s", end.Result)
				}
			}
			if at := slices.Index(order, "/other"); at != 1 {
				t.Errorf("the order is %s", strings.Join(order, " "))
			}
			g.awaitStats("nobody waits", func(s Stats) bool { return s.Idle == 1 })
			if len(g.hungry) != 0 || g.Queued("flood") != 0 {
				t.Errorf("%d pools are hungry, %d wait", len(g.hungry), g.Queued("flood"))
			}
		})
	}
}

func TestTurnsOfTenants(t *testing.T) {
	s := newShop(t, 1000)
	wait := func(namespace, name string, served time.Duration) {
		p := s.poolOf(&forerun.Run{Action: action(name), Namespace: namespace}, &language{})
		s.push(p, &run{Run: new(forerun.Run), queued: time.Now(), pool: p})
		p.tenant.served += served
		s.starve(p)
	}
	wait("a", "1", 0)
	wait("a", "2", 3*time.Second)
	wait("b", "1", time.Second) // begins as if it had what a has
	wait("c", "1", -time.Second)
	wait("c", "2", 0)
	var order []string
	for p := s.hungriest(); p != nil; p = s.hungriest() {
		order = append(order, p.tenant.name+p.action.Exec.Code)
		p.tenant.served += time.Second
		s.pop(p)
		s.prune(p)
	}
	if got := strings.Join(order, " "); got != "c1 a1 c2 a2 b1" {
		t.Errorf("the turns are %s", got)
	}
	if len(s.tenants) != 0 {
		t.Errorf("%d tenants are left", len(s.tenants))
	}
}

// TestTurnsOfWhatRunsAhead: speculative runs wait behind runs in order, whichever waits longer and whichever tenant was served less.
func TestTurnsOfWhatRunsAhead(t *testing.T) {
	s := newShop(t, 1000)
	wait := func(namespace, name string, promoted context.Context) *pool {
		p := s.poolOf(&forerun.Run{Action: action(name), Namespace: namespace}, &language{})
		s.push(p, &run{Run: new(forerun.Run), queued: time.Now(), promoted: promoted, pool: p})
		s.starve(p)
		return p
	}
	wait("a", "ahead", t.Context())
	head := wait("a", "head", nil)
	head.tenant.served += time.Second
	wait("b", "ahead", t.Context()).tenant.served = 0
	if p := s.hungriest(); p != head {
		t.Errorf("the turn is of %s %q", p.tenant.name, p.action.Exec.Code)
	}
}

func TestProcessorsAreSharedByTenants(t *testing.T) {
	s := newShop(t, 100_000)
	flood := s.idleSandboxes("flood", "a", 5, 10, 0)
	for _, b := range flood.sandboxes {
		b.state = sandboxBusy
	}
	if s.weigh(); flood.tenant.weight != 100 {
		t.Errorf("a tenant alone has the weight %d", flood.tenant.weight)
	}
	other := s.idleSandboxes("other", "a", 2, 10, 0)
	for n, want := range []int{100, 100, 50, 25, 25, 12} {
		for i, b := range flood.sandboxes {
			b.state = sandboxIdle
			if i < n {
				b.state = sandboxBusy
			}
		}
		if busy := s.share(); busy != n || flood.tenant.weight != want || other.tenant.weight != 100 {
			t.Errorf("%d busy ones have the weight %d, others %d; want %d", n, flood.tenant.weight, other.tenant.weight, want)
		}
	}
	if got := weightOf(100_000); got != leastWeight {
		t.Errorf("the smallest weight is %d", got)
	}
	s.sandboxes, other.sandboxes = s.sandboxes-len(other.sandboxes), nil
	s.prune(other)
	if s.weigh(); flood.tenant.weight != 100 {
		t.Errorf("a tenant that is alone again has the weight %d", flood.tenant.weight)
	}
}

// TestStartsAside: a sandbox beside others of its pool loads its code with what those leave of the processors, and has its share then.
func TestStartsAside(t *testing.T) {
	g := newRig(t, nil)
	a := action("import time\ndef main(args):\n  time.sleep(args['s'])\n  return {}\n")
	g.begin(a, `{"s":60}`)
	_, other := g.begin(a, `{"s":0}`)
	g.wait(other)
	started := g.maker.started()
	if n := len(started[0].weighed); n > 0 {
		t.Errorf("the first sandbox was weighed %d times", n)
	}
	for _, want := range []int{asideWeight, sandbox.DefaultCPUWeight} {
		if got := await(t, started[1].weighed, "it is not weighed"); got != want {
			t.Errorf("the second weighs %d, want %d", got, want)
		}
	}
}

func TestWaitingEnds(t *testing.T) {
	g, calls := newCallingRig(t, single)
	_, running := g.begin(caller("a"), `{"path":"/"}`)
	calls.next()
	g.mu.Lock()
	g.config.QueueTimeout = 20 * time.Millisecond // from now on: the first had to wait for its sandbox's start
	g.mu.Unlock()
	_, waiting := g.begin(caller("a"), `{}`)
	_, other := g.begin(caller("b"), `{}`)
	for _, h := range []*heard{waiting, other} {
		if end := g.wait(h); end.Status != forerun.InternalError || !strings.Contains(string(end.Result), "waited 20ms for a sandbox") {
			t.Errorf("%v %s", end.Status, end.Result)
		}
	}
	calls.answer <- "ok"
	if end := g.wait(running); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
	if s := g.Stats(); s.Expired != 2 || s.Queued != 0 || len(g.runs) > 1 || len(g.hungry) != 0 {
		t.Errorf("%+v", s)
	}
}

// TestWhoseWaitingStopsWhom: nothing of a tenant runs ahead while what is due of its own waits; of others only while it waits for room.
func TestWhoseWaitingStopsWhom(t *testing.T) {
	for name, c := range map[string]struct {
		mib       int           // of the machine; an activation may use 256
		sandboxes int           // that are busy, of the one that floods
		others    bool          // have a sandbox, too
		waited    time.Duration // its first in the queue
		ahead     bool          // that is speculative
		want      [2]bool       // stopped: it, another
	}{
		"all its sandboxes work": {mib: 10_000, sandboxes: 2, waited: time.Second, want: [2]bool{true, false}},
		"one is to start":        {mib: 10_000, waited: time.Second, want: [2]bool{true, false}},
		"there is no room":       {mib: 600, sandboxes: 2, waited: time.Second, want: [2]bool{true, true}},
		"there is none for it":   {mib: 100, waited: time.Second, want: [2]bool{true, false}},
		"it has more than half":  {mib: 600, sandboxes: 2, others: true, waited: time.Second, want: [2]bool{true, false}},
		"it has no more":         {mib: 600, sandboxes: 1, others: true, waited: time.Second, want: [2]bool{true, true}},
		"for a moment":           {mib: 600, sandboxes: 2, waited: tickEvery / 2},
		"what waits runs ahead":  {mib: 600, sandboxes: 2, waited: time.Second, ahead: true},
	} {
		s := newShop(t, c.mib)
		s.load.read = idle
		if c.others {
			s.charge(s.idleSandboxes("other", "b", 1, 1, 0).sandboxes[0], 300<<20)
		}
		now := time.Now()
		r := &run{Run: new(forerun.Run), asked: now.Add(-c.waited)}
		if c.ahead {
			r.promoted = t.Context()
		}
		p := s.idleSandboxes("flood", "a", c.sandboxes, 256, time.Minute)
		r.pool = p
		s.push(p, r)
		for _, b := range p.sandboxes {
			s.unidle(b)
			b.state = sandboxBusy
		}
		s.late.Store(s.lookLate(now))
		if got := [2]bool{s.Load("flood").Waiting, s.Load("other").Waiting}; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if s.mayStartAhead() == c.want[0] {
			t.Errorf("%s: a sandbox may start for what runs ahead: %v", name, c.want[0])
		}
	}
}

// TestWhoseSandboxesMakeWay: a tenant above its share gives up its own sandboxes, and other tenants' only for an action without a sandbox.
func TestWhoseSandboxesMakeWay(t *testing.T) {
	for name, c := range map[string]struct {
		action string // that waits
		owner  string // of what runs ahead
		mib    int    // that the one holds who waits
		wanted bool
	}{
		"another's":                      {action: "a", owner: "other", mib: 300, wanted: true},
		"its own, which are too many":    {action: "a", owner: "flood", mib: 500, wanted: true},
		"another's, it has too many":     {action: "a", owner: "other", mib: 500},
		"another's, it has none of this": {action: "b", owner: "other", mib: 500, wanted: true},
	} {
		s := newShop(t, 600)
		s.load.read = idle
		ahead := &run{Run: &forerun.Run{Events: newHeard()}, promoted: t.Context()}
		for owner, p := range map[*run]*pool{nil: s.idleSandboxes("flood", "a", 1, 1, 0), ahead: s.idleSandboxes(c.owner, "c", 1, 1, 0)} {
			b := p.sandboxes[0]
			s.unidle(b)
			b.state, b.current = sandboxBusy, owner
			s.charge(b, 256<<20)
		}
		s.charge(s.idleSandboxes("flood", "a", 0, 1, 0).sandboxes[0], int64(c.mib)<<20)
		p := s.idleSandboxes("flood", c.action, 0, 1, 0)
		p.service = time.Second
		s.push(p, &run{Run: new(forerun.Run), asked: time.Now().Add(-time.Second), pool: p})
		s.makeWay(p, time.Now())
		if ahead.wanted != c.wanted {
			t.Errorf("%s: makes way: %v", name, ahead.wanted)
		}
		s.alive.Wait()
	}
}

// TestTurnsWhileOthersWait: while what is due waits, anybody's, no sandbox starts for what runs ahead; one that is there serves it.
func TestTurnsWhileOthersWait(t *testing.T) {
	s := newShop(t, 10_000)
	warm, cold := s.idleSandboxes("a", "warm", 1, 10, time.Minute), s.idleSandboxes("a", "cold", 0, 10, 0)
	queued := time.Now()
	for _, p := range []*pool{cold, warm} {
		s.push(p, &run{Run: new(forerun.Run), queued: queued, promoted: t.Context(), pool: p})
		s.starve(p)
		queued = queued.Add(time.Second)
	}
	more := s.idleSandboxes("b", "more", 1, 10, time.Minute)
	s.push(more, &run{Run: new(forerun.Run), promoted: t.Context(), pool: more})
	for _, c := range []struct {
		waits  map[string]bool
		turn   *pool
		behind bool // who wants one more for what runs ahead, if nobody else is hungry
	}{{nil, cold, false}, {map[string]bool{"b": true}, warm, true}} {
		s.late.Store(&late{tenants: c.waits})
		if got := s.hungriest(); got != c.turn {
			t.Errorf("while %v wait it is the turn of %q", c.waits, got.action.Exec.Code)
		}
		hungry := s.hungry
		s.hungry = nil
		if got := s.goesBehind(more); got != c.behind {
			t.Errorf("while %v wait it goes behind: %v", c.waits, got)
		}
		s.hungry = hungry
	}
}
