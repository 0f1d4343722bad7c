package simulation

import "forerun.dev/forerun/internal/speculate"

// flights are the executions that equal ones wait for, by code and input; nil: none does.
type flights map[string]*flight

// flight is the first of equal executions, and those that wait for it.
type flight struct {
	number  uint64
	first   *slot
	waiters []waiter
}

type waiter struct {
	run  *run
	slot *slot
}

// await has a slot wait for an equal one, or others for it.
func (r *run) await(a speculate.Await) {
	s := r.live(a.Slot, a)
	if s == nil {
		return
	}
	w, at := r.world, string(a.Code[:])+string(a.Input)
	e := speculate.Awaited{Slot: a.Slot}
	s.awaits = true
	switch f := w.flights[at]; {
	case f != nil && (a.Before == 0 || f.number < a.Before):
		s.flight = f
		f.waiters = append(f.waiters, waiter{r, s})
		return
	case f == nil && a.First && w.flights != nil:
		w.flight++
		e.Number = w.flight
		s.flight = &flight{number: w.flight, first: s}
		w.flights[at] = s.flight
	}
	r.events = append(r.events, r.awaited(s, e))
}

// awaited tells a slot that it waits no more.
func (r *run) awaited(s *slot, e speculate.Awaited) speculate.Event {
	r.cover(e, s, true)
	s.awaits = false
	return e
}

// landFrom lets those go on whose first one is committed: it leaves its row before anything else happens.
func (r *run) landFrom(actions []speculate.Action) {
	for _, a := range actions {
		if l, ok := a.(speculate.Learn); ok && l.Lesson != nil && l.Lesson.Row != nil {
			r.landed(r.slots[l.Slot], l.Lesson.Row.Stands())
		}
	}
}

// landed says what has become of a slot that others may wait for: it has left a row that may stand for them, or will not.
func (r *run) landed(s *slot, row bool) {
	f := s.flight
	if f == nil || f.first != s {
		return
	}
	s.flight = nil
	for at, other := range r.world.flights {
		if other == f {
			delete(r.world.flights, at)
		}
	}
	for _, x := range f.waiters {
		x.run.later(&task{slot: x.slot.id, do: func() {
			x.run.stepMachine(x.run.awaited(x.slot, speculate.Awaited{Slot: x.slot.id, Waited: true, Look: row}))
		}})
	}
}
