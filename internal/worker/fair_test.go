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
			order := []string{<-calls.arrived}
			for range 2 {
				all = append(all, g.beginFor("other", caller("o"), `{"path":"/other"}`))
			}
			for range 11 {
				calls.answer <- "ok"
				order = append(order, <-calls.arrived)
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
	s := newShop(t, 1)
	s.limit = 0 // nobody gets anything
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

// TestTurnsOfWhatRunsAhead: what is ahead waits behind what is not, whoever waits longer and whose tenant was served less.
func TestTurnsOfWhatRunsAhead(t *testing.T) {
	s := newShop(t, 1)
	s.limit = 0 // nobody gets anything
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
	flood := s.idleBoxes("flood", "a", 5, 10, 0)
	for _, b := range flood.boxes {
		b.state = boxBusy
	}
	if s.weigh(); flood.tenant.weight != 100 {
		t.Errorf("a tenant alone has the weight %d", flood.tenant.weight)
	}
	other := s.idleBoxes("other", "a", 2, 10, 0)
	for n, want := range []int{100, 100, 50, 25, 25, 12} {
		for i, b := range flood.boxes {
			b.state = boxIdle
			if i < n {
				b.state = boxBusy
			}
		}
		if busy := s.share(); busy != n || flood.tenant.weight != want || other.tenant.weight != 100 {
			t.Errorf("%d busy ones have the weight %d, others %d; want %d", n, flood.tenant.weight, other.tenant.weight, want)
		}
	}
	if got := weightOf(100_000); got != leastWeight {
		t.Errorf("the smallest weight is %d", got)
	}
	s.boxes, other.boxes = s.boxes-len(other.boxes), nil
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
		if got := <-started[1].weighed; got != want {
			t.Errorf("the second weighs %d, want %d", got, want)
		}
	}
}

func TestWaitingEnds(t *testing.T) {
	g, calls := newCallingRig(t, single)
	_, running := g.begin(caller("a"), `{"path":"/"}`)
	<-calls.arrived
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
