package speculate

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// cause is why slots are squashed.
type cause struct {
	kind forerun.SquashKind
	why  *forerun.Reason
}

// with is the cause of slots that are squashed with another slot: they follow it, or are in it, and may have done nothing wrong.
func (c cause) with(s *slot) cause {
	why := forerun.NewReason(forerun.ReasonRunsAgain, forerun.Detail{Of: c.why})
	why.Slot = s.named()
	return cause{c.kind, why}
}

// rewind squashes a slot that is not a head, with all that follow it, and has it executed again (rule R5). A patient
// slot is not launched before it is the head.
func (m *Machine) rewind(s *slot, why cause, patient bool) {
	if m.rehearses {
		m.breakOff(why, "It would run again in its turn.")
		return
	}
	others := why.with(s)
	m.dropAfter(s, others)
	m.killInside(s, others)
	m.killAlone(s, why)
	patient = patient || s.patient
	again := &slot{stop: s.stop, path: s.path, caller: s.caller, op: s.op, attached: s.attached, told: s.told, orphan: s.orphan, patient: patient, why: s.why, inTurn: why.why}
	switch {
	case s.orphan:
		m.orphans[slices.Index(m.orphans, s)] = again
		m.execute(again)
	case s.caller != nil:
		s.caller.callees[slices.Index(s.caller.callees, s)] = again
		m.execute(again)
	default:
		s.thread.steps = without(s.thread.steps, s)
		s.thread.pending = &pending{stop: s.stop, path: s.path, patient: patient, why: s.why, inTurn: why.why}
	}
}

// changed is the cause of slots that run again because their action has changed.
var changed = cause{forerun.Updated, forerun.Because(forerun.ReasonUpdated)}

// renewed executes slots again whose actions have changed since their resolution. In order, they find the current
// action. A callee that returned to a speculative caller is a part of that caller, so the caller runs again.
//
// A slot that is being promoted continues, and so do the programs that contain or precede it. If the store refuses the
// promotion, all of them run in order later. If it accepts, they have already had their turn (rule R10).
func (m *Machine) renewed(e Renewed) {
	for _, id := range e.Slots {
		s := m.hears(id)
		for s != nil && s.isMerged() {
			s = s.caller
		}
		if s == nil || s.head {
			continue
		}
		switch first := s.firstFunction(); {
		case first == nil || !first.promoting:
			m.rewind(s, changed, false)
		case first.outdated == nil || s.id < first.outdated.id: // the lowest id contains or precedes the others
			first.outdated = s
		}
	}
}

// isMerged tells whether a callee has returned to its caller.
func (s *slot) isMerged() bool {
	return s.caller != nil && !s.orphan && !slices.Contains(s.caller.callees, s)
}

// dropAfter squashes all that follows a slot in program order, but for heads: those are callees that the same head waits for.
func (m *Machine) dropAfter(s *slot, why cause) {
	m.changed = true
	m.wake(s)
	for x := s; x != nil && !x.orphan; x = x.around() {
		list, at := x.beside()
		for i := len(list) - 1; i > at; i-- {
			if after := list[i]; x.caller == nil || !after.attached {
				m.kill(after, why)
				list = slices.Delete(list, i, i+1)
				m.expectAgain(x.caller, after)
			}
		}
		switch {
		case x.caller != nil:
			x.caller.callees = list
		case x.thread != nil:
			x.thread.steps, x.thread.pending, x.thread.end, x.walked = list, nil, nil, false
		}
	}
}

// expectAgain puts a squashed callee back on the list of those that are expected.
func (m *Machine) expectAgain(caller, c *slot) {
	if caller != nil {
		caller.script = append([]forerun.Callee{{Action: c.stop.Action, Input: c.stop.Input, Code: c.code}}, caller.script...)
	}
}

// disown squashes the predicted callees that a function did not call, and all that follows the function (rule R6).
func (m *Machine) disown(s *slot, why cause) {
	m.wake(s)
	s.script = nil
	called := s.called()
	for i := len(s.callees) - 1; i >= called; i-- {
		m.kill(s.callees[i], why)
	}
	s.callees = s.callees[:called]
	m.dropAfter(s, why)
}

// kill squashes a slot and the slots in it.
func (m *Machine) kill(s *slot, why cause) {
	m.killInside(s, why)
	m.killAlone(s, why)
}

// killInside squashes the slots in a slot: callees and components before the slots that wait for them.
func (m *Machine) killInside(s *slot, why cause) {
	for _, t := range slices.Backward(s.branches) {
		for _, x := range slices.Backward(t.steps) {
			m.kill(x, why)
		}
	}
	for _, x := range slices.Backward(s.callees) {
		m.kill(x, why)
	}
	for _, x := range slices.Backward(s.merged) {
		m.kill(x, why)
	}
}

// killAlone squashes a slot in which nothing is left.
func (m *Machine) killAlone(s *slot, why cause) {
	m.forget(s)
	if s.id != None && (s.stop.Detach == nil || s.state != waiting) { // a detached slot that still waits has been announced to no caller
		m.do(Squash{Slot: s.id, Kind: why.kind, Cause: why.why})
	}
}

// cancel squashes whatever runs and ends the invocation.
func (m *Machine) cancel(message string) {
	why := cause{forerun.GivenUp, forerun.NewReason(forerun.ReasonStopped, forerun.Detail{Text: message})}
	for _, s := range slices.Backward(m.orphans) {
		m.kill(s, why)
	}
	m.orphans = nil
	if m.root != nil {
		m.kill(m.root, why)
		m.root = nil
	}
	if !m.over {
		m.finish(forerun.Failure(forerun.InternalError, message))
	}
}
