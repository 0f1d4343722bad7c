package simulation

import (
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// giveUp cancels the invocation; of what is on its way to the store some arrives.
func (r *run) giveUp() {
	r.givenUp = true
	tasks := r.tasks
	r.tasks = nil
	for _, t := range tasks {
		switch {
		case !t.stores:
			r.tasks = append(r.tasks, t)
		case r.world.IntN(2) == 0:
			t.do()
		}
	}
	r.tell(speculate.Cancelled{Error: "the client has gone"})
	r.world.saw(oracle.Event{Kind: oracle.Gone, Invocation: r.number})
}

// withdraw has a handler give up the command that it waits for, and do it again, or go on without; one that is a head is too late for that.
func (r *run) withdraw(s *slot) {
	e := speculate.Withdrawn{Slot: s.id, Op: s.handler.awaits[0]}
	again := s.promoting || r.world.IntN(2) == 0 // else what it did is explained by no execution without speculation
	r.tell(e)
	if !s.head {
		s.handler.giveUp(again)
	}
}

// die ends all handlers at once. That of each is told some time later, to those that have become heads meanwhile, too.
func (w *world) die() bool {
	between := func(s *slot) bool { return s.handler.isBetween() }
	if len(w.victims(between)) > 0 {
		return false
	}
	for _, v := range w.victims(func(*slot) bool { return true }) {
		if w.coverage != nil {
			w.coverage.row(died)[v.slot.phase()]++
		}
		v.run.end(v.slot)
		v.slot.dead = true
		v.run.later(&task{slot: v.slot.id, do: func() { v.run.failed(v.slot, &oracle.Died) }})
	}
	return true
}

// end ends a handler; of what it sent to the store some arrives.
func (r *run) end(s *slot) {
	tasks := r.tasks
	r.tasks = nil
	for _, t := range tasks {
		switch {
		case t.slot != s.id || !t.stores || s.promoting:
			r.tasks = append(r.tasks, t)
		case r.world.IntN(2) == 0:
			t.do()
		}
	}
	s.ended, s.handler = s.handler, nil
}

// crashed writes down that the end of a handler is what counts of a slot.
func (r *run) crashed(s *slot, with *forerun.Result) {
	r.world.saw(oracle.Event{Kind: oracle.Crash, Invocation: r.family(), Action: s.action, Input: s.ended.input, Next: s.ended.next, Result: *with})
}

// failed tells that a slot's handler has ended.
func (r *run) failed(s *slot, with *forerun.Result) {
	e := speculate.Failed{Slot: s.id, Result: *with}
	r.cover(e, s, true)
	switch {
	case s.over:
	case s.head:
		r.crashed(s, with)
		s.result, s.finished = with, true
	case s.promoting:
		s.failed = with
	}
	r.stepMachine(e)
}
