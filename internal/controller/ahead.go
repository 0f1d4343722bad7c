package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// The actions that the machine requests for speculation. Every request to the store is made outside of the execution's
// lock.

// find finds the action of a new slot.
func (e *execution) find(r speculate.Resolve) {
	s := e.newSlot(r.Slot, r.Parent, r.Caller, r.Op)
	s.at = placement{r.Action, r.Self, r.Function, r.Input}
	e.prepare(s, s.at, func(input json.RawMessage) {
		s.input = input
		code := e.code(s)
		if s.cache.Kept && e.cacheOff == "" {
			s.suspended = e.c.suspension(e.namespace, s.action)
		}
		found := speculate.Resolved{Slot: s.id, Code: code, Input: input, Cached: s.cache.Kept && s.suspended == nil, Until: e.until(s)}
		found.Watched = e.watch(s)
		if e.speculation.Mode != speculate.Off {
			doubts := e.tables.doubts(code, e.speculation.Least)
			found.Open, found.Stray, found.InTurn = doubts.open, doubts.stray, s.isNonSpeculative()
			if e.rehearsal == nil || found.InTurn {
				found.Alone = e.alone(found.InTurn, code, doubts)
			}
		}
		if e.speculation.Mode != speculate.Off || s.tree.caller != nil { // else no reason names it
			found.Name = e.name(s)
		}
		e.events = append(e.events, found)
	})
}

// has reports whether the slot's action is annotated so.
func (s *slot) has(annotation string) bool { return has(s.action, annotation) }

func has(a *forerun.Action, annotation string) bool {
	return string(forerun.Lookup(a.Annotations, annotation)) == "true"
}

// isNonSpeculative reports whether the slot's action is annotated non-speculative, or a program that it is a part of.
func (s *slot) isNonSpeculative() bool {
	for ; s != nil; s = s.parent {
		if s.has("non-speculative") {
			return true
		}
	}
	return false
}

// expectTree makes the tree of a callee that is not called yet.
func (e *execution) expectTree(caller *slot) *tree {
	return &tree{cause: caller.record.ID, caller: caller, calls: caller.tree.calls + 1}
}

// newID is the id of the activation that the tree's root is to be. Each execution of a root has one of its own.
func (e *execution) newID(t *tree) forerun.ActivationID {
	if !t.begun {
		t.begun = true
		return t.invocation.ID()
	}
	id := e.c.newID()
	t.invocation.id.Store(&id)
	return id
}

// attach makes a slot that runs already the root of what was called, for which the caller waits from now on.
func (e *execution) attach(a speculate.Attach) {
	s, t := e.slots[a.Slot], e.calls[a.Op]
	t.goesOn()
	t.begun = true
	t.invocation.id.Store(&s.record.ID)
	s.tree.op, s.tree.invocation, s.tree.called, s.tree.asked, s.tree.begun = t.op, t.invocation, t.called, t.asked, true
	e.calls[t.op] = s.tree
	for id, part := range e.active {
		if part.tree == s.tree && !part.over {
			e.c.Worker.Await(id, s.tree.waiting())
		}
	}
}

// later does something outside of the lock, and then with it what that returns.
func (e *execution) later(outside func() (inside func())) { e.c.aside.Go(e.task(outside)) }

func (e *execution) task(outside func() (inside func())) func() {
	e.c.busy.begin(e.namespace)
	return func() {
		defer e.c.busy.end(e.namespace)
		inside := outside()
		e.mu.Lock()
		defer e.mu.Unlock()
		inside()
	}
}

func (e *execution) areCurrent(callees []forerun.Callee) bool {
	return e.c.areCurrent(e.namespace, callees)
}

// areCurrent reports whether actions are deployed as they were when they were called.
func (c *Controller) areCurrent(namespace string, callees []forerun.Callee) bool {
	for _, callee := range callees {
		name, err := forerun.ParseName(callee.Action, namespace)
		if err != nil {
			return false
		}
		action, err := c.Actions.Resolve(context.Background(), name, namespace)
		if err != nil || c.digests.Deployed(action) != callee.Code {
			return false
		}
	}
	return true
}

// fetch reads records for an operation: its asker does, which waits for that, if it is just being posed. It waits, too, for what older
// invocations are about to write.
func (e *execution) fetch(a speculate.Fetch) {
	read := func() func() {
		event := speculate.Fetched{Slot: a.Slot, Op: a.Op}
		records, err := e.c.State.Fetch(context.Background(), a.Keys...)
		event.Failed = err != nil
		for i, r := range records {
			event.Records = append(event.Records, speculate.Record{Key: a.Keys[i], Image: r.Image, Version: r.Version})
		}
		return func() { e.step(event) }
	}
	if e.c.claims.older(e.age, a.Keys) != nil {
		e.stalled(speculate.Stall{Slot: a.Slot, Op: a.Op, Why: forerun.Because(forerun.ReasonEarlierInvocation)})
		e.later(func() func() {
			e.c.claims.await(e.age, a.Keys)
			return read()
		})
		return
	}
	if o := e.posed; o != nil && o.id == a.Op {
		o.fetch = e.task(read)
		return
	}
	e.later(read)
}

// promote validates and applies the work of slots, and lets them continue as heads. If the outcome is unknown, the
// invocation is given up (rule R10), as if the server had ended at that point. Failing only one slot would let an error
// handler continue, although the store may hold the writes of later slots of the group.
func (e *execution) promote(a speculate.Promote) {
	if len(a.Expect) == 0 && len(a.Commands) == 0 {
		e.promoted(a.Slots)
		return
	}
	e.promoting(a, true)
	expect := make([]state.Expect, len(a.Expect))
	for i, seen := range a.Expect {
		expect[i] = state.Expect{Key: seen.Key, Version: seen.Version}
	}
	var ops []state.Command
	for _, step := range a.Commands {
		ops = append(ops, step.(*command.Step).Replay()...)
	}
	written, notes := e.notesFor(a.Slots)
	ops = append(ops, notes...)
	e.later(func() func() {
		if e.c.isAwaited(a.Commands) {
			return func() { e.refused(a, forerun.ReasonClientFirst) }
		}
		_, version, err := e.c.State.Exec(context.Background(), expect, ops)
		applied := err == nil
		if applied {
			e.c.serve(a.Commands)
			err = e.c.State.Durable(context.Background(), version)
		}
		return func() {
			conflict, isConflict := errors.AsType[*state.ConflictError](err)
			switch {
			case err == nil:
				for _, s := range written {
					markNoted(s)
				}
				e.promoted(a.Slots)
				e.step(speculate.Promoted{Slots: a.Slots, Version: version})
			case isConflict:
				e.promoting(a, false)
				e.step(speculate.Conflict{Slots: a.Slots, Keys: conflict.Keys})
			case !applied && slices.Contains([]forerun.Kind{forerun.Full, forerun.OverQuota, forerun.TooLarge}, forerun.KindOf(err)): // in their turn the functions hear of it
				e.refused(a, forerun.ReasonStoreFull)
			default:
				e.step(speculate.Cancelled{Error: "What a function wrote may not be on disk: look at the state before it is invoked again: " + err.Error()})
			}
		}
	})
}

// isAwaited reports whether a client is blocked (BLPOP) on a record that these commands write. That client is served
// before the writer continues, so the slot runs again in order instead of being promoted.
func (c *Controller) isAwaited(commands []any) bool {
	return c.Waiters != nil && slices.ContainsFunc(commands, func(step any) bool { return c.Waiters.IsAwaited(step.(*command.Step).Writes()) })
}

// serve lets those look at what commands have written who have begun to wait for that meanwhile.
func (c *Controller) serve(commands []any) {
	if c.Waiters == nil {
		return
	}
	for _, step := range commands {
		c.Waiters.Settle(context.Background(), step.(*command.Step).Writes())
	}
}

// refused has slots run again in their turn that the store was not asked to promote, or has no room for.
func (e *execution) refused(a speculate.Promote, why forerun.ReasonCode) {
	e.promoting(a, false)
	e.step(speculate.Conflict{Slots: a.Slots, Why: forerun.Because(why)})
}

// promoting notes which slots are, until the store has answered, and the programs that they come past.
func (e *execution) promoting(a speculate.Promote, are bool) {
	for _, id := range slices.Concat(a.Slots, a.Past) {
		if s := e.slots[id]; s != nil {
			s.promoting = are
		}
	}
}

func (e *execution) promoted(slots []speculate.SlotID) {
	for _, id := range slots {
		if s := e.slots[id]; s != nil {
			e.letGoAfterCallees(s)
		}
	}
}

// letGoAfterCallees releases the callees that returned to a slot before the slot itself: they sent their data before the
// caller knew their results.
func (e *execution) letGoAfterCallees(s *slot) {
	for _, c := range e.returnedTo(s) {
		e.letGoAfterCallees(c)
	}
	e.letGo(s)
}

// returnedTo lists the callees that returned to a speculative slot, in the order of its calls.
func (e *execution) returnedTo(caller *slot) (slots []*slot) {
	if !caller.calls || !caller.ahead {
		return nil
	}
	for _, s := range e.slots {
		if s.returned && s.tree.caller == caller {
			slots = append(slots, s)
		}
	}
	slices.SortFunc(slots, func(a, b *slot) int { return cmp.Compare(a.tree.op, b.tree.op) })
	return slots
}

// letGo makes a speculative slot a head. Its function may now do what was held.
func (e *execution) letGo(s *slot) {
	if !s.ahead {
		return
	}
	e.lead(s, true)
	e.unclaim(s)
	if e.active[s.record.ID] != nil {
		if s.early {
			e.tally.Used++
			e.tables.noteAhead(e.code(s), false)
		}
		e.c.Worker.Promote(s.record.ID)
	}
	for _, t := range e.calls {
		if t.caller == s {
			t.invocation.begin()
			e.heldCall(t)
		}
	}
}

// claim notes which records a slot is to write.
func (e *execution) claim(s *slot, records []forerun.Key) {
	if s.claims == nil {
		s.claims = make(map[forerun.Key]*claim)
	}
	e.c.claims.add(e.age, s.claims, records)
}

// unclaim gives up what a slot claimed.
func (e *execution) unclaim(s *slot) {
	e.c.claims.drop(s.claims)
	s.claims = nil
}

// lead notes that a slot is a head, and so is what it is a part of.
func (e *execution) lead(s *slot, head bool) {
	for ; head && s != nil && s.ahead; s = s.parent {
		s.ahead, s.record.Timeline.Promoted = false, time.Now()
		e.show(s)
		if s.parent == nil && s.tree.invocation != nil {
			s.tree.invocation.settleID()
		}
	}
}

// wasted notes a slot of which nothing is left.
func (e *execution) wasted(s *slot, a speculate.Squash) {
	if s.counted != nil {
		*s.counted--
	}
	if e.active[s.record.ID] == nil {
		return
	}
	s.squashed(a)
	if s.early {
		e.tally.Squash(a.Kind)
		e.tables.noteAhead(e.code(s), true)
	}
	e.tally.Held += s.record.Timeline.Held
	if len(e.tally.Slots) < forerun.MaxSquashedSlots {
		e.tally.Slots = append(e.tally.Slots, forerun.SquashedSlot{Action: s.record.Action, Timeline: s.record.Timeline})
	}
}

// abandon ends the calls of a slot that is over and has no waiting caller. The calls of a speculative slot never
// happened.
func (e *execution) abandon(s *slot) {
	gone := forerun.Errorf(forerun.Unavailable, "", "The function that called has ended.")
	for op, t := range e.calls {
		switch {
		case t.caller != s:
			continue
		case s.ahead:
			t.invocation.undo(gone)
		default:
			t.invocation.end(t.invocation.accepted, gone)
		}
		delete(e.calls, op)
		e.c.busy.end(e.namespace)
	}
}

// answerCall gives a speculative caller what its callee gave, when the records are not written yet.
func (e *execution) answerCall(a speculate.Reply) {
	t := e.calls[a.Op]
	if t == nil {
		return // it is committed
	}
	for _, s := range e.slots {
		if s.tree == t && s.parent == nil {
			s.returned = true
			t.waited()
			record := s.provisional(a.Result)
			e.c.date([]*forerun.Activation{record})
			t.invocation.answer(record, nil)
		}
	}
}

// provisional is what the record of a slot will be.
func (s *slot) provisional(r forerun.Result) *forerun.Activation {
	record := *s.record
	c := *s
	c.record, c.parent = &record, nil
	c.finish(r)
	return &record
}
