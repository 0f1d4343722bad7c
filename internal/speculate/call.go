package speculate

import (
	"bytes"

	"forerun.dev/forerun/internal/forerun"
)

// foresee launches the expected callees of a function in order, before the function calls them.
func (m *Machine) foresee(s *slot) {
	for s.foresees() && s.state == running && !s.dead && m.hasRoom() {
		next := s.script[0]
		s.script = s.script[1:]
		c := m.newCallee(s, next.Action, next.Input)
		c.why = s.because(forerun.ReasonExpectedCall)
		m.execute(c)
	}
}

// foresees reports whether the next expected callee of a function can be launched before the call.
func (s *slot) foresees() bool { return len(s.script) > 0 && !s.script[0].Told }

func (m *Machine) newCallee(s *slot, action string, input []byte) *slot {
	c := &slot{caller: s, stop: &forerun.Stop{Action: action, Input: input}, path: mixPath(s.path, s.returns+len(s.callees))}
	s.callees = append(s.callees, c)
	return c
}

// callOut begins a call: the callee that was expected is attached, or else there is a new one. A speculative function
// that calls while it waits for another callee waits until it is the head.
func (m *Machine) callOut(s *slot, r *request) (done bool) {
	if !s.head && s.waits() != nil {
		m.stall(s, r, forerun.Because(forerun.ReasonOtherCall))
		return false
	}
	if c := s.expected(); c != nil {
		if c.isFor(r.call) {
			c.attached, c.op = true, r.op
			m.do(Attach{Slot: c.id, Caller: s.id, Op: r.op})
			return true
		}
		m.disown(s, cause{forerun.WrongCall, s.because(forerun.ReasonCalledOther)})
	}
	known, told := s.knows(r.call)
	if known {
		s.script = s.script[1:]
	} else {
		s.script = nil
	}
	c := m.newCallee(s, r.call.Action, r.call.Input)
	c.attached, c.op, c.told, c.bypass = true, r.op, r.call.Known, r.call.Bypass
	c.why, c.crowded = s.because(forerun.ReasonCalled), known && !told
	switch {
	case c.told, told:
		c.inTurn = s.because(forerun.ReasonIDTold)
	case !known:
		c.inTurn = s.because(m.whyUnknown(s))
	}
	m.execute(c)
	return true
}

// knows reports whether a call is the one that the function's row predicts next, and whether the caller was told the
// callee's id before its end in that row. The callee does not run yet.
func (s *slot) knows(call *Call) (known, told bool) {
	if len(s.script) == 0 {
		return false, false
	}
	next := s.script[0]
	known = next.Action == call.Action && bytes.Equal(next.Input, call.Input)
	return known, known && next.Told
}

// whyUnknown is why a function's call was not predicted.
func (m *Machine) whyUnknown(s *slot) forerun.ReasonCode {
	switch {
	case m.mode == Branches:
		return forerun.ReasonOnlyBranches
	case m.predicts(s) != nil && s.traits.stray:
		return forerun.ReasonUnreliableCalls
	}
	return forerun.ReasonUnexpectedCall
}

// isFor reports whether an expected callee matches a call (rule R6). An action that is not resolved yet will be resolved
// to its newest version.
func (s *slot) isFor(call *Call) bool {
	return !call.Known && !call.Bypass && s.stop.Action == call.Action && bytes.Equal(s.stop.Input, call.Input) && (s.state == resolving || s.code == call.Code)
}

// takeBack returns the finished callees of a speculative function to it: their columns become a part of its own. Callees of a head are
// heads. They are promoted and committed like any other slot. So are the steps of a program, once the caller is the head.
func (m *Machine) takeBack(s *slot) {
	for !s.head && !s.promoting && !s.dead {
		c := s.waits()
		if c == nil || c.kind != function || c.state != finished || !m.merge(s, c) {
			return
		}
		s.callees = without(s.callees, c)
		s.merged = append(append(s.merged, c.merged...), c)
		c.merged = nil
		s.heardOf(c)
		m.changed = true
		m.do(Reply{Slot: s.id, Op: c.op, Result: c.result})
	}
}

// merge adds the column of a callee to the column of its speculative caller. If both read a record, they must have read
// one version (rule R5); otherwise the callee runs again.
//
// The callee also runs again, in order, if it read a value of its caller that has since expired. At the promotion the
// caller's commands are executed again before the callee's, and perhaps later than the expiry.
func (m *Machine) merge(s, c *slot) (ok bool) {
	for _, e := range c.column.order {
		mine := s.column.at(e.key)
		switch own := e.origin() == mine; {
		case !e.read || mine == nil:
		case own && m.records.Over(e.seen):
			m.rewind(c, cause{forerun.StaleRead, ofRecord(forerun.ReasonExpired, e.key)}, true)
			return false
		case !own && !(mine.read && mine.isSource(e)):
			m.rewind(c, cause{forerun.StaleRead, ofRecord(forerun.ReasonOtherVersionThanCaller, e.key)}, false)
			return false
		}
	}
	for _, e := range c.column.order {
		mine := s.column.at(e.key)
		if e.read && mine == nil {
			s.column.add(&entry{key: e.key, read: true, seen: e.seen, from: e.from, stamp: e.stamp, version: e.version})
		}
		if e.wrote {
			s.column.write(e.key, e.value, e.made)
			e.into = s.column.at(e.key)
		}
	}
	s.column.commands = append(s.column.commands, c.column.commands...)
	s.column.grow(c.column.size) // it is kept until the caller is promoted
	c.column.grow(-c.column.size)
	return true
}

// returned gives a committed callee's result to its caller, a head.
func (m *Machine) returned(c *slot) {
	s := c.caller
	s.callees = without(s.callees, c)
	if s.followed { // else no row is made
		s.heardOf(c)
		s.absorb(c)
	}
	m.do(Reply{Slot: s.id, Op: c.op, Result: c.result})
}

// heardOf notes a function's call and its effects, for the function's row. A call with more input than a row may hold prevents a row: such
// inputs are not kept until the function ends.
func (s *slot) heardOf(c *slot) {
	s.returns++
	if s.asked += len(c.stop.Input); s.asked > maxAsked {
		s.calls = nil
	} else {
		s.calls = append(s.calls, forerun.Callee{Action: c.stop.Action, Input: c.stop.Input, Code: c.code, Told: c.told})
	}
	s.restOn(c)
	s.inherit(c)
}

// abandonCallees releases callees whose caller ended without waiting for them: a thread of it had called, or a time limit had passed. They
// have begun and continue to their end, as they would if any other client had gone away.
func (m *Machine) abandonCallees(s *slot) {
	for _, c := range s.callees {
		c.orphan = true
		m.orphans = append(m.orphans, c)
		s.loose(forerun.ReasonLooseCall) // their effects are unknown, and belong to this execution (rule R8)
	}
	s.callees = nil
}
