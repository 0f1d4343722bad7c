// Package waterfall draws the activations of one invocation below each other,
// each where it ran, as text or as SVG.
//
// It promises that it claims no gain that the server's estimate does not show, and that no name or reason can bring control
// characters to a terminal or markup into a picture.
package waterfall

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Bar is one slot. Its moments are microseconds since 1970; 0: it did not come.
type Bar struct {
	Name        string `json:"action"`
	ID          string `json:"activationId,omitempty"` // of a squashed slot there is none
	Row         int    `json:"row,omitempty"`          // from 1; " #3" in a reason is row 3
	Slot        int    `json:"slot"`                   // what " #3" is in the reasons that New is given
	Inline      int    `json:"inline,omitempty"`       // which of its composition's own functions it is, from 1; 0: an action
	Depth       int    `json:"depth"`                  // programs and callers around it
	Program     bool   `json:"program,omitempty"`      // it has no function
	Queued      int64  `json:"queued"`
	Launched    int64  `json:"launched,omitempty"`
	Finished    int64  `json:"finished,omitempty"`
	Promoted    int64  `json:"promoted,omitempty"`
	Committed   int64  `json:"committed,omitempty"`
	Squashed    int64  `json:"squashed,omitempty"`
	Held        int64  `json:"held,omitempty"`    // microseconds
	Stalled     string `json:"stalled,omitempty"` // why it was held
	Speculative bool   `json:"speculative"`       // it was asked for ahead of its turn
	Skipped     bool   `json:"skipped,omitempty"`
	Predicted   string `json:"predicted,omitempty"`
	InTurn      string `json:"inTurn,omitempty"` // why it was neither
	Kind        string `json:"kind,omitempty"`   // of the squash
	Cause       string `json:"cause,omitempty"`
	Waited      int64  `json:"waited,omitempty"` // microseconds that it waited for what it called
}

// Trace is an invocation. Times are in microseconds.
type Trace struct {
	Begin   int64 `json:"begin"` // since 1970
	Wall    int64 `json:"wall"`
	InOrder int64 `json:"inOrder,omitempty"` // what the functions take in order, by the server's estimate; 0: there is none
	Wasted  int64 `json:"wasted"`            // in which squashed functions ran
	Bars    []Bar `json:"slots"`

	cites bool // a reason names a row
}

// New makes the trace of slots, the root first. inOrder is an estimate of what the functions take in order; 0: there is none.
func New(bars []Bar, inOrder int64) *Trace {
	t := &Trace{Begin: bars[0].Queued, InOrder: inOrder, Bars: bars}
	last := bars[0].end()
	for i := range bars {
		b := &bars[i]
		if b.Queued > 0 {
			t.Begin = min(t.Begin, b.Queued)
		}
		if b.isSquashed() {
			t.Wasted += b.ran()
		}
	}
	t.Wall = max(0, last-t.Begin)
	t.cite()
	return t
}

// isSquashed tells whether nothing is left of a slot; a head that was given up has a record.
func (b *Bar) isSquashed() bool { return b.Squashed > 0 && b.ID == "" }

// end is the last moment of a slot.
func (b *Bar) end() int64 { return max(b.Queued, b.Launched, b.Finished, b.Committed, b.Squashed) }

// stop is when the function ended, or was.
func (b *Bar) stop() int64 {
	if b.Finished > 0 {
		return b.Finished
	}
	return b.end()
}

// ran is for how long a function ran.
func (b *Bar) ran() int64 {
	if b.Launched == 0 || b.Skipped || b.Program {
		return 0
	}
	return max(0, b.stop()-b.Launched)
}

// ranAhead tells whether a function that was asked for ahead began before its turn.
func (b *Bar) ranAhead() bool {
	return b.Speculative && b.Launched > 0 && (b.Promoted == 0 || b.Launched < b.Promoted)
}

// What became of functions that were launched speculatively and got no sandbox in time.
const (
	late    = "speculative, began in turn"
	never   = "speculative, never began"
	unbegun = "squashed before it began"
)

// state is what became of a slot.
func (b *Bar) state() string {
	switch {
	case b.isSquashed() && b.Launched == 0:
		return unbegun
	case b.isSquashed():
		return "squashed"
	case b.Squashed > 0:
		return "given up"
	case b.Skipped:
		return "skipped"
	case b.ranAhead():
		return "speculative"
	case b.Speculative && b.Launched == 0: // its code could not be loaded
		return never
	case b.Speculative:
		return late
	case b.InTurn != "":
		return "in turn"
	}
	return ""
}

// why is what is to be told of a slot: the reason for what became of it.
func (b *Bar) why() string {
	switch {
	case b.Squashed > 0:
		return plain(b.Cause)
	case b.Skipped || b.Speculative:
		return plain(b.Predicted)
	}
	return plain(b.InTurn)
}

// mostLevels are those that names are indented for: what is deeper has room for its name, too.
const mostLevels = 8

// level is how far the name of a slot is indented.
func (b *Bar) level() int { return min(b.Depth, mostLevels) }

// title is a slot's name. Functions of a composition have but its name, and numbers.
func (b *Bar) title() string {
	if b.Inline > 0 {
		return fmt.Sprintf("%s (inline %d)", plain(b.Name), b.Inline)
	}
	return plain(b.Name)
}

// notes are what is to be told of a slot: what became of it, how long it was held, and the reasons.
func (b *Bar) notes() string {
	s := b.state()
	if held := b.held(); held != "" {
		s = strings.TrimPrefix(s+", "+held, ", ")
	}
	if why := b.why(); why != "" {
		s += ": " + why
	}
	return s
}

// held is for how long what a slot asked for waited, and why if it was not for its records alone.
func (b *Bar) held() string {
	switch {
	case b.Held == 0:
		return ""
	case b.Stalled == "":
		return "held for " + length(b.Held)
	}
	return "held for " + length(b.Held) + " (" + plain(b.Stalled) + ")"
}

// took is how long a function ran, or a workflow lasted.
func (b *Bar) took() int64 {
	if b.Program {
		return b.end() - b.Queued
	}
	return b.ran()
}

// summary is the end of a trace: its times, and how many functions ran ahead.
func (t *Trace) summary() (times, counts string) {
	n := make(map[string]int)
	for i := range t.Bars {
		n[t.Bars[i].state()]++
	}
	times = length(t.Wall) + " from request to end"
	if n["speculative"]+n["skipped"] > 0 {
		times += t.compared()
	}
	times += fmt.Sprintf("; %s wasted.", length(t.Wasted))
	counts = fmt.Sprintf("%d speculative and right, %d squashed, %d skipped", n["speculative"], n["squashed"], n["skipped"])
	for _, state := range []string{late, never, unbegun} {
		if n[state] > 0 {
			counts += fmt.Sprintf("; %d %s", n[state], state)
		}
	}
	return times, counts + "."
}

// compared says what is known of how long the invocation takes in order. The estimate is without what lies between the functions: so an
// invocation that took less was faster.
func (t *Trace) compared() string {
	switch {
	case t.InOrder == 0:
		return ""
	case t.InOrder <= t.Wall:
		return fmt.Sprintf("; in order its functions take about %s: it was not faster", length(t.InOrder))
	}
	return fmt.Sprintf("; in order its functions take about %s: %.1fx faster", length(t.InOrder), float64(t.InOrder)/float64(max(1, t.Wall)))
}

// length writes microseconds for people.
func length(us int64) string {
	d := time.Duration(us) * time.Microsecond
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// plain is a text without what is not to be seen.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
