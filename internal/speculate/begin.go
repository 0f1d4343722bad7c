package speculate

import (
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// execute gives a slot its number and has its action found, or, with speculation off, executed.
func (m *Machine) execute(s *slot) {
	m.slots.add(s)
	s.column.total = &m.buffered
	if m.mode != Off {
		s.column.grow(len(s.stop.Input))
	}
	m.changed = true
	s.followed, s.bypass = m.mode != Off, s.bypass || m.bypass
	if around := s.within(); around != nil {
		s.followed, s.bypass = s.followed || around.followed, s.bypass || around.bypass
	}
	if s.stop.Detach != nil {
		s.loose(forerun.ReasonDetaches)
	}
	switch {
	case m.mode == Off && (!m.caches || s.stop.Detach != nil):
		s.head = true
		m.launch(s)
	case s.stop.Detach != nil: // a detached execution cannot be taken back
		s.state, s.patient = waiting, true
		m.runAhead(s)
	default:
		if s.head = m.mode == Off; !s.head {
			m.runAhead(s)
		}
		m.do(Resolve{
			Slot: s.id, Parent: s.parent(), Caller: s.callerID(), Op: s.op,
			Action: s.stop.Action, Self: s.stop.Self, Function: s.stop.Function, Input: s.stop.Input,
		})
	}
}

// within is the slot that a slot is a part of: its program, or its caller; nil for the root.
func (s *slot) within() *slot {
	if s.thread != nil {
		return s.thread.program
	}
	return s.caller
}

// resolved decides about a slot whose action is a function.
func (m *Machine) resolved(e Resolved) {
	s := m.hears(e.Slot)
	if s == nil || s.state != resolving || s.kind != function {
		return
	}
	s.state, s.name, s.code, s.input = waiting, e.Name, e.Code, e.Input
	s.traits = traits{m.caches && e.Cached, e.Watched, e.Open, e.Stray, e.Until}
	s.followed = s.followed || s.traits.cached || e.Watched
	if e.Alone != nil && m.rehearses {
		m.cancel("It waits for its turn.")
		return
	}
	if e.Alone != nil && !s.head { // else its turn has come, and that has kept it from nothing
		s.patient, s.inTurn, s.undecided = true, e.Alone, e.InTurn
	}
	if m.memo != nil && (m.mode == All || s.traits.cached) {
		m.recall(s)
	}
	m.expect(s)
	if !s.undecided {
		m.shortcut(s)
	}
}

// recall looks up the row of a slot's function on its input.
func (m *Machine) recall(s *slot) {
	s.row = m.memo.Find(s.code, s.input)
	switch {
	case m.mode != All: // nothing is predicted by it
	case s.row == nil:
		s.novelty = Unseen
	default:
		s.novelty = Seen
	}
}

// predicts is the row by which outputs and calls of a slot are predicted, or nil.
func (m *Machine) predicts(s *slot) *forerun.Row {
	if m.mode != All {
		return nil
	}
	return s.row
}

// enter makes a slot execute a program in place of a function.
func (m *Machine) enter(e Entered) {
	s := m.hears(e.Slot)
	if s == nil || s.kind != function || s.state != resolving && m.mode != Off {
		return
	}
	if m.rehearses { // the result of a program reaches a caller in its turn only
		m.breakOff(cause{forerun.Failed, forerun.Because(forerun.ReasonCallsWorkflow)}, "It calls a workflow.")
		return
	}
	s.state, s.kind, s.name, s.code = running, program, e.Name, e.Code
	t := &thread{owner: s, program: s, table: e.Program}
	s.branches = []*thread{t}
	start := e.Program.Start(e.Input)
	t.goOn(&start, s.path, s.why, s.inTurn)
	m.expect(s)
	m.changed = true
}

// expect guesses the result of a slot: the result of an earlier execution on the same input, or the usual outcome of its
// branch.
func (m *Machine) expect(s *slot) {
	switch {
	case m.predicts(s) != nil && !s.traits.open:
		s.guess = &guess{forerun.Result{Value: s.row.Output}, forerun.ReasonKnownOutput}
	case s.stop.Branch && s.thread != nil && m.predictor != nil:
		if value, ok := m.predictor.Predict(s.branch(), s.path, m.likely); ok {
			s.guess = &guess{forerun.Result{Value: value}, forerun.ReasonUsualWay}
		}
	}
}

// shortcut lets a row of the memo table stand for an execution, where the action allows that and the row does. It notes why none does.
func (m *Machine) shortcut(s *slot) {
	switch {
	case !s.traits.cached:
	case s.bypass:
		s.executes(forerun.CacheBypass, forerun.Because(forerun.ReasonBypass))
	case s.row == nil:
		s.executes(forerun.CacheMiss, forerun.Because(forerun.ReasonNoRow))
	case !s.row.Stands():
		s.executes(forerun.CacheMiss, s.row.Why)
	case m.isOver(s.row.Until):
		s.executes(forerun.CacheStale, forerun.Because(forerun.ReasonTTLOver))
	case len(s.row.Reads) == 0 && len(s.row.Below) == 0:
		m.skip(s, forerun.ReasonPure)
	default:
		if written := m.touched(s); written != nil {
			s.executes(forerun.CacheStale, changedRecord(*written))
			return
		}
		m.check(s)
	}
}

// isOver reports whether a moment has come.
func (m *Machine) isOver(until time.Time) bool {
	return !until.IsZero() && (m.now == nil || !m.now().Before(until))
}

// executes notes why no row stands for a slot.
func (s *slot) executes(outcome forerun.CacheOutcome, why *forerun.Reason) {
	s.verdict = &forerun.Cached{Outcome: outcome, Why: why}
}

func changedRecord(key forerun.Key) *forerun.Reason {
	return &forerun.Reason{Code: forerun.ReasonChangedRecord, Record: forerun.ShownName(key.Name)}
}

// check asks whether the records and code of a row are unchanged.
func (m *Machine) check(s *slot) {
	s.state, s.early, s.overtaken = checking, !s.head, false
	m.do(Check{Slot: s.id, Row: s.row})
}

// touched is the first record of a slot's row that a column before the slot, or of one of its callers, has written, or nil (rule R7).
func (m *Machine) touched(s *slot) *forerun.Key {
	if m.mode == Off { // there are no columns
		return nil
	}
	for i := range s.row.Reads {
		if key := &s.row.Reads[i].Key; m.find(s, *key).where != inStore {
			return key
		}
	}
	return nil
}

// checked skips a slot if its row is current. The slot then counts as having read the records of the row (rule R3).
func (m *Machine) checked(e Checked) {
	s := m.hears(e.Slot)
	if s == nil || s.state != checking {
		return
	}
	s.state = waiting
	if s.head && s.early || s.overtaken { // those before it may have seen newer records than the check has, or written them
		m.shortcut(s)
		return
	}
	if why := m.outdates(s, e); why != nil {
		s.executes(forerun.CacheStale, why)
		return
	}
	if m.mode != Off { // else there are no columns
		for _, read := range s.row.Reads {
			s.column.add(&entry{key: read.Key, read: true, version: read.Version})
		}
	}
	if s.head && s.within() != nil { // a row of that rests on them, too
		s.note(s.row.Reads)
	}
	if len(s.row.Reads) == 0 {
		m.skip(s, forerun.ReasonPure)
	} else {
		m.skip(s, forerun.ReasonReadsUnchanged)
	}
}

// outdates is why a row is not current, as a check tells; nil if it is.
func (m *Machine) outdates(s *slot, e Checked) *forerun.Reason {
	if !e.Current || len(e.Versions) != len(s.row.Reads) {
		return forerun.Because(forerun.ReasonChangedCode)
	}
	if !s.head {
		if written := m.touched(s); written != nil {
			return changedRecord(*written)
		}
	}
	for i, read := range s.row.Reads {
		if e.Versions[i] != read.Version {
			return changedRecord(read.Key)
		}
	}
	return nil
}

func (m *Machine) skip(s *slot, why forerun.ReasonCode) {
	s.skipped = true
	s.until = s.row.Until
	s.calls, s.below = s.row.Callees, s.row.Below // a caller's row rests on their code, too (rule R8)
	result := forerun.Result{Value: s.row.Output}
	m.do(Skip{Slot: s.id, Result: result, Row: s.row, Why: forerun.Because(why)})
	m.end(s, result)
}

// launch has a slot's action executed.
func (m *Machine) launch(s *slot) {
	s.state = running
	l := Launch{
		Slot: s.id, Parent: s.parent(), Caller: s.callerID(), Op: s.op,
		Action: s.stop.Action, Self: s.stop.Self, Function: s.stop.Function, Detach: s.stop.Detach, Input: s.stop.Input,
	}
	switch {
	case !s.head:
		l.Speculative, l.Why = true, s.why
		s.launched, s.working = true, true
		m.launched++
		m.working++
	case m.mode != Off && s != m.root:
		l.Why = s.whyInTurn()
	}
	if row := m.predicts(s); row != nil && !s.traits.stray {
		s.script = row.Callees
	}
	l.Followed, l.Cached = s.followed, s.verdict
	m.do(l)
}

// maxInput bounds the input of a speculative slot, in bytes. A predicted iteration of a loop may double its input, and
// the next iteration may never happen.
const maxInput = 1 << 20

// maxAhead bounds the speculative slots that are not launched yet: programs that contain only programs.
const maxAhead = 64

// hasRoom reports whether one more speculative slot may exist (C5).
func (m *Machine) hasRoom() bool {
	return m.launched < m.depth && m.ahead < m.depth+maxAhead && m.buffered <= maxColumns
}

// materializeAhead makes a speculative slot for the next step of a thread, if there is room.
func (m *Machine) materializeAhead(t *thread) {
	switch p := t.pending; {
	case p == nil:
	case p.stop.Size() > maxInput:
		p.inTurn = forerun.Because(forerun.ReasonLargeInput)
	default:
		if p.crowded = !m.hasRoom(); !p.crowded {
			m.materialize(t)
		}
	}
}

// tend does all possible speculative work for a slot and for the slots inside it.
func (m *Machine) tend(s *slot) {
	switch {
	case s == nil || s.dead:
	case s.kind == function:
		m.tendFunction(s)
	case s.kind == program:
		m.tendThread(s.branches[0])
	default:
		m.tendFork(s)
	}
}

func (m *Machine) tendFunction(s *slot) {
	if s.state == waiting && !s.patient {
		if s.crowded = !m.hasRoom(); !s.crowded {
			m.begin(s)
		}
	}
	m.answerAll(s)
	for i := 0; i < len(s.callees) && !s.dead; i++ {
		m.tend(s.callees[i])
	}
	m.takeBack(s)
	m.foresee(s)
}

// tendThread tends the steps of a thread. It continues behind the last step while the next one is known or predicted. A
// thread without steps belongs to a speculative program or branch.
func (m *Machine) tendThread(t *thread) {
	if len(t.steps) == 0 {
		m.materializeAhead(t)
	}
	for i := 0; i < len(t.steps); i++ {
		m.tend(t.steps[i])
		if i != len(t.steps)-1 {
			continue
		}
		if s := t.steps[i]; !s.walked && t.pending == nil {
			m.walk(s)
		}
		m.materializeAhead(t)
	}
}

// whyInTurn is why a slot was not launched before its turn, if something kept it.
func (s *slot) whyInTurn() *forerun.Reason {
	if s.inTurn == nil && s.crowded {
		return forerun.Because(forerun.ReasonDepth)
	}
	return s.inTurn
}
