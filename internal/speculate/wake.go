package speculate

import "slices"

// A fork may have thousands of branches, and an event is about one of them. So a branch sleeps if nothing can be done in it before an
// event or before there is room. Searches for work pass it by.

// hears returns the slot that an event is about, and wakes the branch that contains it. It returns nil if the slot has ended.
func (m *Machine) hears(id SlotID) *slot {
	s := m.at(id)
	m.wake(s)
	return s
}

// wake has a slot looked at, and all that it is in: it has changed.
func (m *Machine) wake(s *slot) {
	for ; s != nil; s = s.around() {
		if t := s.thread; t != nil && t.asleep {
			m.rouse(t)
		}
	}
}

// rouse wakes a branch.
func (m *Machine) rouse(t *thread) {
	s := t.owner
	if t.crowded {
		i, _ := placeOf(s.crowd, t.branch)
		s.crowd = slices.Delete(s.crowd, i, i+1)
	}
	t.asleep, t.crowded = false, false
	i, _ := placeOf(s.awake, t.branch)
	s.awake = slices.Insert(s.awake, i, t)
	m.changed = true
}

// wakeAll has all branches of a fork looked at.
func (s *slot) wakeAll() {
	s.awake, s.crowd = append(s.awake[:0], s.branches...), nil
	for _, t := range s.awake {
		t.asleep, t.crowded = false, false
	}
}

// placeOf finds where a branch is, or would be, among others in their order.
func placeOf(list []*thread, branch int) (place int, found bool) {
	return slices.BinarySearchFunc(list, branch, func(t *thread, branch int) int { return t.branch - branch })
}

// nextAwake is the first branch that is awake from one on, or nil. It may be asked while branches wake.
func (s *slot) nextAwake(branch int) *thread {
	if i, _ := placeOf(s.awake, branch); i < len(s.awake) {
		return s.awake[i]
	}
	return nil
}

// tendFork tends the branches that are awake, and then those that wait for room, while there is some.
func (m *Machine) tendFork(s *slot) {
	for t := s.nextAwake(0); t != nil; t = s.nextAwake(t.branch + 1) {
		m.tendThread(t)
	}
	for len(s.crowd) > 0 && m.hasRoom() {
		t := s.crowd[0]
		m.rouse(t)
		m.tendThread(t)
	}
}

// rest is what can change what can be done in a slot, or a branch.
type rest int

const (
	quiet   rest = iota // an event about a slot in it, or its turn
	crowded             // or that there is room (C5)
	busy                // or an event of others: it waits for other slots, or for an answer that they may bring
)

// settle lets branches sleep when all that could be done is done.
func (s *slot) settle() (r rest) {
	switch s.kind {
	case program:
		return s.branches[0].settle()
	case fork:
		s.awake = slices.DeleteFunc(s.awake, (*thread).sleeps)
		switch {
		case len(s.awake) > 0:
			return busy
		case len(s.crowd) > 0:
			return crowded
		}
		return quiet
	}
	if s.foresees() || s.state == waiting && !s.patient {
		r = crowded
	}
	for _, o := range s.requests {
		if !o.direct && !s.promoting {
			r = busy
		}
	}
	for _, c := range s.callees {
		r = max(r, c.settle())
	}
	return r
}

// sleeps settles a branch of a fork, and reports whether it need not be looked at.
func (t *thread) sleeps() bool {
	r := t.settle()
	t.asleep, t.crowded = r != busy, r == crowded
	if t.crowded {
		i, _ := placeOf(t.owner.crowd, t.branch)
		t.owner.crowd = slices.Insert(t.owner.crowd, i, t)
	}
	return t.asleep
}

func (t *thread) settle() (r rest) {
	if t.pending != nil && t.pending.stop.Size() <= maxInput {
		r = crowded
	}
	for _, s := range t.steps {
		r = max(r, s.settle())
	}
	return r
}
