package speculate

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Machine decides for one invocation. It is not safe for concurrent use.
type Machine struct {
	mode      Mode
	caches    bool // rows of annotated functions may stand for executions,
	bypass    bool // but for this invocation
	rehearses bool // the turn of the root never comes
	now       func() time.Time
	memo      Memo
	predictor *Predictor
	records   Records
	depth     int     // how many launched slots may be speculative at once
	full      bool    // the server has no room for large columns to grow
	likely    float64 // the share from which on an outcome is expected

	slots    window   // that are not over
	root     *slot    // nil once it is over
	orphans  []*slot  // callees whose callers ended without waiting for them
	ahead    int      // slots that are not heads,
	launched int      // and occupy handlers,
	working  int      // and have not finished
	buffered int      // bytes in columns
	stamp    uint64   // of the last write in a column
	empty    int      // forks that joined in this step without anything having run
	forked   bool     // there was a fork
	over     bool     // the client has its answer; orphans may still run
	changed  bool     // since the last look for what can be done
	blamed   []blame  // that the search under way has come by
	actions  []Action // of the step under way
	images   []Image  // room for those that a command reads
}

// New begins an invocation of an action and returns the machine with what to do first. Without options it does not speculate.
func New(action string, input json.RawMessage, options ...Option) (*Machine, []Action) {
	m := &Machine{depth: DefaultDepth, likely: 0.5 + DefaultBand, actions: make([]Action, 0, actionsAtFirst)}
	for _, set := range options {
		set(m)
	}
	m.root = &slot{stop: &forerun.Stop{Action: action, Input: input}, path: firstPath}
	m.execute(m.root)
	if !m.rehearses {
		m.lead(m.root)
	}
	return m, m.take()
}

// Ahead is the number of speculative functions that have not finished.
func (m *Machine) Ahead() int { return m.working }

// Forked reports whether the program had branches that run at the same time.
func (m *Machine) Forked() bool { return m.forked }

// Step tells the machine an event and returns the resulting actions, in order. An event of a slot that is over changes
// nothing. A late request of a squashed slot is refused.
func (m *Machine) Step(e Event) []Action {
	m.hear(e)
	m.empty = 0
	for {
		m.changed = false
		m.advance()
		if m.mode == Off {
			break
		}
		m.tend(m.root)
		for _, s := range m.orphans {
			m.tend(s)
		}
		if !m.changed {
			break
		}
	}
	m.settle()
	return m.take()
}

// settle lets what needs no look sleep.
func (m *Machine) settle() {
	for _, s := range m.orphans {
		s.settle()
	}
	if m.root != nil {
		m.root.settle()
	}
}

func (m *Machine) hear(e Event) {
	switch e := e.(type) {
	case Resolved:
		m.resolved(e)
	case Entered:
		m.enter(e)
	case Renewed:
		m.renewed(e)
	case Output:
		m.output(e)
	case Failed:
		m.failed(e)
	case Read:
		m.request(e.Slot, &request{op: e.Op, reads: keys{list: e.Keys}, command: e.Command, inexact: e.Inexact})
	case Write:
		m.request(e.Slot, &request{op: e.Op, writes: keys{list: e.Keys}, reads: keys{list: e.Reads}, command: e.Command, size: e.Size, inexact: e.Inexact})
	case Hold:
		m.request(e.Slot, &request{op: e.Op, hold: true, first: e.First, why: whyOr(e.Why, forerun.ReasonIrreversible)})
	case Withdrawn:
		m.withdrawn(e)
	case Fetched:
		m.fetched(e)
	case Done:
		m.done(e)
	case Call:
		m.request(e.Slot, &request{op: e.Op, call: &e})
	case Checked:
		m.checked(e)
	case Awaited:
		m.awaited(e)
	case Promoted:
		m.promoted(e)
	case Conflict:
		m.conflict(e)
	case LoadChanged:
		m.depth, m.full = e.Depth, e.Full
	case Cancelled:
		m.cancel(e.Error)
	}
}

// For how many actions there is room at a time, of one step after the other: at first for those of an invocation of one function.
const (
	actionsAtFirst = 8
	actionsAtOnce  = 32
)

func (m *Machine) do(a Action) {
	if cap(m.actions) == 0 {
		m.actions = make([]Action, 0, actionsAtOnce)
	}
	m.actions = append(m.actions, a)
}

// take hands out the actions of the step and begins a new list.
func (m *Machine) take() []Action {
	actions := slices.Clip(m.actions)
	m.actions = m.actions[len(actions):]
	return actions
}

// whyOr is a reason that an event may have, or the usual one.
func whyOr(why *forerun.Reason, usual forerun.ReasonCode) *forerun.Reason {
	if why == nil {
		return forerun.Because(usual)
	}
	return why
}

// output ends a slot whose function returned. A speculative one with an error is kept like any other (rule R12).
func (m *Machine) output(e Output) {
	if s := m.hears(e.Slot); s != nil && s.state == running {
		switch e.Reach {
		case forerun.Outside:
			s.acted(forerun.Because(forerun.ReasonReached))
		case forerun.ReadHosts:
			s.readHosts()
		}
		s.remembers = e.Remembers
		m.end(s, e.Result)
	}
}

// failed ends a head that failed: it is committed like any other end (rule R12). A speculative slot has not failed before it
// does so as the head.
func (m *Machine) failed(e Failed) {
	s := m.hears(e.Slot)
	switch {
	case s == nil || s.state == finished:
	case m.rehearses:
		m.breakOff(cause{e.Kind, whyOr(e.Why, forerun.ReasonFailedEarly)}, "It failed as it was rehearsed.")
	case s.head:
		s.blurred(forerun.Because(forerun.ReasonPlatformError))
		m.end(s, e.Result)
	case s.promoting:
		s.failure = &e.Result // if it was promoted, it failed as a head (rule R10)
	case s.launched:
		m.rewind(s, cause{cmp.Or(e.Kind, forerun.Failed), whyOr(e.Why, forerun.ReasonFailedEarly)}, true)
	default: // it cannot be executed, which counts when it is the head
		s.failure, s.state = &e.Result, waiting
		s.patient = true
	}
}

// end notes the result of a slot and drops what no longer holds because of it.
func (m *Machine) end(s *slot, r forerun.Result) {
	m.changed = true
	switch {
	case s.head && len(s.requests) > 0:
		s.loose(forerun.ReasonLooseRequest) // their future effects belong to this execution (rule R8)
		for _, r := range s.requests {
			if r.call != nil { // it had called before it ended
				m.callOut(s, r)
			}
		}
	case s.head:
	case s.promoting && len(s.requests) > 0:
		s.late = new(r) // as the head it carries out its request, and then ends
		return
	case !s.promoting && (len(s.requests) > 0 || s.waits() != nil):
		m.rewind(s, cause{forerun.Failed, forerun.Because(forerun.ReasonLeftRequests)}, true)
		return
	}
	m.retire(s)
	s.state, s.result, s.requests, s.script = finished, r, nil, nil
	if s.expected() != nil {
		m.disown(s, cause{forerun.WrongCall, s.because(forerun.ReasonNotCalled)})
	}
	m.revise(s)
}
