package controller

import "forerun.dev/forerun/internal/speculate"

// pointsOf are the names of the slots' actions.
func (e *execution) pointsOf(slots ...speculate.SlotID) (names []string) {
	for _, id := range slots {
		if s := e.slots[id]; s != nil {
			names = append(names, s.record.Action.Entity)
		}
	}
	return names
}

// passPoint calls what an action leads to, when it is carried out.
func (e *execution) passPoint(action speculate.Action) (carriedOut func()) {
	stage, id := "", speculate.None
	switch a := action.(type) {
	case speculate.Resolve: // it has no name before
		return func() { atFaultPoint("resolved", e.pointsOf(a.Slot)...) }
	case speculate.Launch:
		if !a.Speculative {
			return func() {}
		}
		stage, id = "queued", a.Slot
	case speculate.Squash:
		stage, id = "squashed", a.Slot
	case speculate.Attach:
		stage, id = "attached", a.Slot
	case speculate.Stall:
		stage, id = "held", a.Slot
	case speculate.Commit:
		stage, id = "committed", a.Slot
	default:
		return func() {}
	}
	names := e.pointsOf(id)
	return func() { atFaultPoint(stage, names...) }
}
