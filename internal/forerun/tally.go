package forerun

import (
	"fmt"
	"time"
)

// Tally is how far an invocation ran ahead.
type Tally struct {
	Early    int                // slots whose functions began ahead of their turn
	Used     int                // and were right
	Squashed int                // and were not
	Skipped  int                // slots that were not launched, since their output was known
	Depth    int                // the most that were ahead at one time
	Slots    []SquashedSlot     // also those that had not begun
	Kinds    map[SquashKind]int `json:",omitempty"` // how many of Squashed were so
	InOrder  time.Duration      `json:",omitempty"` // about how long the functions take in order, by what each took by itself; 0: that is not known
	Held     time.Duration      `json:",omitempty"` // for how long what squashed slots asked for waited
}

// MaxSquashedSlots bounds Tally.Slots.
const MaxSquashedSlots = 256

// SquashedSlot is what is left of a slot that was asked for ahead and was wrong, begun or not: no input, output or logs (C4).
type SquashedSlot struct {
	Action   Name
	Timeline Timeline
}

// SquashKind is why a slot was squashed, in one word.
type SquashKind string

// The kinds.
const (
	WrongInput SquashKind = "prediction" // what goes before it gave something else than expected
	WrongCall  SquashKind = "call"       // its caller made no such call
	StaleRead  SquashKind = "stale_read" // a slot before it wrote what it had read
	Overtaken  SquashKind = "conflict"   // others wrote what it had read
	Updated    SquashKind = "update"     // its action was updated or deleted meanwhile
	Failed     SquashKind = "failure"    // it failed, which counts only as a head
	Overdue    SquashKind = "time_limit" // it was ahead for half of its time limit
	MadeWay    SquashKind = "made_way"   // others needed its room, whose turn it was
	GivenUp    SquashKind = "cancelled"  // the invocation was given up
)

// SquashKinds lists them.
func SquashKinds() []SquashKind {
	return []SquashKind{WrongInput, WrongCall, StaleRead, Overtaken, Updated, Failed, Overdue, MadeWay, GivenUp}
}

// Squash counts a slot that began ahead and was wrong.
func (t *Tally) Squash(kind SquashKind) {
	t.Squashed++
	if t.Kinds == nil {
		t.Kinds = map[SquashKind]int{}
	}
	t.Kinds[kind]++
}

// Ahead tells whether anything was done ahead, or skipped, or was to be.
func (t *Tally) Ahead() bool {
	return t.Early > 0 || t.Used > 0 || t.Squashed > 0 || t.Skipped > 0 || len(t.Slots) > 0
}

// String tells the tally as the answer's header does.
func (t *Tally) String() string {
	return fmt.Sprintf("early=%d, used=%d, squashed=%d, skipped=%d", t.Early, t.Used, t.Squashed, t.Skipped)
}
