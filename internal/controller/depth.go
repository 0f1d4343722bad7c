package controller

import (
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// depthNow is how far the invocation may run ahead now.
func (e *execution) depthNow() int {
	if !e.c.MayAhead() || e.committed >= maxCommitted-lastInTurn {
		return 0
	}
	left := e.c.ahead.left(&e.tables.ahead, speculate.BoundUnder(e.load()))
	return min(e.speculation.Depth, max(0, left+e.ahead))
}

// noteAhead counts the invocation's functions that run ahead among those of all, if the load matters to it.
func (e *execution) noteAhead() {
	if e.speculation.Mode == speculate.Off || e.speculation.AnyLoad {
		return
	}
	if now := e.machine.Ahead(); now != e.ahead {
		e.c.ahead.add(&e.tables.ahead, now-e.ahead)
		e.ahead = now
	}
}

// shares counts what invocations have of something that is bounded for all of them.
type shares struct {
	all     atomic.Int64
	tenants atomic.Int64 // that have some
}

// add counts more of a tenant, or less, but not none.
func (s *shares) add(tenant *atomic.Int64, more int) {
	s.all.Add(int64(more))
	switch now := tenant.Add(int64(more)); {
	case now == int64(more):
		s.tenants.Add(1)
	case now == 0:
		s.tenants.Add(-1)
	}
}

// left is how much of a bound is left to a tenant; less than nothing: it has too much. When all together are beyond it a tenant may still have
// its part, so that nobody who has little waits for what another has: that, a half, a third and so on of it if they come one after the other.
func (s *shares) left(tenant *atomic.Int64, bound int) int {
	part := bound / int(max(1, s.tenants.Load()))
	return max(bound-int(s.all.Load()), part-int(tenant.Load()))
}

// maxBuffered is how many bytes the columns of all invocations may take, but for small ones: how many functions run bounds those.
const maxBuffered = 512 << 20

// noteBuffered counts what the invocation buffers among what all do.
func (e *execution) noteBuffered() {
	if e.speculation.Mode == speculate.Off {
		return
	}
	if now := e.machine.Buffered(); now != e.buffered {
		e.c.buffered.add(&e.tables.buffered, now-e.buffered)
		e.buffered = now
	}
}

// load is the worker's, as far as it matters to the invocation; what is not known is none.
func (e *execution) load() (l forerun.Load) {
	if e.c.Load != nil && !e.speculation.AnyLoad {
		l = e.c.Load(e.namespace)
	}
	return l
}

// busyShare is the share of the processors in use from which some functions are not run ahead (C5). What computes would take from
// the heads of others, through caches and sandboxes, more than it spares; what waits takes little. What is squashed now and then
// runs twice, and a process is begun for it: on processors that have little to spare all requests wait for that.
const busyShare = 0.5

// alone says why a function waits for its turn; it is empty if it need not.
func (e *execution) alone(annotated bool, code forerun.Digest, d doubts) string {
	switch {
	case annotated:
		return "it is annotated non-speculative"
	case d.long:
		return "it was ahead for half of its time limit before"
	case !e.forbids(code, d):
		return ""
	case d.computes:
		return "it computes, and the processors are busy"
	}
	return "it is often squashed, and the processors are busy"
}

// forbids reports whether what is known of a function and the load keep it from running ahead.
func (e *execution) forbids(code forerun.Digest, d doubts) bool {
	if !d.computes && !d.risky || e.load().Busy <= busyShare {
		return false
	}
	if !d.computes {
		e.tables.forgive(code)
	}
	return true
}

// breathe tells the machine if more or fewer slots may be ahead than it knows, or the tenant's room for columns has ended, or begun.
func (e *execution) breathe() {
	if e.speculation.Mode == speculate.Off {
		return
	}
	depth, full := e.depthNow(), e.c.buffered.left(&e.tables.buffered, maxBuffered) < 0
	if depth != e.depth || full != e.full {
		e.depth, e.full = depth, full
		e.carryOut(e.machine.Step(speculate.LoadChanged{Depth: depth, Full: full}))
	}
}
