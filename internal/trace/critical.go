package trace

import "slices"

// The critical path is found from the end: at each moment of the wall it is with the slot in which the invocation then waited. That is
// the slot inside the workflow, or inside the caller, that ended last before; while there is none, it is the workflow or caller itself.
// A function that was held for its turn is on the path from its turn on: before, the path is with the slots that had theirs.

// findCritical gives each moment of the wall to one slot.
func (t *Trace) findCritical() {
	if t.Wall > 0 {
		t.critical(0, t.Begin, t.Begin+t.Wall)
	}
}

// critical divides a time, in which the invocation waited for a slot, between that slot and those inside it.
func (t *Trace) critical(at int, from, to int64) {
	s := &t.Slots[at]
	inside := t.inside(at)
	slices.SortStableFunc(inside, func(a, b int) int { // the last to end first
		return int(min(1, max(-1, t.Slots[b].Stop()-t.Slots[a].Stop())))
	})
	for _, child := range inside {
		c := &t.Slots[child]
		end, begin := min(to, c.Stop()), max(from, c.onPath())
		if end <= begin {
			continue
		}
		s.Critical += to - end
		t.critical(child, begin, end)
		to = begin
	}
	s.Critical += max(0, to-from)
}

// onPath is the moment from which the invocation may have waited for a slot.
func (s *Slot) onPath() int64 {
	switch {
	case s.Speculative && (s.Held > 0 || !s.RanAhead()):
		return max(s.Launched, s.Promoted)
	case s.RanAhead():
		return s.Launched
	}
	return s.Queued
}

// inside lists the slots directly inside a slot of which something is left.
func (t *Trace) inside(at int) (list []int) {
	depth := t.Slots[at].Depth
	for i := at + 1; i < len(t.Slots); i++ {
		s := &t.Slots[i]
		switch {
		case s.IsSquashed():
		case s.Depth <= depth:
			return list
		case s.Depth == depth+1:
			list = append(list, i)
		}
	}
	return list
}
