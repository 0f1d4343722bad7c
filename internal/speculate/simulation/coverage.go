package simulation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/speculate"
)

// Phase is the state of a slot, as it can be seen from outside of the machine.
type Phase byte

// The phases.
const (
	Resolving Phase = iota
	Composed        // it is a program
	Checking
	Awaiting
	Waiting
	Ahead // running, not promoted
	Promoting
	Head
	FinishedPromoting
	Finished
	Over
	phases
)

func (p Phase) String() string {
	return [...]string{"resolving", "composed", "checking", "awaiting", "waiting", "ahead", "promoting", "head", "finished+promoting", "finished", "over"}[p]
}

// kind is a kind of event.
type kind struct {
	event string
	in    []Phase // in which it can come
	why   string  // not in others
}

// Coverage counts which events came in which state of a slot.
type Coverage [len(kinds)][phases]int

// kinds are the events, each with the states of its slot in which it can come, and why it cannot in the others.
var kinds = [...]kind{
	{"Resolved", []Phase{Resolving, Over}, "an action is found once"},
	{"Entered", []Phase{Resolving, Over}, "an action is found once"},
	{"Renewed", []Phase{Composed, Checking, Awaiting, Waiting, Ahead, Promoting, FinishedPromoting, Finished}, "only what was found, and is no head"},
	{"Output", []Phase{Ahead, Promoting, Head, Over}, "a function returns once, and was launched before"},
	{"Failed", []Phase{Resolving, Ahead, Promoting, Head, Over}, "what has returned does not fail, nor what waits for others"},
	{"Read", []Phase{Ahead, Promoting, Head, Over}, "only a running function asks"},
	{"Write", []Phase{Ahead, Promoting, Head, Over}, "only a running function asks"},
	{"Hold", []Phase{Ahead, Promoting, Head, Over}, "only a running function asks"},
	{"Call", []Phase{Ahead, Promoting, Head, Over}, "only a running function asks"},
	{"Withdrawn", []Phase{Ahead, Promoting, Head, Over}, "only a running function waits for what it asked for"},
	{"Fetched", []Phase{Ahead, Promoting, Head, FinishedPromoting, Finished, Over}, "only what had run has asked"},
	{"Done", []Phase{Head, Over}, "only a head reaches the store, and one that has finished is over at once"},
	{"Checked", []Phase{Checking, Over}, "the answer to Check"},
	{"Awaited", []Phase{Awaiting, Over}, "the answer to Await"},
	{"Promoted", []Phase{Promoting, FinishedPromoting, Over}, "the answer to Promote"},
	{"Conflict", []Phase{Promoting, FinishedPromoting, Over}, "the answer to Promote"},
	{"LoadChanged", allPhases, ""},
	{died, []Phase{Ahead, Promoting, Head}, "not told by then: what runs as the worker dies"},
	{"Cancelled", allPhases, ""},
}

// died is no event of the machine's: it hears of each handler later.
const died = "(died)"

var allPhases = []Phase{Resolving, Composed, Checking, Awaiting, Waiting, Ahead, Promoting, Head, FinishedPromoting, Finished, Over}

// cover counts an event.
func (r *run) cover(e speculate.Event, s *slot, known bool) {
	c := r.world.coverage
	if c == nil {
		return
	}
	row := c.row(kindOf(e))
	switch e := e.(type) {
	case speculate.Renewed:
		for _, id := range e.Slots {
			row[r.slots[id].phase()]++
		}
		return
	case speculate.LoadChanged, speculate.Cancelled:
		for _, s := range r.slots {
			row[s.phase()]++
		}
		return
	}
	if s == nil && !known {
		s = r.slots[slotOf(e)]
	}
	row[s.phase()]++
}

// row is where an event is counted.
func (c *Coverage) row(event string) *[phases]int {
	return &c[slices.IndexFunc(kinds[:], func(k kind) bool { return k.event == event })]
}

// Add adds what another counted.
func (c *Coverage) Add(o *Coverage) {
	for i := range o {
		for p, n := range o[i] {
			c[i][p] += n
		}
	}
}

// Table shows the counts, and which share of the pairs that can be are there. A dash is a pair that cannot be.
func (c *Coverage) Table() (table string, share float64) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s", "")
	for p := range phases {
		fmt.Fprintf(&b, "%19v", p)
	}
	covered, all := 0, 0
	for i, k := range kinds {
		fmt.Fprintf(&b, "\n%-12s", k.event)
		for p := range phases {
			if !slices.Contains(k.in, p) {
				fmt.Fprintf(&b, "%19s", "-")
				continue
			}
			all++
			covered += min(c[i][p], 1)
			fmt.Fprintf(&b, "%19d", c[i][p])
		}
		if k.why != "" {
			fmt.Fprintf(&b, "  (%s)", k.why)
		}
	}
	fmt.Fprintf(&b, "\ncoverage: %d of %d pairs of an event and a state of its slot", covered, all)
	return b.String(), float64(covered) / float64(all)
}

// Impossible are the pairs that came although they cannot be.
func (c *Coverage) Impossible() (pairs []string) {
	for i, k := range kinds {
		for p := range phases {
			if n := c[i][p]; n > 0 && !slices.Contains(k.in, p) {
				pairs = append(pairs, fmt.Sprintf("%s in %v, %d times", k.event, p, n))
			}
		}
	}
	return pairs
}

func kindOf(e speculate.Event) string { return reflect.TypeOf(e).Name() }

func slotOf(e speculate.Event) speculate.SlotID {
	switch e := e.(type) {
	case speculate.Output:
		return e.Slot
	case speculate.Failed:
		return e.Slot
	case speculate.Read:
		return e.Slot
	case speculate.Write:
		return e.Slot
	case speculate.Hold:
		return e.Slot
	case speculate.Withdrawn:
		return e.Slot
	case speculate.Fetched:
		return e.Slot
	case speculate.Done:
		return e.Slot
	case speculate.Call:
		return e.Slot
	}
	return speculate.None
}
