package simulation

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// run is an invocation as its controller sees it.
type run struct {
	world    *world
	number   int
	apart    bool // it was detached by another
	program  forerun.Program
	action   string
	version  int // of the action, for what was detached
	mode     speculate.Mode
	limit    int  // of the depth
	full     bool // there is no more room for columns
	machine  *speculate.Machine
	slots    map[speculate.SlotID]*slot
	next     speculate.SlotID
	tasks    []*task
	events   []speculate.Event // that arose while actions were carried out
	answered bool
	givenUp  bool
}

func (r *run) family() int {
	if r.apart {
		return r.number + oracle.Apart
	}
	return r.number
}

func (r *run) isOver() bool {
	if !r.answered {
		return false
	}
	for _, s := range r.slots {
		if !s.over {
			return false
		}
	}
	return true
}

// ready is how many things can happen next.
func (r *run) ready() int {
	n := len(r.tasks)
	for id := range r.next {
		if s := r.slots[id]; s != nil && s.handler != nil && len(s.handler.out) > 0 {
			n++
		}
	}
	return n
}

// whose tells which slot's turn something is.
func (r *run) whose(at int) speculate.SlotID {
	if at < len(r.tasks) {
		return r.tasks[at].slot
	}
	at -= len(r.tasks)
	for id := range r.next {
		if s := r.slots[id]; s != nil && s.handler != nil && len(s.handler.out) > 0 {
			if at--; at < 0 {
				return id
			}
		}
	}
	return speculate.None
}

func (r *run) step(at int) {
	if at < len(r.tasks) {
		t := r.tasks[at]
		r.tasks = slices.Delete(r.tasks, at, at+1)
		t.do()
		return
	}
	s := r.slots[r.whose(at)]
	e := s.handler.out[0]
	s.handler.out = s.handler.out[1:]
	r.deliver(s, e)
}

// deliver tells the machine what a handler sends.
func (r *run) deliver(s *slot, e speculate.Event) {
	late := s.over
	if out, ok := e.(speculate.Output); ok && !late {
		r.cover(e, s, true)
		s.finished, s.result = true, &out.Result
		r.hintEnd(s)
		r.stepMachine(e)
		return
	}
	if late {
		s.handler.out = nil
		r.cover(e, s, false)
		r.tell(speculate.LoadChanged{Depth: r.limit, Full: r.full}) // what others taught the predictor has its consequences before
		if actions := r.machine.Step(e); len(actions) > 0 {
			r.world.fail("a late %T of slot %d has consequences: %v", e, s.id, actions)
		}
		return
	}
	r.tell(e)
}

// tell tells the machine an event and carries out what it says.
func (r *run) tell(e speculate.Event) {
	r.cover(e, nil, false)
	r.stepMachine(e)
}

func (r *run) stepMachine(e speculate.Event) {
	r.world.say("  [%d] %v", r.number, saidEvent{e})
	r.carryOut(r.machine.Step(e))
}

func (r *run) later(t *task) { r.tasks = append(r.tasks, t) }

func (r *run) carryOut(actions []speculate.Action) {
	for {
		r.landFrom(actions)
		for _, a := range actions {
			if r.world.problem != nil {
				return
			}
			r.world.say("      [%d] -> %v", r.number, saidAction{a})
			r.perform(a)
		}
		if len(r.events) == 0 {
			return
		}
		e := r.events[0]
		r.events = r.events[1:]
		r.world.say("  [%d] %v", r.number, saidEvent{e})
		actions = r.machine.Step(e)
	}
}

// live returns a slot that an action may be about.
func (r *run) live(id speculate.SlotID, a speculate.Action) *slot {
	s := r.slots[id]
	if s == nil || s.over {
		r.world.fail("%T for slot %d of invocation %d, which is over", a, id, r.number)
		return nil
	}
	return s
}
