package speculate

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Machine decides for one invocation. It is not safe for concurrent use.
type Machine struct {
	slots    []*slot  // by SlotID; nil once a slot is over
	depth    int      // how many slots may be speculative at once
	finished bool     // the client has its answer; abandoned callees may still run
	actions  []Action // of the step under way
}

// New begins an invocation of an action and returns the machine with what to do first.
func New(action string, input json.RawMessage) (*Machine, []Action) {
	m := &Machine{}
	m.launch(&slot{parent: None, caller: None}, Launch{Action: action, Input: input})
	return m, m.take()
}

// Step tells the machine an event and returns what to do, in order. An event of a slot that is over changes nothing:
// what comes late from a squashed slot is refused.
func (m *Machine) Step(e Event) []Action {
	switch e := e.(type) {
	case Started:
		m.started(e.Slot)
	case Entered:
		m.enter(e)
	case Output:
		m.complete(e.Slot, e.Result)
	case Failed:
		m.complete(e.Slot, e.Result) // rule R12: an error is committed like any other end
	case Read:
		m.direct(e.Slot, e.Op)
	case Write:
		m.direct(e.Slot, e.Op)
	case Call:
		m.call(e)
	case LoadChanged:
		m.depth = e.Depth
	case Cancelled:
		m.cancel(e.Reason)
	}
	return m.take()
}

func (m *Machine) do(a Action) { m.actions = append(m.actions, a) }

// take hands out the actions of the step and begins a new list.
func (m *Machine) take() []Action {
	actions := m.actions
	m.actions = nil
	return actions
}

func (m *Machine) started(id SlotID) {
	if s := m.at(id); s != nil {
		s.state = running
	}
}

// direct lets a head reach the store itself, exactly as without speculation.
func (m *Machine) direct(id SlotID, op OpID) {
	if s := m.at(id); s != nil {
		m.do(Reply{Slot: id, Op: op, Direct: true})
	}
}

// call launches the callee of a slot that waits for its answer.
func (m *Machine) call(e Call) {
	if s := m.at(e.Slot); s != nil {
		s.calls++
		m.launch(&slot{parent: None, caller: e.Slot, op: e.Op}, Launch{Action: e.Action, Input: e.Input})
	}
}

// enter makes a slot execute a program in place of a function.
func (m *Machine) enter(e Entered) {
	if s := m.at(e.Slot); s != nil {
		s.state, s.program = running, e.Program
		m.proceed(&thread{slot: s.id}, e.Program.Start(e.Input))
	}
}

// proceed goes on with a thread from a stop.
func (m *Machine) proceed(t *thread, stop forerun.Stop) {
	t.cursor = stop.Cursor
	switch {
	case stop.End && t.fork == nil:
		m.complete(t.slot, stop.Result)
	case stop.End:
		m.join(t.fork, t.branch, stop.Result)
	case stop.Join:
		m.split(t, stop.Fork)
	default:
		m.launch(&slot{parent: t.slot, caller: None, thread: t}, Launch{
			Action: stop.Action, Self: stop.Self, Function: stop.Function, Detach: stop.Detach, Input: stop.Input,
		})
	}
}

// split lets the branches of a fork run side by side: each has a head of its own.
func (m *Machine) split(t *thread, branches []forerun.Stop) {
	t.waiting, t.results = len(branches), make([]forerun.Result, len(branches))
	if len(branches) == 0 {
		m.resume(t, func(p forerun.Program) forerun.Stop { return p.Join(t.cursor, nil) })
	}
	for i, stop := range branches {
		m.proceed(&thread{slot: t.slot, fork: t, branch: i}, stop)
	}
}

// join notes the end of a branch; the last one lets the fork go on.
func (m *Machine) join(t *thread, branch int, r forerun.Result) {
	t.results[branch] = r
	if t.waiting--; t.waiting == 0 {
		m.resume(t, func(p forerun.Program) forerun.Stop { return p.Join(t.cursor, t.results) })
	}
}

// resume walks on with a thread, unless its slot is over.
func (m *Machine) resume(t *thread, walk func(forerun.Program) forerun.Stop) {
	if s := m.at(t.slot); s != nil {
		m.proceed(t, walk(s.program))
	}
}

// launch gives a slot its number and has its action executed.
func (m *Machine) launch(s *slot, l Launch) {
	s.id = SlotID(len(m.slots))
	m.slots = append(m.slots, s)
	l.Slot, l.Parent, l.Caller, l.Op = s.id, s.parent, s.caller, s.op
	m.do(l)
}

// complete commits a slot that has ended and goes on with what waited for it.
func (m *Machine) complete(id SlotID, r forerun.Result) {
	s := m.at(id)
	if s == nil {
		return
	}
	m.abandonCallees(s)
	m.slots[id] = nil
	m.do(Commit{Slot: id, Result: r})
	if r.Status == forerun.Success {
		m.do(Learn{Slot: id}) // errors are never kept
	}
	switch {
	case s.parent != None:
		m.resume(s.thread, func(p forerun.Program) forerun.Stop { return p.Resume(s.thread.cursor, r) })
	case s.caller >= 0:
		m.reply(s, r)
	case s.caller == None:
		m.finish(r)
	}
}

// reply answers the function that called slot s.
func (m *Machine) reply(s *slot, r forerun.Result) {
	m.at(s.caller).calls--
	m.do(Reply{Slot: s.caller, Op: s.op, Result: r})
}

func (m *Machine) finish(r forerun.Result) {
	m.finished = true
	m.do(Finish{Result: r})
}
