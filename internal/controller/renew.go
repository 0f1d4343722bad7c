package controller

import (
	"context"
	"slices"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// renew runs speculative slots again whose action has changed since its resolution: in order, the new action would be
// found (C1). Most changes are to actions of other workflows.
func (e *execution) renew() {
	if e.speculation.Mode == speculate.Off {
		return
	}
	now := e.c.Actions.Changes()
	if now == e.changes {
		return
	}
	e.changes = now
	var outdated []speculate.SlotID
	for _, s := range e.slots {
		if s.ahead && e.isOutdated(s) {
			outdated = append(outdated, finder(s))
		}
	}
	if len(outdated) > 0 {
		slices.Sort(outdated) // a slot's parents come before it
		e.carryOut(e.machine.Step(speculate.Renewed{Slots: outdated}))
	}
}

// finder is the slot that is to be executed again for another action to be found: the one that has it, or its caller, which has
// called what was there.
func finder(s *slot) speculate.SlotID {
	if s.parent == nil && s.tree.op != 0 {
		return s.tree.caller.id
	}
	return s.id
}

// isOutdated reports whether a slot's action would be another if it were found now, or an action that its output rests on.
func (e *execution) isOutdated(s *slot) bool {
	if s.parent == nil && s.tree.caller == nil || s.at.Self || s.at.Function != nil { // a client's, or code of the program around it
		return !e.areCurrent(s.below)
	}
	name, err := forerun.ParseName(s.at.Action, e.namespace)
	if err != nil {
		return false
	}
	action, err := e.c.Actions.Resolve(context.Background(), name, e.namespace)
	if err != nil {
		return s.action != nil
	}
	return !e.isSame(action, s.action) || !e.areCurrent(s.below)
}

// isSame reports whether two are one deployment of an action: the registry forgets what it has no room for, and reads it again.
func (e *execution) isSame(a, b *forerun.Action) bool {
	return a == b || a != nil && b != nil && a.Version == b.Version && a.Binding == b.Binding && e.c.digests.Deployed(a) == e.c.digests.Deployed(b)
}
