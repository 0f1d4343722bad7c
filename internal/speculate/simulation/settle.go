package simulation

import (
	"fmt"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

func (r *run) promote(a speculate.Promote) {
	for _, id := range a.Slots {
		s := r.live(id, a)
		if s == nil {
			return
		}
		if s.head || s.promoting {
			r.world.fail("slot %d is promoted, and is a head or on its way", id)
			return
		}
	}
	if len(a.Expect) == 0 && len(a.Commands) == 0 {
		r.hintBegins(a.Slots)
		r.lead(a.Slots)
		return
	}
	for _, id := range a.Slots {
		s := r.slots[id]
		s.promoting, s.expect, s.joint = true, a.Expect, len(a.Slots) > 1 || s.skipped || s.dead || len(s.handler.results) > 0
	}
	r.later(&task{slot: a.Slots[0], of: transactions, stores: true, do: func() {
		w := r.world
		var e speculate.Event
		switch changed := w.store.changed(a.Expect); {
		case len(changed) > 0:
			e = speculate.Conflict{Slots: a.Slots, Keys: changed}
			if w.quiet {
				w.fail("the promotion of %v is refused because of %v, which nobody else wrote: who read it early should have been squashed", a.Slots, changed)
			}
		case w.lacksRoom():
			e = speculate.Conflict{Slots: a.Slots, Why: forerun.Because(forerun.ReasonStoreFull)}
		default:
			commands := make([]oracle.Command, len(a.Commands))
			for i, c := range a.Commands {
				commands[i] = c.(oracle.Command)
			}
			r.proveTold(a.Slots)
			_, wrote := w.store.do(commands...)
			r.hintBegins(a.Slots)
			for _, c := range commands {
				r.hint(c, -1)
			}
			w.say("    [%d] slots %v are applied: %v wrote %v: %v", r.number, a.Slots, commands, wrote, w.store.values)
			for _, id := range a.Slots {
				r.slots[id].applied = true
			}
			e = speculate.Promoted{Slots: a.Slots, Version: w.store.last}
		}
		r.later(&task{slot: a.Slots[0], of: promotions, do: func() { r.settle(a.Slots, e) }})
	}})
}

// hintBegins hints at the beginning of what is promoted alone: of several together the later ones begin between the commands.
func (r *run) hintBegins(slots []speculate.SlotID) {
	if len(slots) == 1 {
		r.hintBegin(r.slots[slots[0]])
	}
}

// proveTold holds what functions were told ahead of their turn to the store at the moment of their promotion: they would be told
// the same (rules R4, R5).
func (r *run) proveTold(slots []speculate.SlotID) {
	w := r.world
	values := w.store.values
	for _, id := range slots {
		for _, told := range r.slots[id].told {
			if reply := told.command.Apply(&values); told.command.Verb != oracle.Clock && reply != told.reply {
				w.fail("slot %d is promoted, and was told %s by %v, which gives %s then", id, told.reply, told.command, reply)
			}
		}
	}
}

// settle tells the outcome of a promotion.
func (r *run) settle(slots []speculate.SlotID, e speculate.Event) {
	for _, id := range slots {
		r.cover(e, r.slots[id], true)
	}
	_, ok := e.(speculate.Promoted)
	for _, id := range slots {
		s := r.slots[id]
		s.promoting = false
		if ok && !s.over && s.failed != nil {
			r.crashed(s, s.failed)
			s.result, s.finished, s.handler = s.failed, true, nil
		}
	}
	if ok {
		r.lead(slots)
	}
	r.stepMachine(e)
}

func (r *run) lead(slots []speculate.SlotID) {
	for _, id := range slots {
		s := r.slots[id]
		s.head, s.counted = true, false
		r.hintEnd(s)
	}
}

func (r *run) commit(a speculate.Commit) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	s.over, s.committed = true, true
	r.landed(s, false)
	if !s.program && (s.result == nil || s.result.Status != a.Result.Status || string(s.result.Value) != string(a.Result.Value)) {
		r.world.fail("slot %d is committed with %s, and did not end so", s.id, a.Result.Value)
	}
	if s.program {
		s.result = &a.Result
	}
}

func (r *run) squash(a speculate.Squash) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	s.over = true
	r.landed(s, false)
	if (s.head && !s.program || s.promoting) && !r.givenUp {
		r.world.fail("slot %d is a head, or on its way, and is squashed", s.id)
	}
	if s.handler != nil && r.world.IntN(2) == 0 {
		s.handler.hangUp()
	}
}

func (r *run) finish(a speculate.Finish) {
	if r.answered {
		r.world.fail("invocation %d finishes twice", r.number)
		return
	}
	r.answered = true
	switch {
	case r.apart:
	case r.givenUp:
		r.world.saw(oracle.Event{Kind: oracle.Given, Invocation: r.number})
	default:
		r.world.saw(oracle.Event{Kind: oracle.End, Invocation: r.number, Result: a.Result})
	}
}

func (r *run) learn(a speculate.Learn) {
	s := r.slots[a.Slot]
	if s == nil || !s.committed {
		r.world.fail("what slot %d did is learnt, and it is not committed", a.Slot)
		return
	}
	if a.Lesson == nil {
		return
	}
	if a.Lesson.Row != nil {
		r.world.memo[string(a.Lesson.Code[:])+string(a.Lesson.Input)] = a.Lesson.Row
		if string(a.Lesson.Row.Output) != string(s.result.Value) {
			r.world.fail("slot %d gave %s, and %s is learnt", s.id, s.result.Value, a.Lesson.Row.Output)
		}
		r.proveRow(s, a.Lesson.Row)
	}
	if a.Lesson.Outcome != nil {
		r.world.predictor.Learn(*a.Lesson.Outcome)
	}
}

// proveRow holds a row that may stand for an execution to what it says (rule R8): with the records as they were, and nothing
// else known, the execution gives that output.
func (r *run) proveRow(s *slot, row *forerun.Row) {
	w := r.world
	if !row.Exact || row.Effects || s.program || s.self {
		return
	}
	seg := &oracle.Segment{Actions: w.actions, Version: map[string]int{s.action: s.version}, Fixed: true}
	for i := range seg.Before {
		seg.Before[i] = oracle.Value{Kind: '?'}
	}
	for _, seen := range row.Reads {
		record := recordOf(seen.Key)
		seg.Before[record] = w.store.past[past{record, seen.Version}]
	}
	for _, c := range row.Below {
		code := w.codes[c.Code] // of what a program brings along the action says nothing
		if v, ok := seg.Version[code.action]; ok && v != code.version {
			return // it called two versions of an action: the row never stands for it again
		}
		seg.Version[code.action] = code.version
	}
	seg.Events = []oracle.Event{{Kind: oracle.Begin, Action: s.action, Input: s.input}, {Kind: oracle.End, Result: forerun.Result{Value: row.Output}}}
	if _, err := oracle.Check(seg); err != nil {
		w.fail("the row of slot %d (%s on %s) is wrong: %v reads %v: %v", s.id, s.action, s.input, fmt.Sprint(string(row.Output)), row.Reads, err)
	}
}
