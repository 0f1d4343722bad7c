package speculate

import (
	"encoding/json"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Event is something that happened.
type Event interface{ event() }

// The events.
type (
	// Resolved: the action of a Resolve is a function.
	Resolved struct {
		Slot    SlotID
		Name    string          // name of the action in reasons; empty: the name that was invoked
		Code    forerun.Digest  // of the action
		Input   json.RawMessage // the delivered input: the slot's input with the action's parameters
		Cached  bool            // annotation pure-function, compute_cache or state_cache: a row may stand for an execution
		Watched bool            // it is to be followed, and its row is to be told
		Until   time.Time       // no row of this execution stands for another from then on; zero: it is not known before
		Alone   *forerun.Reason // if there is one, why it waits until it is the head
		InTurn  bool            // annotation non-speculative: no row stands for it before either
		Open    bool            // its row does not predict its output
		Stray   bool            // nor its calls
	}
	// Entered: the slot's action is a program. It replaces the function as the slot's content.
	Entered struct {
		Slot    SlotID
		Name    string // name of the action in reasons; empty: the name that was invoked
		Program forerun.Program
		Code    forerun.Digest  // of the action
		Input   json.RawMessage // the delivered input: the launched input with the action's parameters
	}
	// Renewed: the actions of these slots have changed since their resolution. Slots whose turn had come by then keep theirs.
	Renewed struct{ Slots []SlotID }
	// Output: the slot's function returned. Result.Status is Success or ApplicationError.
	Output struct {
		Slot      SlotID
		Result    forerun.Result
		Reach     forerun.Reach
		Remembers bool // its process may remember records that it shows no read of
	}
	// Failed: the slot could not be resolved or executed, or crashed, or took too long, or is to make way.
	Failed struct {
		Slot   SlotID
		Result forerun.Result
		Kind   forerun.SquashKind // why a speculative slot must run again; empty: Failed
		Why    *forerun.Reason    // none: it failed
	}
	// Read: the slot wants to read records.
	Read struct {
		Slot    SlotID
		Op      OpID
		Keys    []forerun.Key
		Command any    // for Records.Execute
		Inexact string // if not empty, a name of Command: its reply depends on more than the records' versions (the time)
	}
	// Write: the slot wants to write records.
	Write struct {
		Slot    SlotID
		Op      OpID
		Keys    []forerun.Key // that it writes
		Reads   []forerun.Key // on which its reply, or its writes, depend
		Command any           // for Records.Execute
		Size    int           // about how many bytes Command takes
		Inexact string        // if not empty, a name of Command: its reply, or its writes, depend on more than the versions of Reads
	}
	// Hold: the slot wants something that cannot be undone nor buffered: a command that reaches other records, or blocks, or
	// something of the platform. It waits until the slot is the head.
	Hold struct {
		Slot  SlotID
		Op    OpID
		Why   *forerun.Reason // it waits; none: it cannot be undone
		First bool            // the operation waits for other clients, and so may the slot: later requests of it are answered after Done
	}
	// Withdrawn: the slot no longer waits for the answer to its request, which may not have come.
	Withdrawn struct {
		Slot SlotID
		Op   OpID
	}
	// Fetched: the records of a Fetch, in the order of its Keys, all of one moment.
	Fetched struct {
		Slot    SlotID
		Op      OpID
		Records []Record
		Failed  bool // they cannot be copied: the operation waits until its slot is the head, which reads them itself
	}
	// Done: the operation that a Reply let the slot perform in the store has ended, or its request to the platform took
	// effect.
	Done struct {
		Slot    SlotID
		Op      OpID
		Reads   []forerun.Seen // the records that it read, at the versions it saw
		Exact   bool           // its reply depended on nothing else
		Command string         // by which it asked, if it did not
		Wrote   []forerun.Key
		Outside bool // it reached more than records
		Refused bool // it was a call that is not answered with its result: refused, or not waited for. Op says nothing then
	}
	// Call: the slot's function invoked an action and waits for its answer.
	Call struct {
		Slot   SlotID
		Op     OpID
		Action string
		Input  json.RawMessage
		Code   forerun.Digest // of the action
		Known  bool           // the activation that it is to be is known already, or may be before it ends: no slot that runs is it
		Bypass bool           // no row stands for it, nor for what it calls
	}
	// Checked: the versions of the records of a Check, in the order of its row, all of one moment.
	Checked struct {
		Slot     SlotID
		Versions []forerun.Version
		Current  bool // the actions below the row are unchanged
	}
	// Promoted: the transaction of a Promote was applied, and its writes have this version. If it is not known whether it was,
	// the invocation is Cancelled (rule R10).
	Promoted struct {
		Slots   []SlotID
		Version forerun.Version
	}
	// Conflict: the transaction of a Promote was refused, because these records had changed; without any, for another reason.
	Conflict struct {
		Slots []SlotID
		Keys  []forerun.Key
		Why   *forerun.Reason // that
	}
	// LoadChanged sets how many slots may be speculative at once (C5). Full: the server has no room, and no large column
	// may grow.
	LoadChanged struct {
		Depth int
		Full  bool
	}
	// Cancelled: the invocation is given up, and ends with this error.
	Cancelled struct{ Error string }
)

// Record is a record as the store has it.
type Record struct {
	Key     forerun.Key
	Image   Image
	Version forerun.Version
}

func (Resolved) event()    {}
func (Entered) event()     {}
func (Renewed) event()     {}
func (Output) event()      {}
func (Failed) event()      {}
func (Read) event()        {}
func (Write) event()       {}
func (Hold) event()        {}
func (Withdrawn) event()   {}
func (Fetched) event()     {}
func (Done) event()        {}
func (Call) event()        {}
func (Checked) event()     {}
func (Promoted) event()    {}
func (Conflict) event()    {}
func (LoadChanged) event() {}
func (Cancelled) event()   {}
