package controller

import (
	"crypto/sha256"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// flights are the executions of annotated functions of one tenant that equal ones wait for, in place of doing the same at the same time
// (speculate.Await). No waiting outlasts the limit of the action's time.
type flights struct {
	waiting *atomic.Int64 // of all tenants
	last    *atomic.Uint64

	mu    sync.Mutex // guards the rest; taken after an execution's own lock, and no other is taken with it
	of    map[occasion]*flight
	apart map[forerun.Digest]time.Time // until when executions of some code are not waited for
}

// occasion is what equal executions have in common.
type occasion struct {
	code  forerun.Digest
	input [sha256.Size]byte
}

// flight is the first of equal executions, until it is committed, or known to leave no row for the others.
type flight struct {
	occasion
	number  uint64
	first   *slot
	called  bool // a function waits for it
	waiters map[*slot]*waiter
}

// waiter is an execution that waits for a flight.
type waiter struct {
	e     *execution
	limit *time.Timer
}

// apartFor is for how long executions of some code are not waited for, after one that others had no use of.
const apartFor = time.Minute

func newFlights(waiting *atomic.Int64, last *atomic.Uint64) *flights {
	return &flights{waiting: waiting, last: last, of: make(map[occasion]*flight), apart: make(map[forerun.Digest]time.Time)}
}

// Waiting is how many executions wait for an equal one.
func (c *Controller) Waiting() int64 { return c.tables.waiting.Load() }

// awaitEqual has a slot be the first of its kind, or wait for the one that is.
func (e *execution) awaitEqual(a speculate.Await) {
	if number, waits := e.flights.join(e, e.slots[a.Slot], a); !waits {
		e.events = append(e.events, speculate.Awaited{Slot: a.Slot, Number: number})
	}
}

// join makes a slot a waiter, or the first; with number 0 it is neither.
func (f *flights) join(e *execution, s *slot, a speculate.Await) (number uint64, waits bool) {
	at := occasion{a.Code, sha256.Sum256(a.Input)}
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.of[at]
	switch {
	case first == nil && a.First:
		return f.lead(at, s), false
	case first == nil:
		return 0, false
	case a.Before != 0 && first.number >= a.Before: // one of the two could be waiting for the other
		return 0, false
	}
	s.flight = first
	w := &waiter{e: e}
	w.limit = time.AfterFunc(time.Duration(s.action.Limits.Timeout)*time.Millisecond, func() {
		if f.leave(s) {
			w.goOn(s, false)
		}
	})
	first.waiters[s] = w
	f.waiting.Add(1)
	if caller := s.tree.waiting(); caller != "" && !first.called {
		first.called = true
		e.c.Worker.Await(first.first.record.ID, caller)
	}
	return 0, true
}

// lead makes a slot the first that others wait for, if its code is worth it.
func (f *flights) lead(at occasion, s *slot) (number uint64) {
	if until, apart := f.apart[at.code]; apart {
		if time.Now().Before(until) {
			return 0
		}
		delete(f.apart, at.code)
	}
	first := &flight{occasion: at, number: f.last.Add(1), first: s, called: s.tree.waiting() != "", waiters: make(map[*slot]*waiter)}
	f.of[at], s.flight = first, first
	return first.number
}

// leave ends the waiting of a slot, or tells that it had ended.
func (f *flights) leave(s *slot) (did bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := s.flight.waiters[s]
	if w == nil {
		return false
	}
	delete(s.flight.waiters, s)
	f.waiting.Add(-1)
	w.limit.Stop()
	return true
}

// end lets those go on who wait for a flight: they look at the row that it has left, or are executed.
func (f *flights) end(first *flight, look bool) {
	for s, w := range f.remove(first, look) {
		w.limit.Stop()
		w.goOn(s, look)
	}
}

// remove ends a flight and returns who has waited for it.
func (f *flights) remove(first *flight, good bool) (waiters map[*slot]*waiter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, first.occasion)
	if !good {
		if len(f.apart) >= maxKnown {
			clear(f.apart)
		}
		f.apart[first.code] = time.Now().Add(apartFor)
	}
	waiters, first.waiters = first.waiters, nil
	f.waiting.Add(-int64(len(waiters)))
	return waiters
}

// goOn tells a slot's machine that the slot waits no more.
func (w *waiter) goOn(s *slot, look bool) {
	w.e.later(func() func() {
		return func() { w.e.step(speculate.Awaited{Slot: s.id, Waited: true, Look: look}) }
	})
}

// landed says what has become of a slot that others may wait for: it has left a row that may stand for them, or will not.
func (e *execution) landed(s *slot, row bool) {
	if f := s.flight; f != nil && f.first == s {
		s.flight = nil
		e.flights.end(f, row)
	}
}

// ground ends what a slot that is over had to do with a flight.
func (e *execution) ground(s *slot) {
	switch {
	case s.flight == nil:
	case s.flight.first == s:
		e.landed(s, false)
	default:
		e.flights.leave(s)
	}
}
