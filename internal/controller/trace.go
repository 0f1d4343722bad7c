package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// Records keep the lines of an invocation's waterfall.

// name is what the reasons of others call a slot: its action, without the invocation's own namespace.
func (e *execution) name(s *slot) string {
	name := strings.TrimPrefix(s.action.Name.String(), "/"+e.namespace+"/")
	if n := s.record.Timeline.Inline; n > 0 {
		name += fmt.Sprintf(" (inline %d)", n)
	}
	return name
}

// began counts a function that begins ahead of its turn. One that was asked for ahead and waits until its turn for a sandbox does not.
func (e *execution) began(s *slot) {
	if !s.ahead || s.early {
		return
	}
	s.early = true
	e.tally.Early++
	e.tally.Depth = max(e.tally.Depth, e.runningAhead())
}

// runningAhead is how many functions have begun ahead of their turn, which has not come.
func (e *execution) runningAhead() (n int) {
	for _, s := range e.active {
		if s.ahead && s.early {
			n++
		}
	}
	return n
}

// held notes for how long an operation waited that was asked for ahead and waits no longer.
func (e *execution) held(o *operation) {
	if s := e.slots[o.slot]; s != nil && !o.since.IsZero() {
		s.heldFor(span{o.since, time.Now()})
	}
}

// heldCall notes for how long a call that was made ahead waited for its caller's turn, if nothing of it could begin before.
func (e *execution) heldCall(t *tree) {
	found := false
	for _, s := range e.slots {
		if s.tree == t && (e.active[s.record.ID] != nil || s.record.Timeline.Skipped) {
			return
		}
		found = found || s.tree == t
	}
	if found && !t.called.IsZero() {
		t.held()
		t.caller.record.Timeline.Stalled = forerun.Because(forerun.ReasonCalleeHeld)
	}
}

// goesOn notes for how long a call waited for another one.
func (t *tree) goesOn() {
	if t.stalled {
		t.stalled = false
		t.held()
	}
}

// held notes that what was called could not begin before now.
func (t *tree) held() {
	now := time.Now()
	t.caller.heldFor(span{t.called, now})
	t.called, t.asked = now, now
}

// span is a time that begins and ends.
type span struct{ from, to time.Time }

// spans are added up. What overlaps counts once.
type spans struct {
	sum   time.Duration
	last  span   // that was added, with what it overlaps
	apart []span // all, in their order
}

func (s *spans) add(d span) {
	if !d.to.After(d.from) {
		return
	}
	first, _ := slices.BinarySearchFunc(s.apart, d.from, func(x span, at time.Time) int { return x.to.Compare(at) })
	next := first
	for ; next < len(s.apart) && !s.apart[next].from.After(d.to); next++ {
		s.sum -= s.apart[next].length()
		d = d.and(s.apart[next])
	}
	s.apart = slices.Replace(s.apart, first, next, d)
	s.sum += d.length()
	s.last = d
}

func (d span) length() time.Duration { return d.to.Sub(d.from) }

// and is the span from where the first of two begins to where the last ends.
func (d span) and(o span) span {
	if o.from.Before(d.from) {
		d.from = o.from
	}
	if o.to.After(d.to) {
		d.to = o.to
	}
	return d
}

// within is the part of a span that is in another; ok is false if there is none.
func (d span) within(o span) (part span, ok bool) {
	if d.from.Before(o.from) {
		d.from = o.from
	}
	if d.to.After(o.to) {
		d.to = o.to
	}
	return d, d.to.After(d.from)
}

// heldFor notes that something which a function asked for waited for a while. What waits at the same time counts once.
func (s *slot) heldFor(d span) {
	s.held.add(d)
	s.idle.add(d)
	s.record.Timeline.Held = s.held.sum
	s.waitedFor(d)
}

// waitedFor notes that a function waited for something. Calls that are under way at the same time count once, and not where it was held, too.
func (s *slot) waitedFor(d span) {
	s.waits.add(d)
	s.record.Timeline.Waited = s.waits.sum - s.held.sum
}

// stalled notes what an operation, or a call, waits for, and tells who asked that it does.
func (e *execution) stalled(a speculate.Stall) {
	if o := e.operations[a.Op]; o != nil && !o.waits {
		o.waits = true
		o.ready <- answer{stalled: true}
	}
	if t := e.calls[a.Op]; t != nil {
		t.stalled = true
	}
	if s := e.slots[a.Slot]; s != nil {
		s.record.Timeline.Stalled = a.Why
	}
}

func (s *slot) squashed(a speculate.Squash) {
	line := &s.record.Timeline
	line.Squashed, line.Kind, line.Cause = time.Now(), a.Kind, a.Cause
}

// noteCall puts a tree into the record of the function that waits for it, if that is not over.
func (t *tree) noteCall(e *execution) {
	if e.isAwaited(t) {
		t.caller.record.Calls = append(t.caller.record.Calls, t.invocation.ID())
		if !t.idle.to.IsZero() {
			t.caller.idle.add(t.idle)
		}
		t.waited()
	}
}

// isAwaited tells whether the function that called is not over.
func (e *execution) isAwaited(t *tree) bool {
	return t.caller != nil && e.slots[t.caller.id] == t.caller
}

// noteIdle notes when a function of a tree waited for nothing but its turn, and the caller for it: when that was the longest.
func (t *tree) noteIdle(s *slot) {
	if t.asked.IsZero() {
		return
	}
	d, ok := s.idle.last.within(span{t.asked, t.caller.record.Timeline.Promoted})
	if ok && d.to.Sub(d.from) > t.idle.to.Sub(t.idle.from) {
		t.idle = d
	}
}

// waited notes that the function which called need not wait any more.
func (t *tree) waited() {
	if !t.called.IsZero() {
		t.caller.waitedFor(span{t.called, time.Now()})
		t.called = time.Time{}
	}
}

// sum tells how far the invocation ran ahead: its client, and the record of its root. What its functions called, did not wait for, and goes on
// has the rest in records of its own.
func (e *execution) sum(t *tree) {
	tally := e.tally
	tally.InOrder = e.estimated()
	e.tally = forerun.Tally{Depth: e.runningAhead()}
	e.inOrder.unknown = true // what goes on has no end that it could be compared with
	if t.caller == nil && e.mayAhead {
		t.invocation.tally = &tally
	}
	if tally.Ahead() && len(t.records) > 0 {
		t.records[len(t.records)-1].Tally = &tally
	}
}
