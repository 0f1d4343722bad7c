package speculate

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Action is something that the controller is to do.
type Action interface{ action() }

// The actions.
type (
	// Resolve: find the action of a new slot; tell Resolved, Entered or Failed. With speculation and cache off, Launch is that, too.
	Resolve struct {
		Slot     SlotID
		Parent   SlotID // the slot of the program that contains it, or None
		Caller   SlotID // the slot of its caller, real or predicted, or None
		Op       OpID   // that call; 0 if it is not made yet: Attach tells
		Action   string
		Self     bool              // in place of Action: the parent's own action, as a function
		Function *forerun.Function // if not nil, in place of Action: code that the parent's program brings along
		Input    json.RawMessage
	}
	// Launch: execute an action in a slot: in a new one with speculation off, else in one that was Resolved.
	Launch struct {
		Slot        SlotID
		Parent      SlotID // the slot of the program that contains it, or None
		Caller      SlotID // the slot of its caller, or None
		Op          OpID   // that call
		Action      string
		Self        bool              // in place of Action: the parent's own action, as a function
		Function    *forerun.Function // if not nil, in place of Action: code that the parent's program brings along
		Detach      forerun.Program   // if not nil: begin this as an invocation of its own, and tell its id as the slot's output
		Input       json.RawMessage
		Speculative bool            // hold its effects until it is promoted
		Why         *forerun.Reason // it is speculative, or was not launched before its turn
		Followed    bool            // tell its reads and effects
		Cached      *forerun.Cached // why no row stands for it; nil: none may
	}
	// Check asks for the current versions of the records that a row read, and whether the actions below it are unchanged. The answer is
	// Checked.
	Check struct {
		Slot SlotID
		Row  *forerun.Row
	}
	// Skip: take this output for the slot without executing it.
	Skip struct {
		Slot   SlotID
		Result forerun.Result
		Row    *forerun.Row // that stands for the execution
		Why    *forerun.Reason
	}
	// Attach: a call has been made for which a slot runs already.
	Attach struct {
		Slot   SlotID
		Caller SlotID
		Op     OpID
	}
	// Fetch: read records from the store for an operation of a slot; tell Fetched, in any case.
	Fetch struct {
		Slot SlotID
		Op   OpID
		Keys []forerun.Key
	}
	// Reply: answer a slot's Read, Write or Hold. With Direct, do it in the store itself, and tell Done. Otherwise answer with Data, which
	// Records.Execute gave. Or answer a Call with Result.
	Reply struct {
		Slot   SlotID
		Op     OpID
		Direct bool
		Data   any
		Result forerun.Result
	}
	// Stall: leave an operation of a slot unanswered until a Reply.
	Stall struct {
		Slot SlotID
		Op   OpID
		Why  *forerun.Reason
	}
	// Promote: validate the slots' reads and apply their writes in one transaction. Let them go on as heads and tell Promoted, or tell
	// Conflict. Without Expect and Commands the store is not asked, the slots go on, and nothing is told.
	Promote struct {
		Slots    []SlotID
		Past     []SlotID // programs that wrap the slots without a function between them: they become heads together with the slots
		Expect   []forerun.Seen
		Commands []any // of Write events, to be executed in this order
	}
	// Commit: the slot is final: its record may be shown.
	Commit struct {
		Slot   SlotID
		Result forerun.Result
	}
	// Squash: kill the slot and forget it.
	Squash struct {
		Slot  SlotID
		Kind  forerun.SquashKind
		Cause *forerun.Reason
	}
	// Learn: the predictor and the memo table may learn from the committed slot.
	Learn struct {
		Slot   SlotID
		Lesson *Lesson // nil: there is nothing
	}
	// Blame: the predictor may learn that a consumer read a record too early. The producer wrote it later, if the invocation has one;
	// otherwise another invocation or client did.
	Blame struct {
		Producer, Consumer forerun.Digest
		Key                forerun.Key
		Others             bool
	}
	// Rehearsed: the row of a rehearsal, which was squashed. Without a row it has shown nothing.
	Rehearsed struct {
		Row       *forerun.Row
		Disturbed bool            // without a row: others needed its room, wrote what it had read, or updated its action
		Why       *forerun.Reason // without a row: why there is none, if that is known
	}
	// Finish: the invocation is over.
	Finish struct{ Result forerun.Result }
)

func (Resolve) action()   {}
func (Launch) action()    {}
func (Check) action()     {}
func (Skip) action()      {}
func (Attach) action()    {}
func (Fetch) action()     {}
func (Reply) action()     {}
func (Stall) action()     {}
func (Promote) action()   {}
func (Commit) action()    {}
func (Squash) action()    {}
func (Learn) action()     {}
func (Blame) action()     {}
func (Rehearsed) action() {}
func (Finish) action()    {}
