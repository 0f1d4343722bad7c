package controller

import (
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// depthNow is how many slots the invocation may have speculative now.
func (e *execution) depthNow() int {
	if !e.c.MayAhead() || e.committed >= maxCommitted-lastInTurn {
		return 0
	}
	left := e.c.ahead.left(&e.tables.ahead, speculate.BoundUnder(e.load()))
	return min(e.speculation.Depth, max(0, left+e.ahead))
}

// noteAhead counts the invocation's speculative functions in the total, if the load matters to the invocation.
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

// left is a tenant's remainder of a bound; a negative value means that the tenant is over it. Beyond the bound a tenant
// may still use its own part, so that a small tenant does not wait for a large one. If tenants arrive one after the
// other, the part is the whole, a half, a third and so on.
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

// load is the worker's load as far as it matters to the invocation. Unknown values count as no load.
func (e *execution) load() (l forerun.Load) {
	if e.c.Load != nil && !e.speculation.AnyLoad {
		l = e.c.Load(e.namespace)
	}
	return l
}

// busyShare is the share of busy processors from which some functions do not speculate (C5). A function that computes
// takes more from other invocations' heads, through caches and sandboxes, than it saves; a function that waits takes
// little. A function that is sometimes squashed runs twice and needs another process, and on busy processors all
// requests wait for that.
const busyShare = 0.5

// alone is why a function waits for its turn, if it has to.
func (e *execution) alone(annotated bool, code forerun.Digest, d doubts) *forerun.Reason {
	switch {
	case annotated:
		return forerun.Because(forerun.ReasonNonSpeculative)
	case d.long:
		return forerun.Because(forerun.ReasonLongBefore)
	case !e.forbids(code, d):
		return nil
	case d.computes:
		return forerun.Because(forerun.ReasonComputes)
	}
	return forerun.Because(forerun.ReasonOftenSquashed)
}

// forbids reports whether a function's history and the load keep it from being speculative.
func (e *execution) forbids(code forerun.Digest, d doubts) bool {
	if !d.computes && !d.risky || e.load().Busy <= busyShare {
		return false
	}
	if !d.computes {
		e.tables.forgive(code)
	}
	return true
}

// breathe tells the machine when the number of slots that may be speculative changes, or when the tenant's room for
// columns ends or returns.
func (e *execution) breathe() {
	if e.speculation.Mode == speculate.Off || e.rehearsal != nil {
		return
	}
	depth, full := e.depthNow(), e.c.buffered.left(&e.tables.buffered, maxBuffered) < 0
	if depth != e.depth || full != e.full {
		e.depth, e.full = depth, full
		e.carryOut(e.machine.Step(speculate.LoadChanged{Depth: depth, Full: full}))
	}
}
