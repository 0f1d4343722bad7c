package speculate

import (
	"bytes"
	"reflect"

	"forerun.dev/forerun/internal/forerun"
)

// thread is one line of control through the program of a slot: its own, or a branch of a fork. A step whose result is not known yet can
// have others behind it, if its result is predicted.
type thread struct {
	owner   *slot           // the program, or the fork
	program *slot           // the program, around the fork if there is one
	table   forerun.Program // of the program
	steps   []*slot         // that are not committed, in program order
	pending *pending        // the step to come behind them, if it is known
	end     *forerun.Result // how the thread ends behind them, if that is known
	branch  int             // which one of the fork it is
	asleep  bool            // there is nothing to do in it,
	crowded bool            // asleep only for want of room
	joined  bool            // it is over, and counted
}

// pending is a step that has no slot yet.
type pending struct {
	stop    *forerun.Stop
	path    uint64
	patient bool
	crowded bool
	why     *forerun.Reason // why it is speculative
	inTurn  *forerun.Reason // why it could not be before
}

// goOn sets the next step of a thread, or its end. why is the reason for which the step is speculative; inTurn is the
// reason why it was not speculative earlier. At an end, inTurn is kept for the step behind the program or fork.
func (t *thread) goOn(stop *forerun.Stop, path uint64, why, inTurn *forerun.Reason) {
	if stop.End {
		t.end, t.owner.surprised = &stop.Result, inTurn
		return
	}
	t.pending = &pending{stop: stop, path: path, why: why, inTurn: inTurn}
}

// isOver tells whether all steps are committed and none is to come.
func (t *thread) isOver() bool { return len(t.steps) == 0 && t.pending == nil && t.end != nil }

// firstPath is the path of an invocation's root: the hash that mixPath begins with (FNV-1a).
const firstPath = 14695981039346656037

// mixPath is the path behind a place: which places a walk came by.
func mixPath(path uint64, place int) uint64 { return (path ^ uint64(place)) * 1099511628211 }

// materialize gives the step to come a slot.
func (m *Machine) materialize(t *thread) {
	p := t.pending
	t.pending = nil
	s := &slot{id: None, stop: p.stop, thread: t, path: p.path, patient: p.patient, crowded: p.crowded, why: p.why, inTurn: p.inTurn}
	t.steps = append(t.steps, s)
	m.changed = true
	if !p.stop.Join {
		m.execute(s)
		return
	}
	s.kind, s.state = fork, running
	m.forked = true
	m.runAhead(s)
	for i, stop := range p.stop.Fork {
		branch := &thread{owner: s, program: t.program, table: t.table, branch: i}
		branch.goOn(&stop, mixPath(s.path, s.stop.Place), s.why, s.inTurn)
		s.branches = append(s.branches, branch)
	}
	s.wakeAll()
}

// outcome is a step's result, real or predicted; ok is false if neither is known.
func (s *slot) outcome() (r forerun.Result, ok bool) {
	switch {
	case s.kind == program:
		if end := s.branches[0].end; end != nil {
			return *end, true
		}
		if s.guess != nil {
			return s.guess.result, true
		}
	case s.state == finished:
		return s.result, true
	case s.guess != nil:
		return s.guess.result, true
	}
	return forerun.Result{}, false
}

// after walks on behind a step; ok is false if its outcome is not known.
func (s *slot) after() (stop *forerun.Stop, ok bool) {
	if s.kind != fork {
		r, ok := s.outcome()
		if !ok {
			return nil, false
		}
		next := s.thread.table.Resume(s.stop.Cursor, r)
		return &next, true
	}
	if s.isOpen() {
		return nil, false
	}
	results := make([]forerun.Result, len(s.branches))
	for i, branch := range s.branches {
		results[i] = *branch.end
	}
	next := s.thread.table.Join(s.stop.Cursor, results)
	return &next, true
}

// isOpen tells whether it is not known yet how all branches of a fork end. It looks first at the one that it was not known of last.
func (s *slot) isOpen() bool {
	for range s.branches {
		if s.branches[s.open].end == nil {
			return true
		}
		s.open = (s.open + 1) % len(s.branches)
	}
	return false
}

// walk lets a thread go on behind its last step, if that step's outcome is known.
func (m *Machine) walk(s *slot) {
	stop, ok := s.after()
	if ok {
		s.walked, s.next, m.changed = true, stop, true
		s.thread.goOn(stop, mixPath(s.path, s.stop.Place), s.prospect(), m.surprise(s))
		if stop.End {
			m.revise(s.thread.owner)
		}
	}
}

// prospect is the reason for which the step behind s is launched speculatively.
func (s *slot) prospect() *forerun.Reason {
	switch {
	case s.kind == function && s.state != finished && s.guess != nil:
		return s.because(s.guess.why)
	case s.kind == program && s.branches[0].end == nil && s.guess != nil:
		return s.because(s.guess.why)
	case s.why != nil:
		return s.why
	}
	for _, branch := range s.branches {
		if last := branch.last(); last != nil && last.state != finished {
			return last.prospect()
		}
	}
	return s.because(forerun.ReasonEnded)
}

// last is the last of the steps that are not committed, or nil.
func (t *thread) last() *slot {
	if len(t.steps) == 0 {
		return nil
	}
	return t.steps[len(t.steps)-1]
}

// surprise is the reason why the step behind s was not known before the end of s, or none if it was. Behind a program
// or fork the reason comes from the slot that ended it. Behind a skipped function it is the reason for which its input
// was not known.
func (m *Machine) surprise(s *slot) *forerun.Reason {
	switch {
	case m.mode == Off:
		return nil
	case s.kind != function:
		return s.surpriseInside()
	case s.state != finished:
		return nil
	case s.skipped:
		return s.inTurn
	case s.guess != nil && sameResult(s.result, s.guess.result):
		return s.because(forerun.ReasonOtherCalls)
	case s.guess != nil:
		return s.because(forerun.ReasonOtherOutput)
	case s.row != nil:
		return s.because(forerun.ReasonUnreliable)
	case s.stop.Branch:
		return s.because(forerun.ReasonUnclearWay)
	case m.mode != All:
		return s.because(forerun.ReasonOnlyBranches)
	}
	return s.because(forerun.ReasonUnknownOutput)
}

// surpriseInside is surprise of a program, or a fork, that has ended or is expected to.
func (s *slot) surpriseInside() *forerun.Reason {
	if s.guess != nil && s.branches[0].end != nil && !sameResult(*s.branches[0].end, s.guess.result) {
		return s.because(forerun.ReasonOtherOutput)
	}
	return s.surprised
}

// revise compares the steps walked behind s with the way its outcome leads now. If the way differs, the steps behind s
// are squashed.
func (m *Machine) revise(s *slot) {
	if s.thread == nil || !s.walked {
		return
	}
	if s.kind == function && s.guess != nil && sameResult(s.result, s.guess.result) {
		return // the walk was made with this result
	}
	stop, ok := s.after()
	switch {
	case ok && same(stop, s.next):
	case ok && stop.End && s.next.End:
		s.next = stop
		s.thread.end, s.thread.owner.surprised = &stop.Result, m.surprise(s)
		m.revise(s.thread.owner)
	default:
		s.misled = s.guess != nil && (s.row == nil || s.traits.open) // else it was not the predictor
		m.dropAfter(s, cause{forerun.WrongInput, s.because(forerun.ReasonOtherOutput)})
	}
}

// same tells whether two stops are one place, with the same to do there and the same around it.
func same(a, b *forerun.Stop) bool {
	if a.End || b.End {
		return a.End && b.End && sameResult(a.Result, b.Result)
	}
	if a.Place != b.Place || a.Join != b.Join || a.Self != b.Self || a.Function != b.Function || a.Action != b.Action ||
		len(a.Fork) != len(b.Fork) || (a.Detach == nil) != (b.Detach == nil) || !bytes.Equal(a.Input, b.Input) {
		return false
	}
	for i := range a.Fork {
		if !same(&a.Fork[i], &b.Fork[i]) {
			return false
		}
	}
	return reflect.DeepEqual(a.Cursor, b.Cursor) && reflect.DeepEqual(a.Detach, b.Detach)
}

func sameResult(a, b forerun.Result) bool {
	return a.Status == b.Status && bytes.Equal(a.Value, b.Value)
}
