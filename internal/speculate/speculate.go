// Package speculate is the pure machine that decides what an invocation does
// next: events in, actions out, in the manner of etcd's raft. It does no I/O,
// has no clock and starts no goroutine; its caller, the controller, tells it
// what happened and carries out what it says, in order.
//
// The pipeline of an invocation is a tree of slots in program order. A slot is
// one execution of an action: of a function, which is launched, or of a
// program (a sequence, a composition), which is entered and whose actions
// become slots below it. A function that calls another gets its answer from a
// slot of its own, tied to the caller.
//
// What the machine promises is the contract of speculation, C1 to C5, in
// ARCHITECTURE.md. Today it launches one slot at a time along each thread of
// control (a program, or a branch of a fork in it), so every slot is a head and
// is launched non-speculatively.
package speculate

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// SlotID names a slot of one invocation: 0 is the root, what the client invoked; larger ones were made later.
type SlotID int

// None stands for no slot.
const None SlotID = -1

// OpID numbers the requests that one slot makes of the platform (reads, writes, calls), so that replies find them.
type OpID int

// Event is something that happened.
type Event interface{ event() }

// The events.
type (
	// Started: a handler runs the slot's function.
	Started struct{ Slot SlotID }
	// Entered: the slot's action is a program; it replaces the function as what the slot executes.
	Entered struct {
		Slot    SlotID
		Program forerun.Program
		Input   json.RawMessage // what was delivered: the launched input with the action's parameters
	}
	// Output: the slot's function returned. Result.Status is Success or ApplicationError.
	Output struct {
		Slot   SlotID
		Result forerun.Result
	}
	// Failed: the slot could not be executed, or crashed, or took too long.
	Failed struct {
		Slot   SlotID
		Result forerun.Result
	}
	// Read: the slot wants to read records.
	Read struct {
		Slot SlotID
		Op   OpID
		Keys []forerun.Key
	}
	// Write: the slot wants to write records.
	Write struct {
		Slot SlotID
		Op   OpID
		Keys []forerun.Key
	}
	// Call: the slot's function invoked an action and waits for its answer.
	Call struct {
		Slot   SlotID
		Op     OpID
		Action string
		Input  json.RawMessage
	}
	// Promoted: the transaction of a Promote was applied, and its writes have this version.
	Promoted struct {
		Slots   []SlotID
		Version forerun.Version
	}
	// Conflict: the transaction of a Promote was refused, because these records had changed.
	Conflict struct {
		Slot SlotID
		Keys []forerun.Key
	}
	// LoadChanged: so many slots may be speculative at once from now on (C5).
	LoadChanged struct{ Depth int }
	// Cancelled: the invocation is given up.
	Cancelled struct{ Reason string }
)

// Action is something that the controller is to do.
type Action interface{ action() }

// The actions.
type (
	// Launch: execute an action in a new slot.
	Launch struct {
		Slot        SlotID
		Parent      SlotID // the slot whose program it is part of, or None
		Caller      SlotID // the slot whose function called it, or None
		Op          OpID   // that call
		Action      string
		Self        bool              // in place of Action: the parent's own action, as a function
		Function    *forerun.Function // if not nil, in place of Action: code that the parent's program brings along
		Detach      forerun.Program   // if not nil: begin this as an invocation of its own, and tell its id as the slot's output
		Input       json.RawMessage
		Speculative bool
	}
	// Skip: take this output for the slot without executing it.
	Skip struct {
		Slot   SlotID
		Result forerun.Result
	}
	// Reply: answer a slot's Read or Write (Direct: ask the store itself) or Call (with Result).
	Reply struct {
		Slot   SlotID
		Op     OpID
		Direct bool
		Result forerun.Result
	}
	// Stall: leave a slot's Read unanswered until a Reply.
	Stall struct {
		Slot SlotID
		Op   OpID
	}
	// Promote: validate what the slots read and apply what they wrote, in one transaction; tell Promoted or Conflict.
	Promote struct{ Slots []SlotID }
	// Commit: the slot is final: its record may be shown.
	Commit struct {
		Slot   SlotID
		Result forerun.Result
	}
	// Squash: kill the slot and forget it.
	Squash struct {
		Slot  SlotID
		Cause string
	}
	// Learn: the predictor and the memo table may learn from the committed slot.
	Learn struct{ Slot SlotID }
	// Finish: the invocation is over.
	Finish struct{ Result forerun.Result }
)

func (Started) event()     {}
func (Entered) event()     {}
func (Output) event()      {}
func (Failed) event()      {}
func (Read) event()        {}
func (Write) event()       {}
func (Call) event()        {}
func (Promoted) event()    {}
func (Conflict) event()    {}
func (LoadChanged) event() {}
func (Cancelled) event()   {}

func (Launch) action()  {}
func (Skip) action()    {}
func (Reply) action()   {}
func (Stall) action()   {}
func (Promote) action() {}
func (Commit) action()  {}
func (Squash) action()  {}
func (Learn) action()   {}
func (Finish) action()  {}
