package speculate

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Equal executions of an annotated function wait for the first. They have the same tenant, code and input. The first is a
// head: nothing waits for what is speculative. When the first one is committed, each of the others looks whether its row is current, and is executed if not.
// A first that has an effect, or fails, lets the others go on at once.
//
// The caller numbers the executions that others may wait for. One that is a part of such executions waits only for those with a lower number
// than all of these. So no two wait for each other.

type (
	// Await: execute a slot at once, or wait for another one that does the same; tell Awaited.
	Await struct {
		Slot   SlotID
		Code   forerun.Digest
		Input  json.RawMessage
		Before uint64 // wait only for one with a lower number; 0: for any
		First  bool   // others may wait for this one, if there is no other
	}
	// Yield: others are not to wait for this slot any more.
	Yield struct{ Slot SlotID }
	// Awaited is the answer to an Await.
	Awaited struct {
		Slot   SlotID
		Number uint64 // others may wait for it under this number; 0: none may
		Waited bool   // it has waited for another one,
		Look   bool   // which is committed, and has left a row
	}
)

func (Await) action()  {}
func (Yield) action()  {}
func (Awaited) event() {}

// begin launches a slot, unless it may wait for another one that does the same.
func (m *Machine) begin(s *slot) {
	if !s.mayWait() {
		m.launch(s)
		return
	}
	s.state, s.looked = awaiting, true
	a := Await{Slot: s.id, Code: s.code, Input: s.input, First: s.head}
	for x := s.within(); x != nil; x = x.within() {
		if x.number > 0 && (a.Before == 0 || x.number < a.Before) {
			a.Before = x.number
		}
	}
	m.do(a)
}

// mayWait reports whether a row of another execution could stand for a slot that none stands for now.
func (s *slot) mayWait() bool {
	switch v := s.verdict; {
	case v == nil || s.waited || s.looked && !s.head:
		return false
	case v.Outcome == forerun.CacheMiss:
		return s.row == nil
	default:
		return v.Outcome == forerun.CacheStale
	}
}

// awaited goes on with a slot that asked whether there is another one to wait for.
func (m *Machine) awaited(e Awaited) {
	s := m.hears(e.Slot)
	if s == nil || s.state != awaiting {
		return
	}
	s.state, s.number, m.changed = waiting, e.Number, true
	s.waited = s.waited || s.head || e.Waited
	if e.Look {
		m.recall(s)
		m.shortcut(s)
	}
}

// yield ends all waiting for a slot that did what no row may stand for, and for the slots that it is a part of.
func (m *Machine) yield(s *slot) {
	if s.barred == nil {
		return
	}
	for x := s; x != nil; x = x.within() {
		if x.number > 0 {
			x.number = 0
			m.do(Yield{Slot: x.id})
		}
	}
}
