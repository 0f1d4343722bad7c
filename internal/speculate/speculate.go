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
// With speculation off the machine launches one slot at a time along each
// thread of control (a program, or a branch of a fork in it): every slot is a
// head. With it on, slots behind the heads are launched before it is known
// whether and on what they will run, because the memo table or the branch
// predictor says so. What they write is kept in a column each, what they read
// comes from the columns before theirs or from the store. When a slot's turn
// comes, its reads are checked and its writes applied in one transaction: it is
// promoted. What turns out to be wrong is squashed, with all that follows it.
//
// What the machine promises is the contract of speculation, C1 to C5, in
// ARCHITECTURE.md. The rules R1 to R12 that comments name are those of the
// model check that the design went through; testdata/rules shows each.
//
// The way in is step.go. A thread and its walk is in thread.go, what is decided
// of a new slot in begin.go, the order of slots in order.go, which branches of a
// wide fork are looked at in wake.go, the data buffer in buffer.go, find.go and
// column.go, calls in call.go, the promotion in promote.go, the squash in
// squash.go, what is learnt in learn.go, predictor.go and doubt.go.
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

// Mode says how far ahead an invocation may run.
type Mode byte

// The modes of speculation.
const (
	Off      Mode = iota // one slot at a time
	Branches             // ahead of branches whose outcome is predicted
	All                  // also ahead of outputs that the memo table predicts
)

// ParseMode reads a mode as annotations and headers spell it: off, branches or all.
func ParseMode(s string) (Mode, bool) {
	switch s {
	case "off":
		return Off, true
	case "branches":
		return Branches, true
	case "all":
		return All, true
	}
	return Off, false
}

func (m Mode) String() string { return [...]string{"off", "branches", "all"}[m] }

// Memo is the memo table of a tenant. It may be asked by many machines at once.
type Memo interface {
	// Find returns what is known of an execution of code on an input, or nil.
	Find(code forerun.Digest, input json.RawMessage) *forerun.Row
}

// Image is what a record holds at one moment, whatever its type, or that there is none. It is immutable.
type Image interface {
	// Absent tells whether there is no such record.
	Absent() bool
	// Size is about how many bytes it takes.
	Size() int
}

// Records executes commands on images of records, outside of the store. It is pure.
type Records interface {
	// Execute runs a command on the records that it reads, in the order of its Reads (rule R1: they are what the column says).
	// It returns the reply, and in the order of its Keys what it made of the records that it writes: nil where it left one alone.
	// Without writes, not even an empty list, it was refused and is not to be executed when the slot is promoted. The list reads is
	// valid until it returns. The reply may be Later.
	Execute(command any, reads []Image) (reply any, writes []Image)
	// Over tells whether the life of a record, as an image has it, has ended.
	Over(Image) bool
}

// Later is the reply to a command that is not executed ahead of its slot's turn, as it takes long, and says so: the whole invocation
// would wait for it, whatever else is due in that (C5).
type Later string

// Option sets how a machine speculates.
type Option func(*Machine)

// Speculate sets the mode, and the tables that predict. memo may be nil unless the mode is All.
func Speculate(mode Mode, memo Memo, predictor *Predictor, records Records) Option {
	return func(m *Machine) { m.mode, m.memo, m.predictor, m.records = mode, memo, predictor, records }
}

// Depth sets how many slots may be ahead of the heads at once; DefaultDepth if not set. LoadChanged changes it.
func Depth(n int) Option { return func(m *Machine) { m.depth = n } }

// Band sets how close to one half the share of a branch's likeliest outcome may be for it to be left alone; DefaultBand if not set.
func Band(width float64) Option { return func(m *Machine) { m.likely = 0.5 + width } }
