package speculate

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// slot is a node of the pipeline: an execution of an action, or a fork, which joins its branches.
type slot struct {
	id   SlotID // None: it is a fork
	kind kind
	stop *forerun.Stop // the action and input that it executes
	path uint64        // which places the walk came by

	// The slot's place: a step of a thread, a call of a function, the root, or a call that its caller left behind.
	thread   *thread
	caller   *slot
	op       OpID // the call
	attached bool // the call was made; else it is expected
	told     bool // the caller may be told its id before it ends
	orphan   bool // its caller ended without waiting for it

	state     state
	head      bool            // every slot before it is committed, and it was validated
	promoting bool            // its promotion is under way: its operations wait for the outcome (rule R10)
	solo      bool            // it is promoted alone, since a group was refused
	patient   bool            // it is not launched before it is the head
	ahead     bool            // it counts as speculative,
	launched  bool            // and occupies a handler,
	working   bool            // and has not finished
	followed  bool            // its reads and effects are told
	bypass    bool            // no row stands for it
	undecided bool            // it was not looked whether one does, before it is the head
	verdict   *forerun.Cached // why none does
	early     bool            // its row was checked before it was the head
	overtaken bool            // a record that its row reads was written during the check
	looked    bool            // it was looked whether there is another one that does the same,
	waited    bool            // and it is not to be looked again
	number    uint64          // under which others wait for it; 0: none do
	outdated  *slot           // the first of the slot, the programs around it and those before it whose action changed during its promotion
	dead      bool            // it was squashed or is over
	why       *forerun.Reason // it is speculative
	inTurn    *forerun.Reason // why it could not be launched before its turn
	crowded   bool            // the bound of speculative slots was reached
	surprised *forerun.Reason // why it could not be known before how it ends, of a program or a fork
	misled    bool            // the way was predicted that it goes, and that did not stand

	name    string // for people
	code    forerun.Digest
	input   json.RawMessage // as delivered
	traits  traits
	row     *forerun.Row // its row in the memo table, or nil
	novelty Novelty      // of the input
	guess   *guess       // the predicted result, or nil

	result  forerun.Result  // once it has finished
	failure *forerun.Result // that came while its promotion was under way
	late    *forerun.Result // that came then too, before the slot's request was done
	skipped bool
	walked  bool          // its thread went on behind it,
	next    *forerun.Stop // to here

	branches []*thread // of a fork; of a program the one
	awake    []*thread // of a fork: in which there may be something to do, in their order
	crowd    []*thread // of a fork: in which there is, once there is room
	joined   int       // branches of a fork that are over
	open     int       // a branch of a fork of which it may not be known how it ends

	column   column
	requests []*request       // not answered yet
	fetches  int              // that are under way
	callees  []*slot          // that have not returned: those that were called, then those that are expected
	merged   []*slot          // callees that returned to a speculative caller
	script   []forerun.Callee // callees that are expected
	conduct
}

// conduct is the record of an execution's calls and reads, for its row.
type conduct struct {
	calls      []forerun.Callee
	returns    int // of all calls, also those that are not kept
	asked      int // bytes of input of all calls
	below      []forerun.Callee
	reads      versions
	effects    bool
	inexact    bool            // its output may depend on something without a version, or on a failed call (rule R8)
	hosts      bool            // it read from hosts of read-hosts, and nothing says until when that holds
	remembers  bool            // its process may remember records that are not in reads
	unverified bool            // so may the process of an annotated callee
	until      time.Time       // its reads from hosts, and its callees' outputs, hold until then; zero: as long as its reads and code
	barred     *forerun.Reason // the first reason why no row of it may stand for an execution
}

type traits struct {
	cached, watched, open, stray bool
	until                        time.Time // of Resolved
}

// guess is an expected result, and why.
type guess struct {
	result forerun.Result
	why    forerun.ReasonCode
}

type kind byte

const (
	function kind = iota // or not entered yet
	program
	fork
)

type state byte

const (
	resolving state = iota
	checking        // whether a row stands for it
	waiting         // to be launched
	awaiting        // another one that does the same
	running
	finished
)

func (s state) String() string {
	return [...]string{"resolving", "checking", "waiting", "awaiting", "running", "finished"}[s]
}

// window has the slots that are not over, by their numbers: the root, and from the oldest other one on.
type window struct {
	root  *slot
	first SlotID // of rest
	rest  []*slot
	next  SlotID
}

// add gives a slot its number.
func (w *window) add(s *slot) {
	s.id = w.next
	w.next++
	if s.id == 0 {
		w.root, w.first = s, 1
		return
	}
	if w.rest == nil {
		w.rest = make([]*slot, 0, 8)
	}
	w.rest = append(w.rest, s)
}

func (w *window) at(id SlotID) *slot {
	switch i := id - w.first; {
	case id == 0:
		return w.root
	case id < w.first || int(i) >= len(w.rest):
		return nil
	default:
		return w.rest[i]
	}
}

func (w *window) remove(id SlotID) {
	if id == 0 {
		w.root = nil
		return
	}
	w.rest[id-w.first] = nil
	for len(w.rest) > 0 && w.rest[0] == nil {
		w.rest = w.rest[1:]
		w.first++
	}
}

// at returns a slot that is not over, or nil.
func (m *Machine) at(id SlotID) *slot { return m.slots.at(id) }

func (s *slot) parent() SlotID {
	if s.thread == nil {
		return None
	}
	return s.thread.program.id
}

func (s *slot) callerID() SlotID {
	if s.caller == nil {
		return None
	}
	return s.caller.id
}

// runAhead counts a slot as speculative until lead or forget.
func (m *Machine) runAhead(s *slot) {
	s.ahead = true
	m.ahead++
}

func (m *Machine) uncount(s *slot) {
	if s.ahead {
		s.ahead = false
		m.ahead--
	}
	if s.launched {
		s.launched = false
		m.launched--
	}
	m.retire(s)
}

// retire stops counting a slot among the speculative ones that have not finished.
func (m *Machine) retire(s *slot) {
	if s.working {
		s.working = false
		m.working--
	}
}

// lead makes a slot the head of its line.
func (m *Machine) lead(s *slot) {
	if !s.head {
		s.head, m.changed = true, true
		m.wake(s)
		m.uncount(s)
		if s.kind == fork {
			s.wakeAll()
		}
	}
}

// forget takes a slot off the books.
func (m *Machine) forget(s *slot) {
	m.changed = true
	m.uncount(s)
	if s.id != None && !s.dead {
		m.slots.remove(s.id)
		m.buffered -= s.column.size
		s.column.total = nil
	}
	s.dead = true
}

// waits returns the callee that a slot waits for, or nil. A speculative slot waits for one at a time.
func (s *slot) waits() *slot {
	if len(s.callees) > 0 && s.callees[0].attached {
		return s.callees[0]
	}
	return nil
}

// expected returns the callee that a slot is expected to call next and that runs already, or nil.
func (s *slot) expected() *slot {
	if i := s.called(); i < len(s.callees) {
		return s.callees[i]
	}
	return nil
}

// called is how many of the callees were called.
func (s *slot) called() int {
	if i := slices.IndexFunc(s.callees, func(c *slot) bool { return !c.attached }); i >= 0 {
		return i
	}
	return len(s.callees)
}

// named is how reasons name a slot.
func (s *slot) named() forerun.SlotName {
	if s.kind == fork {
		return forerun.SlotName{}
	}
	return forerun.SlotName{Number: int(s.id), Action: cmp.Or(s.name, s.stop.Action, "a function")}
}

// because is a reason that names a slot.
func (s *slot) because(code forerun.ReasonCode) *forerun.Reason {
	return &forerun.Reason{Code: code, Slot: s.named()}
}

// ofRecord is a reason that names a record.
func ofRecord(code forerun.ReasonCode, key forerun.Key) *forerun.Reason {
	return &forerun.Reason{Code: code, Record: forerun.ShownName(key.Name)}
}
