package worker

import "time"

// sandboxOverhead is what a sandbox costs besides what its processes use: the server's ends, the kernel's namespaces and mounts.
const sandboxOverhead = 1 << 20

// need is the room that a sandbox or an activation asks for.
type need struct {
	tenant    *tenant
	bytes     int64
	sandboxes int
	keep      *pooledSandbox // not to be closed for it
	first     bool           // it has no sandbox that works, so it takes from everybody
}

// charge accounts for the memory of a sandbox: its limit while an activation may use it, its measured use while it is
// idle.
func (w *Worker) charge(b *pooledSandbox, bytes int64) {
	change := bytes - b.charged
	b.charged = bytes
	w.charged += change
	if p := b.pool(); p != nil {
		p.tenant.held += change
	}
}

// makeRoom closes sandboxes that do nothing until there is room. If there would be none with all of them closed, it closes none.
func (w *Worker) makeRoom(n need) bool {
	if w.hasRoom(n, w.charged, w.sandboxes) {
		return true
	}
	if !w.canMakeRoom(n) {
		return false
	}
	for !w.hasRoom(n, w.charged, w.sandboxes) {
		b := w.victim(n)
		if b == nil { // it holds more than its share, and others' are not for it
			return false
		}
		w.evict(b)
	}
	return true
}

// hasRoom reports whether a need fits where that many bytes and sandboxes are in use. A need of nothing always fits.
func (w *Worker) hasRoom(n need, charged int64, sandboxes int) bool {
	return n.bytes <= 0 && n.sandboxes <= 0 || charged+n.bytes <= w.limit && sandboxes+n.sandboxes <= w.config.MaxSandboxes
}

// canMakeRoom reports whether there would be room if all were closed that anybody may close for such a need: its tenant's own first, of
// which it may then hold so few that others' are for it, too.
func (w *Worker) canMakeRoom(n need) bool {
	charged, sandboxes := w.charged, w.sandboxes
	freed := make(map[*tenant]int64)
	closed := func(b *pooledSandbox) {
		charged -= b.charged
		sandboxes--
		if p := b.pool(); p != nil {
			freed[p.tenant] += b.charged
		}
	}
	for _, s := range w.shelves {
		for _, b := range s.sandboxes {
			if b != n.keep {
				closed(b)
			}
		}
	}
	for _, b := range w.idle {
		if b.pool().tenant == n.tenant && b != n.keep && w.gives(b, n, false, 0) {
			closed(b)
		}
	}
	over := w.overShare(n.tenant, n.bytes-freed[n.tenant])
	for _, b := range w.idle { // those that are idle longest first: without them, their tenant may give no other
		if t := b.pool().tenant; t != n.tenant && w.gives(b, n, over, freed[t]) {
			closed(b)
		}
	}
	return w.hasRoom(n, charged, sandboxes)
}

// evict closes an idle sandbox.
func (w *Worker) evict(b *pooledSandbox) {
	if b.pool() != nil {
		w.unidle(b)
		w.clock = b.priority()
	} else {
		w.pinched = time.Now()
	}
	w.forget(b)
	w.counters.Evicted++
	close(b.leave)
}

// idleEnough is how long a sandbox must have been idle to make room for one more of an action that has some: else two
// busy actions would take each other's in turns.
const idleEnough = time.Second

// victim finds the sandbox that is missed least: one that has no code yet, or of the idle ones the one of the lowest
// priority. A tenant that holds more than its share takes its own, and others' only for an action that has none. Of others', those go
// first of who holds more than its share.
func (w *Worker) victim(n need) *pooledSandbox {
	for _, s := range w.shelves {
		for _, b := range s.sandboxes {
			if b != n.keep {
				return b
			}
		}
	}
	over := w.overShare(n.tenant, n.bytes)
	var own, others *pooledSandbox
	for _, b := range w.idle {
		best := &others
		if t := b.pool().tenant; t == n.tenant {
			best = &own
		}
		if b != n.keep && (*best == nil || w.goesBefore(b, *best)) && w.gives(b, n, over, 0) {
			*best = b
		}
	}
	switch {
	case own == nil || !over && others != nil && others.before(own):
		return others
	default:
		return own
	}
}

// gives reports whether a sandbox may be closed for a need, after that many bytes of its tenant are freed.
func (w *Worker) gives(b *pooledSandbox, n need, over bool, freed int64) bool {
	owner := b.pool().tenant
	switch {
	case n.first:
		return true
	case owner != n.tenant && over:
		return false
	case owner != n.tenant && w.overShare(owner, -freed):
		return true
	}
	return time.Since(b.since) >= idleEnough
}

// goesBefore reports whether b is to be closed rather than o, if both are the same tenant's, or both are others'.
func (w *Worker) goesBefore(b, o *pooledSandbox) bool {
	if x, y := w.overShare(b.pool().tenant, 0), w.overShare(o.pool().tenant, 0); x != y {
		return x
	}
	return b.before(o)
}

// before reports whether b is worth less than o.
func (b *pooledSandbox) before(o *pooledSandbox) bool {
	x, y := b.priority(), o.priority()
	return x < y || x == y && b.since.Before(o.since)
}

// priority is the value of an idle sandbox's memory: Greedy-Dual-Size-Frequency, as in FaasCache (Fuerst and Sharma,
// ASPLOS 2021): clock + frequency x cost of a start / size. The clock is the priority of the last evicted sandbox, as of
// this one's last use, so unused sandboxes age. The frequency of an action is divided among its sandboxes.
func (b *pooledSandbox) priority() float64 {
	p := b.pool()
	frequency := float64(p.runs) / float64(len(p.sandboxes))
	return b.clock + frequency*b.cost.Seconds()*(1<<20)/float64(max(b.charged, 1))
}

// settleAfter is how long a sandbox is idle before it is measured again.
const settleAfter = 100 * time.Millisecond

// measureEvery is how often a sandbox that is never idle is measured.
const measureEvery = time.Second

// measure reads the memory of the sandbox, which it is charged for while idle, and the processor time of an activation.
// measure reads how much memory the sandbox uses. If it cannot be read, the limit counts.
func (b *pooledSandbox) measure() {
	b.measuredAt = time.Now()
	memory, err := b.sandbox.Memory()
	if err != nil || memory <= 0 {
		return
	}
	spent, _ := b.sandbox.Spent()
	cpu, runs, known := spent-b.cpu, b.unmeasured, b.loaded
	b.cpu, b.unmeasured, b.loaded = spent, 0, known || runs > 0
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if known && runs > 0 { // else the start is included
		b.pool().cpu = cpu / time.Duration(runs)
	}
	b.measured = memory + sandboxOverhead
	if b.state == sandboxIdle {
		b.w.charge(b, b.measured)
		b.w.feedHungry()
	}
}
