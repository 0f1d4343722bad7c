package speculate

import "forerun.dev/forerun/internal/forerun"

// A rehearsal is an invocation whose root is speculative to its end, and is squashed then. It tells what an execution would do now, and leaves
// nothing behind (C4). Nothing in it is ever promoted or committed, so nothing is learnt from it (C3). A step that only
// a promotion could let go on ends the rehearsal.

// conclude tells what the root of a rehearsal has done, once it has ended.
func (m *Machine) conclude() {
	s := m.root
	if s == nil || s.state != finished {
		return
	}
	var row *forerun.Row
	if s.result.Status == forerun.Success {
		s.remember()
		row = s.newRow()
	}
	result := s.result
	m.kill(s, cause{kind: forerun.GivenUp})
	m.root = nil
	if row != nil {
		m.do(Rehearsed{Row: row})
	}
	m.finish(result)
}

// breakOff ends a rehearsal that cannot go on, for a cause.
func (m *Machine) breakOff(c cause, message string) {
	m.do(Rehearsed{Disturbed: c.kind == forerun.MadeWay || c.kind == forerun.Updated || c.kind == forerun.Overtaken, Why: c.why})
	m.cancel(message)
}
