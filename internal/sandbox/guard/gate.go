package guard

import (
	"net/netip"
	"slices"
	"sync"
	"time"
)

// gate holds the connections to the outside that a speculative activation asks for, until it is promoted. One that is
// squashed is killed, and its connections are never made.
type gate struct {
	shared    *Switch
	mu        sync.Mutex              // guards the rest
	latch     Latch                   // of those that found it shut
	permitted map[netip.AddrPort]bool // these pass although it is shut; port 0: all of the address
	opening   int                     // connections that passed and are not in the sandbox yet
	lent      []lent                  // the sockets that were put into the sandbox
	sending   int                     // so many of them were not permitted, and are open
	told      int                     // of so many the kernel says when they are gone
	look      int                     // how many of them there may be before those are forgotten that are gone
	looked    time.Time               // when they were, as there was no room
	owner     *Owner                  // of the sandbox; nil once that is gone, and all its sockets are
	counted   int                     // so many sockets count as its
	ended     bool                    // the sandbox is gone
}

// fewLent is how many sockets may have been closed before anybody looks.
const fewLent = 16

// lentAtMost bounds how many sockets of the host's network a sandbox has at a time. Each takes one of the host's ports, which all share.
const lentAtMost = 1024

// lookAgain is how long a sandbox that has them all waits until it is looked whether they are gone: that takes milliseconds.
const lookAgain = 100 * time.Millisecond

// permittedAtMost bounds how many addresses a gate lets pass.
const permittedAtMost = 1024

// Release lets those go on that wait at the gate, which was lifted, and still live. It returns for how long any have.
func (s *Supervisor) Release() (waited time.Duration) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latch.Lift()
}

// Waiting is how many connections wait at the gate.
func (s *Supervisor) Waiting() int {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.latch.Waiting()
}

// Permit lets connections to these addresses pass although the gate is shut, also those that wait; a port of 0 stands
// for all. The policy still decides about them.
func (s *Supervisor) Permit(to []netip.AddrPort) {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permitted == nil {
		g.permitted = map[netip.AddrPort]bool{}
	}
	for _, a := range to {
		if len(g.permitted) < permittedAtMost {
			g.permitted[netip.AddrPortFrom(a.Addr().Unmap(), a.Port())] = true
		}
	}
}

// enter returns nil if a connection may be opened now, and begins it; else what to wait for.
func (g *gate) enter(to netip.AddrPort) (wait <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opening++
	g.publish()
	if !g.shared.isShut() || g.permits(to) {
		return nil
	}
	g.opening--
	g.publish()
	g.latch.Shut()
	return g.latch.Opened()
}

// publish tells who may shut the gate what is through it, and the owner what it has. mu is held.
func (g *gate) publish() {
	if !g.ended { // else the switch may be another's
		g.shared.open.Store(uint32(g.opening + g.sending))
	}
	if now := g.opening + g.told; g.owner != nil && now != g.counted {
		g.owner.count(now - g.counted)
		g.counted = now
	}
}

// saw counts a request that names an address of the outside.
func (g *gate) saw(to netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.permits(to) {
		g.shared.reads.Add(1)
	} else {
		g.shared.others.Add(1)
	}
}

func (g *gate) permits(to netip.AddrPort) bool {
	ip := to.Addr().Unmap()
	return g.permitted[netip.AddrPortFrom(ip, to.Port())] || g.permitted[netip.AddrPortFrom(ip, 0)]
}

// lineUp counts a connection that waits, and is enter once more: who lifts the gate tells those that are counted by then.
func (g *gate) lineUp(to netip.AddrPort) (wait <-chan struct{}) {
	g.wait(1)
	return g.enter(to)
}

// wait counts connections that wait.
func (g *gate) wait(more int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.latch.Wait(more)
	g.shared.waiting.Store(uint32(g.latch.Waiting()))
}

// leave ends what enter began.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opening--
	g.publish()
}

// pass waits for what gate.enter has returned, and until it returns nothing: a connection may be opened, until gate.leave. It
// reports false if its caller has been killed.
func (s *Supervisor) pass(id uint64, to netip.AddrPort, opened <-chan struct{}) bool {
	killed := make(chan struct{}, 1)
	if opened != nil {
		defer s.waiting.begin(id, func() { signal(killed) })()
		if !s.listener.valid(id) { // another is in the sandbox, perhaps, that has reached nothing
			return false
		}
		s.reached()
		opened = s.gate.lineUp(to)
		defer s.gate.wait(-1)
	}
	look := time.NewTicker(liveness)
	defer look.Stop()
	for opened != nil {
		if !s.listener.valid(id) {
			return false
		}
		select {
		case <-opened:
		case <-killed:
		case <-look.C:
		}
		opened = s.gate.enter(to)
	}
	if !s.listener.valid(id) { // killed as the gate opened
		s.gate.leave()
		return false
	}
	return true
}

// lend notes a socket that is about to be put into the sandbox.
func (g *gate) lend(socket int, to netip.AddrPort) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lent) >= g.look {
		g.forgetGone()
		g.look = 2*len(g.lent) + fewLent
	}
	if l, ok := lentSocket(socket, to); ok {
		l.permitted = g.permits(to)
		g.lent = append(g.lent, l)
		g.count()
	}
}

func (g *gate) forgetGone() {
	left := g.lent[:0]
	for _, l := range g.lent {
		if !l.gone() {
			left = append(left, l)
		}
	}
	clear(g.lent[len(left):])
	g.lent = left
	g.count()
}

// lookForGone forgets those that are gone.
func (s *Supervisor) lookForGone() {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told > 0 {
		g.forgetGone()
	}
	s.leaveOwner()
}

// end is for a sandbox that is gone. What is left in sockets that its processes closed, or had when they ended, goes on counting as its owner's.
func (s *Supervisor) end() {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
	g.lent = slices.DeleteFunc(g.lent, func(l lent) bool { return l.untold })
	g.forgetGone()
	if s.leaveOwner(); g.owner != nil {
		time.AfterFunc(lookAtAll, func() { s.lookUntilGone(lookAtAll) })
	}
}

// lookUntilGone looks for those that are gone, less and less often, until all are.
func (s *Supervisor) lookUntilGone(pause time.Duration) {
	s.lookForGone()
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	if s.gate.owner != nil {
		pause = min(2*pause, time.Minute)
		time.AfterFunc(pause, func() { s.lookUntilGone(pause) })
	}
}

// leaveOwner is for when nothing is left that counts. The gate's mu is held.
func (s *Supervisor) leaveOwner() {
	if g := &s.gate; g.ended && g.told == 0 && g.owner != nil {
		g.owner.leave(s, g.counted)
		g.owner = nil
	}
}

// count counts the sockets when there are others. mu is held.
func (g *gate) count() {
	g.sending, g.told = 0, 0
	for _, l := range g.lent {
		if !l.permitted && !l.closing {
			g.sending++
		}
		if !l.untold {
			g.told++
		}
	}
	g.publish()
}

// room reports whether the sandbox may have the socket of a connection that is being opened.
func (g *gate) room() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opening+g.told > lentAtMost && time.Since(g.looked) >= lookAgain {
		g.forgetGone()
		g.looked = time.Now()
	}
	return g.opening+g.told <= lentAtMost
}

// ownerHasRoom reports the same of all sandboxes of its owner.
func (g *gate) ownerHasRoom() bool {
	g.mu.Lock()
	owner := g.owner
	g.mu.Unlock()
	return owner.room()
}

// copying is for another descriptor that is copied for a call: done ends that. ok is false if the sandbox's owner has as many as are not left
// for others.
func (g *gate) copying() (done func(), ok bool) {
	g.mu.Lock()
	owner := g.owner
	g.mu.Unlock()
	if owner == nil { // the sandbox is gone
		return func() {}, true
	}
	all, name := owner.host.copies, owner.name
	return func() { all.Count(name, -1) }, all.Take(name)
}

// Connected reports whether somebody in the sandbox has a connection to the outside on which it could send without asking, or is
// being given one. Those that were permitted do not count, nor those of which alone says that they are nobody's but the initializer's: it is
// asked only if there are any. When it cannot be told, somebody has.
func (s *Supervisor) Connected(alone func() func(inode uint32) bool) bool {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgetGone()
	if g.opening > 0 || g.sending == 0 {
		return g.opening > 0
	}
	is := alone()
	return slices.ContainsFunc(g.lent, func(l lent) bool { return !l.permitted && !l.closing && (l.untold || !is(l.inode)) })
}
