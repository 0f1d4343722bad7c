package speculate

import "forerun.dev/forerun/internal/forerun"

// maxEmpty bounds the forks without anything to run that one step joins, so that a loop of them ends.
const maxEmpty = 100_000

// advance carries the heads forward: it promotes, commits and continues.
func (m *Machine) advance() {
	if m.rehearses {
		m.conclude()
		return
	}
	m.advanceSlot(m.root)
	for i := 0; i < len(m.orphans); {
		s := m.orphans[i]
		m.advanceSlot(s)
		if i < len(m.orphans) && m.orphans[i] == s {
			i++
		}
	}
}

func (m *Machine) advanceThread(t *thread) {
	for {
		if len(t.steps) == 0 {
			if t.pending == nil {
				return
			}
			m.materialize(t)
		}
		s := t.steps[0]
		m.advanceSlot(s)
		if len(t.steps) > 0 && t.steps[0] == s {
			return
		}
	}
}

// advanceSlot is for a slot in its turn: all slots before it are committed, or are its callers and wait for it.
func (m *Machine) advanceSlot(s *slot) {
	switch {
	case s == nil:
	case s.kind == function:
		m.advanceFunction(s)
	case s.kind == program:
		m.lead(s)
		m.advanceThread(s.branches[0])
		if s.branches[0].isOver() {
			m.join(s)
		}
	default:
		m.lead(s)
		m.advanceFork(s)
	}
}

func (m *Machine) advanceFork(s *slot) {
	for t := s.nextAwake(0); t != nil; t = s.nextAwake(t.branch + 1) {
		m.advanceThread(t)
		if t.isOver() && !t.joined {
			t.joined = true
			s.joined++
		}
	}
	if s.joined == len(s.branches) {
		m.join(s)
	}
}

func (m *Machine) advanceFunction(s *slot) {
	if !s.head && !s.promoting {
		m.promote(s)
	}
	if !s.head || s.dead {
		return
	}
	for i := 0; i < len(s.callees) && s.callees[i].attached; {
		c := s.callees[i]
		m.advanceSlot(c)
		if i < len(s.callees) && s.callees[i] == c {
			i++
		}
	}
	if s.state == waiting && s.undecided {
		s.undecided = false
		m.shortcut(s)
	}
	switch s.state {
	case waiting:
		m.begin(s)
	case finished:
		m.commit(s)
	}
}

// join ends a program or a fork whose branches have ended.
func (m *Machine) join(s *slot) {
	if s.kind == program {
		s.state, s.result = finished, *s.branches[0].end
		m.commit(s)
		return
	}
	if m.empty++; m.empty > maxEmpty {
		s.walked = true
		s.thread.end = &forerun.Result{Status: forerun.ApplicationError, Value: endless.Value}
	}
	m.pass(s)
}

var endless = forerun.Failure(forerun.ApplicationError,
	"The composition went on without an action for too long; does a loop in it never end?")

// commit makes a head that has finished final, and lets go on what waited for it.
func (m *Machine) commit(s *slot) {
	if s.thread != nil && !s.walked {
		m.walk(s)
	}
	m.abandonCallees(s)
	m.yield(s)
	m.forget(s)
	m.do(Commit{Slot: s.id, Result: s.result})
	m.learn(s)
	switch {
	case s.orphan:
		m.orphans = without(m.orphans, s)
	case s.thread != nil:
		if s.thread.program.followed {
			s.thread.program.absorb(s)
		}
		m.pass(s)
	case s.caller != nil:
		m.returned(s)
	default:
		m.root = nil
		m.finish(s.result)
	}
}

// pass takes a committed step out of its thread.
func (m *Machine) pass(s *slot) {
	if !s.walked {
		m.walk(s)
	}
	m.forget(s)
	s.thread.steps = without(s.thread.steps, s)
}

func (m *Machine) finish(r forerun.Result) {
	m.over = true
	m.do(Finish{Result: r})
}
