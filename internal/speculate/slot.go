package speculate

import "forerun.dev/forerun/internal/forerun"

// slot is one execution of an action in the pipeline.
type slot struct {
	id      SlotID
	parent  SlotID // the slot whose program it is part of, or None
	caller  SlotID // the slot whose function called it, or None
	op      OpID   // that call
	state   slotState
	thread  *thread         // of its parent's program, if it has a parent
	program forerun.Program // if it executes one
	calls   int             // callees that it waits for
}

// thread is one line of control through the program of a slot: its own, or a branch of a fork.
type thread struct {
	slot    SlotID
	cursor  forerun.Cursor // where it waits
	fork    *thread        // that it is a branch of, or nil
	branch  int            // which
	waiting int            // branches that have not ended
	results []forerun.Result
}

// abandoned stands for the caller of a slot whose caller ended without waiting for it.
const abandoned SlotID = -2

type slotState int

const (
	launched slotState = iota
	running
)

// at returns a slot that is not over, or nil.
func (m *Machine) at(id SlotID) *slot {
	if id < 0 || int(id) >= len(m.slots) {
		return nil
	}
	return m.slots[id]
}

// abandonCallees lets go of callees whose caller ended without waiting for them (a thread of it had called, a time
// limit had passed). They have begun and go on to their end, as they would if any other client had gone away.
func (m *Machine) abandonCallees(s *slot) {
	if s.calls == 0 {
		return
	}
	for _, callee := range m.slots {
		if callee != nil && callee.caller == s.id {
			callee.caller = abandoned
		}
	}
}

// cancel squashes whatever runs and ends the invocation.
func (m *Machine) cancel(reason string) {
	for id := len(m.slots) - 1; id >= 0; id-- { // callees and components before those that wait for them
		if m.slots[id] != nil {
			m.slots[id] = nil
			m.do(Squash{Slot: SlotID(id), Cause: reason})
		}
	}
	if !m.finished {
		m.finish(forerun.Failure(forerun.InternalError, reason))
	}
}
