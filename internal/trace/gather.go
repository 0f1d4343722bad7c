package trace

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// maxGathered bounds the records of a trace: an invocation has about 10,000 at most.
const maxGathered = 20_000

// Gather makes the trace of an activation out of the records of it and of all that it ran. find reads a record; its errors end the search.
// Other errors are forerun.NotFound if there is no trace of the activation, and forerun.TooLarge if it ran too much.
func Gather(id forerun.ActivationID, find func(forerun.ActivationID) (*forerun.Activation, error)) (*Trace, error) {
	g := gatherer{find: find}
	if err := g.add(id, 0); err != nil {
		return nil, err
	}
	return New(append(g.slots[:1:1], byQueue(g.slots[1:], g.squashed)...), g.inOrder), nil
}

// gatherer collects the slots of an invocation, in program order.
type gatherer struct {
	find     func(forerun.ActivationID) (*forerun.Activation, error)
	slots    []Slot
	squashed []Slot
	inOrder  int64 // as the record at the top says
}

// add adds a record and those below it.
func (g *gatherer) add(id forerun.ActivationID, depth int) error {
	if len(g.slots) >= maxGathered {
		return forerun.Errorf(forerun.TooLarge, string(id), "The invocation has more than %d activations: trace one of its parts.", maxGathered)
	}
	a, err := g.find(id)
	switch {
	case err != nil:
		return err
	case a.Timeline.Queued.IsZero():
		return forerun.Errorf(forerun.NotFound, string(id), "There is no trace of the activation: activations of triggers have none.")
	}
	r := Of(a)
	program := string(forerun.Lookup(a.Annotations, "kind")) == `"sequence"`
	g.slots = append(g.slots, Slot{Name: shortName(a.Action), ID: string(a.ID), Depth: depth, Program: program, Line: r.Line, Cache: r.Cache})
	if t := a.Tally; t != nil {
		if depth == 0 {
			g.inOrder = r.Tally.InOrder
		}
		for i := range t.Slots {
			g.squashed = append(g.squashed, Slot{Name: shortName(t.Slots[i].Action), Depth: depth + 1, Line: r.Tally.Slots[i].Line})
		}
	}
	below := a.Calls
	if program {
		below = slices.Concat(below, parts(a.Logs))
	}
	for _, id := range below {
		if err := g.add(id, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// parts are the ids in the log of a workflow, which also has what it wrote.
func parts(logs []string) (ids []forerun.ActivationID) {
	for _, line := range logs {
		if id, err := forerun.ParseActivationID(line); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// shortName is "package/action" of an action of any namespace.
func shortName(n forerun.Name) string {
	if n.Package == "" {
		return n.Entity
	}
	return n.Package + "/" + n.Entity
}

// byQueue puts squashed slots before what was queued after them.
func byQueue(slots, squashed []Slot) []Slot {
	for _, s := range squashed {
		at := slices.IndexFunc(slots, func(b Slot) bool { return b.Queued > s.Queued })
		if at < 0 {
			at = len(slots)
		}
		slots = slices.Insert(slots, at, s)
	}
	return slots
}
