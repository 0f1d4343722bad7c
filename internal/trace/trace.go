// Package trace says what happened in an invocation, and why: for the terminal, pictures and the API.
//
// The machine and the controller give reasons as codes (forerun.Reason). Only this package makes sentences of them. It adds up what
// the records of an invocation say (New): a program that shows a Trace computes nothing of its own.
//
// It promises that it claims no gain that the server's estimate does not show.
package trace

import (
	"fmt"

	"forerun.dev/forerun/internal/forerun"
)

// Slot is one line of a Trace.
type Slot struct {
	Name     string `json:"action"`
	ID       string `json:"activationId,omitempty"` // of a squashed slot there is none
	Row      int    `json:"row,omitempty"`          // from 1; " #3" in a sentence is row 3
	Depth    int    `json:"depth"`                  // programs and callers around it
	Program  bool   `json:"program,omitempty"`      // it has no function
	State    State  `json:"state,omitempty"`
	Critical int64  `json:"critical,omitempty"` // microseconds of the Wall that it made: they add up to that
	Line
	Cache *Cache `json:"cache,omitempty"` // of an annotated action
	Title string `json:"title"`           // Name, or of a function that has but a number also that
	Note  string `json:"note,omitempty"`  // what became of it, how long it was held, and why
	Bars  []Bar  `json:"bars"`            // of its line in a drawing
}

// State is what became of a slot.
type State string

// The states. A slot that just ran has none.
const (
	Speculative State = "speculative" // it began before its turn, and was right
	Late        State = "late"        // it was asked for before its turn, and began in it
	Never       State = "never"       // it was asked for before its turn, and its code could not be loaded
	InTurn      State = "in_turn"     // there is a reason why it was not speculative
	Skipped     State = "skipped"     // it was not executed
	Squashed    State = "squashed"    // it ran and was wrong
	Unbegun     State = "unbegun"     // it was squashed before it began
	GivenUp     State = "given_up"    // the invocation was stopped
)

// Trace is an invocation. Times are in microseconds.
type Trace struct {
	Begin   int64  `json:"begin"` // since 1970
	Wall    int64  `json:"wall"`
	InOrder int64  `json:"inOrder,omitempty"` // what the functions take in order, by the server's estimate; 0: there is none
	Saved   int64  `json:"saved,omitempty"`   // by how much Wall is less than that, if anything was speculative or skipped
	Wasted  int64  `json:"wasted"`            // in which squashed functions ran
	Cites   bool   `json:"cites,omitempty"`   // a sentence names a row
	Slots   []Slot `json:"slots"`
	Times   string `json:"times"`  // a sentence of the times above
	Counts  string `json:"counts"` // a sentence: how many functions were speculative
}

// New makes the trace of slots in program order, the root first: each behind the slot that it is in. inOrder is an estimate of what the
// functions take in order; 0: there is none.
func New(slots []Slot, inOrder int64) *Trace {
	t := &Trace{Begin: slots[0].Queued, InOrder: inOrder, Slots: slots}
	end, early := slots[0].End(), false
	for i := range slots {
		s := &slots[i]
		if s.Queued > 0 {
			t.Begin = min(t.Begin, s.Queued)
		}
		if s.IsSquashed() {
			t.Wasted += s.ran()
		}
		s.State = s.state()
		early = early || s.State == Speculative || s.State == Skipped
	}
	if t.Wall = max(0, end-t.Begin); early {
		t.Saved = max(0, inOrder-t.Wall)
	}
	t.cite()
	t.findCritical()
	for i := range t.Slots {
		s := &t.Slots[i]
		s.Title, s.Note, s.Bars = s.title(), s.note(), s.bars()
	}
	t.Times, t.Counts = t.summary()
	return t
}

// cite numbers the rows and has the sentences name rows, not slots. A slot without a row is named without a number.
func (t *Trace) cite() {
	rows := make(map[int]int)
	for i := len(t.Slots) - 1; i >= 0; i-- {
		t.Slots[i].Row = i + 1
		rows[t.Slots[i].Slot] = i + 1 // the first one has 0, and so has what was recorded before there were numbers
	}
	number := func(slot int) string {
		if rows[slot] == 0 {
			return ""
		}
		t.Cites = true
		return fmt.Sprintf(" #%d", rows[slot])
	}
	for i := range t.Slots {
		s := &t.Slots[i]
		s.Texts = Texts{
			cited(s.Reasons.Predicted, s.Texts.Predicted, number), cited(s.Reasons.InTurn, s.Texts.InTurn, number),
			cited(s.Reasons.Stalled, s.Texts.Stalled, number), cited(s.Reasons.Cause, s.Texts.Cause, number),
		}
	}
}

// cited is the sentence of a reason, or what an older server gives in its place.
func cited(r *forerun.Reason, text string, number func(slot int) string) string {
	if r == nil {
		return renumbered(text, number)
	}
	return sentence(r, number)
}

// IsSquashed tells whether nothing is left of a slot; a head that was given up has a record.
func (s *Slot) IsSquashed() bool { return s.Squashed > 0 && s.ID == "" }

// End is the last moment of a slot.
func (s *Slot) End() int64 {
	return max(s.Queued, s.Launched, s.Finished, s.Committed, s.Squashed)
}

// Stop is when the function ended, or was stopped.
func (s *Slot) Stop() int64 {
	if s.Finished > 0 {
		return s.Finished
	}
	return s.End()
}

// ran is for how long a function ran.
func (s *Slot) ran() int64 {
	if s.Launched == 0 || s.Skipped || s.Program {
		return 0
	}
	return max(0, s.Stop()-s.Launched)
}

// Took is how long a function ran, or a workflow lasted.
func (s *Slot) Took() int64 {
	if s.Program {
		return s.End() - s.Queued
	}
	return s.ran()
}

// RanAhead tells whether a function that was asked for before its turn began before it.
func (s *Slot) RanAhead() bool {
	return s.Speculative && s.Launched > 0 && (s.Promoted == 0 || s.Launched < s.Promoted)
}

func (s *Slot) state() State {
	switch {
	case s.IsSquashed() && s.Launched == 0:
		return Unbegun
	case s.IsSquashed():
		return Squashed
	case s.Squashed > 0:
		return GivenUp
	case s.Skipped:
		return Skipped
	case s.RanAhead():
		return Speculative
	case s.Speculative && s.Launched == 0:
		return Never
	case s.Speculative:
		return Late
	case s.InTurn != "" || s.Reasons.InTurn != nil:
		return InTurn
	}
	return ""
}
