package controller

import (
	"net"
	"strings"

	"forerun.dev/forerun/internal/speculate"
)

// faultPoints is the socket that the test listens on. The linker sets it.
var faultPoints string

// atFaultPoint tells the test which stage the slots of these names have come to, and goes on when the test has answered.
func atFaultPoint(stage string, names ...string) {
	c, err := net.Dial("unix", faultPoints)
	if err != nil {
		return // nobody listens
	}
	defer c.Close()
	_, _ = c.Write([]byte(stage + " " + strings.Join(names, ",") + "\n"))
	_, _ = c.Read(make([]byte, 1))
}

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
