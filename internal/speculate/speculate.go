// Package speculate is the pure machine that decides what an invocation does next. Events go in, actions come out, in
// the manner of etcd's raft. It does no I/O, has no clock of its own and starts no goroutine. Its caller, the controller, tells it
// the events and carries out its actions, in order.
//
// The pipeline of an invocation is a tree of slots in program order. A slot is one execution of an action. A function is
// launched. A program (a sequence, a composition) is entered, and its actions become slots below it. A function that
// calls another gets the answer from a slot of its own invocation, tied to the caller.
//
// A row of the memo table may stand for an execution of an annotated function (Cache), whatever the mode. Then the machine also follows
// what these functions, and those that they call, read and do.
//
// With speculation off, the machine launches one slot at a time along each thread of control (a program, or a branch of
// a fork in it). Every slot is then a head. With speculation on, the machine also launches slots behind the heads. The
// memo table or the branch predictor says whether they will run, and on which input.
//
// Each slot has a column. The column keeps the writes of the slot, and its reads come from earlier columns or from the
// store. When all earlier slots are committed, one transaction checks the reads of the slot and applies its writes: the
// slot is promoted. A wrong slot is squashed, with all that follow it.
//
// The machine promises the contract of speculation, C1 to C5, in ARCHITECTURE.md. The rules R1 to R12 that comments name
// come from the model check of the design; testdata/rules shows each.
//
// Start reading at step.go. Threads and their walk are in thread.go, decisions about a new slot in begin.go, program
// order in order.go. wake.go chooses the branches of a wide fork that need a look. The data buffer is in buffer.go,
// find.go and column.go, calls in call.go, the promotion in promote.go, the squash in squash.go. Lessons are in
// learn.go, predictor.go and doubt.go.
package speculate

import (
	"encoding/json"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// SlotID names a slot of one invocation. 0 is the root, which the client invoked. A larger id was made later.
type SlotID int

// None stands for no slot.
const None SlotID = -1

// OpID numbers the requests that one slot makes of the platform (reads, writes, calls), so that replies find them.
type OpID int

// Mode says how much of an invocation may be speculative.
type Mode byte

// The modes of speculation.
const (
	Off      Mode = iota // one slot at a time
	Branches             // also steps behind a branch with a predicted outcome
	All                  // also steps behind an output that the memo table predicts
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
	// Find returns the row of an execution of code on an input, or nil.
	Find(code forerun.Digest, input json.RawMessage) *forerun.Row
}

// Image is the value of a record at one moment, of any type, or the fact that there is none. It is immutable.
type Image interface {
	// Absent reports whether the record does not exist.
	Absent() bool
	// Size is about how many bytes it takes.
	Size() int
}

// Records executes commands on images of records, outside of the store. It is pure.
type Records interface {
	// Execute runs a command on the records that it reads, in the order of its Reads (rule R1: they are as the column has them). It
	// returns the reply, and in the order of its Keys the records that it makes: nil for one that it leaves alone. Without writes, not
	// even an empty list, the command was refused and is not executed when the slot is promoted. The list reads is valid until it returns.
	// The reply may be Later.
	Execute(command any, reads []Image) (reply any, writes []Image)
	// Over tells whether the life of a record, as an image has it, has ended.
	Over(Image) bool
}

// Later is the reply to a command that is not executed speculatively because it takes long: the reason.
// Executing it would delay all other work of the invocation (C5).
type Later struct{ Why *forerun.Reason }

// Option sets how a machine speculates.
type Option func(*Machine)

// Speculate sets the mode, and the tables that predict. memo may be nil unless the mode is All.
func Speculate(mode Mode, memo Memo, predictor *Predictor, records Records) Option {
	return func(m *Machine) { m.mode, m.memo, m.predictor, m.records = mode, memo, predictor, records }
}

// Cache has rows of annotated functions stand for executions while they are current, in whatever mode. With bypass none does, and they are
// only learnt.
func Cache(memo Memo, bypass bool) Option {
	return func(m *Machine) { m.caches, m.memo, m.bypass = true, memo, bypass }
}

// Now is asked for the time when a row stands until a moment only. Without it no such row stands for an execution.
func Now(now func() time.Time) Option { return func(m *Machine) { m.now = now } }

// Rehearse has the action executed as if its turn never came. At its end Rehearsed tells what it did. Then it is squashed. Whatever would wait
// for its turn, or be executed again, ends it before. The mode must be All.
func Rehearse() Option { return func(m *Machine) { m.rehearses = true } }

// Depth sets how many slots may be speculative at once; DefaultDepth if not set. LoadChanged changes it.
func Depth(n int) Option { return func(m *Machine) { m.depth = n } }

// Band sets how close to one half the share of a branch's likeliest outcome may be for it to be left alone; DefaultBand if not set.
func Band(width float64) Option { return func(m *Machine) { m.likely = 0.5 + width } }
