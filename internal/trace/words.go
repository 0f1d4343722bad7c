package trace

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"forerun.dev/forerun/internal/forerun"
)

// words are what a person reads of states.
var words = map[State]string{
	Speculative: "speculative", Late: "speculative, began in turn", Never: "speculative, never began", InTurn: "in turn",
	Skipped: "skipped", Squashed: "squashed", Unbegun: "squashed before it began", GivenUp: "given up",
}

// title is a slot's name. Functions of a composition have but its name, and numbers.
func (s *Slot) title() string {
	if s.Inline > 0 {
		return fmt.Sprintf("%s (inline %d)", plain(s.Name), s.Inline)
	}
	return plain(s.Name)
}

// note is what is to be told of a slot: what became of it, how long it was held, and the reasons.
func (s *Slot) note() string {
	text := words[s.State]
	if held := s.heldFor(); held != "" {
		text = strings.TrimPrefix(text+", "+held, ", ")
	}
	if why := s.why(); why != "" {
		text += ": " + why
	}
	if cache := s.cacheNote(); cache != "" {
		text = strings.TrimPrefix(text+"; "+cache, "; ")
	}
	return text
}

// cacheNote is which way an annotated action went.
func (s *Slot) cacheNote() string {
	switch c := s.Cache; {
	case c == nil:
		return ""
	case c.Outcome == forerun.CacheHit:
		return fmt.Sprintf("cache hit on %s, %d records checked in %s", plain(string(c.Of)), c.Checked, Length(c.Took))
	default:
		return plain(fmt.Sprintf("cache %s: %s", c.Outcome, c.Why))
	}
}

// why is the reason for what became of a slot.
func (s *Slot) why() string {
	switch {
	case s.Squashed > 0:
		return plain(s.Cause)
	case s.Skipped || s.Speculative:
		return plain(s.Predicted)
	}
	return plain(s.InTurn)
}

// heldFor is for how long what a slot asked for waited, and why if it was not for its records alone.
func (s *Slot) heldFor() string {
	switch {
	case s.Held == 0:
		return ""
	case s.Stalled == "":
		return "held for " + Length(s.Held)
	}
	return "held for " + Length(s.Held) + " (" + plain(s.Stalled) + ")"
}

// summary is the end of a trace: its times, and how many functions were speculative.
func (t *Trace) summary() (times, counts string) {
	n := make(map[State]int)
	for i := range t.Slots {
		n[t.Slots[i].State]++
	}
	times = Length(t.Wall) + " from request to end"
	if n[Speculative]+n[Skipped] > 0 {
		times += t.compared()
	}
	times += fmt.Sprintf("; %s wasted.", Length(t.Wasted))
	counts = fmt.Sprintf("%d speculative and right, %d squashed, %d skipped", n[Speculative], n[Squashed], n[Skipped])
	for _, state := range []State{Late, Never, Unbegun} {
		if n[state] > 0 {
			counts += fmt.Sprintf("; %d %s", n[state], words[state])
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
	case t.Saved == 0:
		return fmt.Sprintf("; in order its functions take about %s: it was not faster", Length(t.InOrder))
	}
	return fmt.Sprintf("; in order its functions take about %s: %.1fx faster", Length(t.InOrder), float64(t.InOrder)/float64(max(1, t.Wall)))
}

// Length writes microseconds for people.
func Length(us int64) string {
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
