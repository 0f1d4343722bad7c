package speculate

import "slices"

// A fork may have thousands of branches, and an event is about one of them. So a branch sleeps in which nothing can be done before it
// hears of something: looking for what can be done passes it by.

// hears returns the slot that an event is about, and wakes what it is in; nil if it is over.
func (m *Machine) hears(id SlotID) *slot {
	s := m.at(id)
	m.wake(s)
	return s
}

// wake has a slot looked at, and all that it is in: it has changed.
func (m *Machine) wake(s *slot) {
	for ; s != nil; s = s.around() {
		if t := s.thread; t != nil && t.asleep {
			t.asleep = false
			i, _ := t.owner.placeOf(t.branch)
			t.owner.awake = slices.Insert(t.owner.awake, i, t)
			m.changed = true
		}
	}
}

// wakeAll has all branches of a fork looked at.
func (s *slot) wakeAll() {
	s.awake = append(s.awake[:0], s.branches...)
	for _, t := range s.awake {
		t.asleep = false
	}
}

// placeOf finds where a branch is, or would be, among those that are awake.
func (s *slot) placeOf(branch int) (place int, awake bool) {
	return slices.BinarySearchFunc(s.awake, branch, func(t *thread, branch int) int { return t.branch - branch })
}

// nextAwake is the first branch that is awake from one on, or nil. It may be asked while branches wake.
func (s *slot) nextAwake(branch int) *thread {
	if i, _ := s.placeOf(branch); i < len(s.awake) {
		return s.awake[i]
	}
	return nil
}

// settle lets branches sleep when all that could be done is done, and tells whether nothing but an event about what is in the slot, or
// its turn, can change that: it does not wait for other slots, for room, or for an answer that others may bring.
func (s *slot) settle() (quiet bool) {
	switch s.kind {
	case program:
		return s.branches[0].settle()
	case fork:
		s.awake = slices.DeleteFunc(s.awake, func(t *thread) bool {
			t.asleep = t.settle()
			return t.asleep
		})
		return len(s.awake) == 0
	}
	quiet = len(s.script) == 0 && (s.state != waiting || s.patient)
	for _, r := range s.requests {
		quiet = quiet && (r.direct || s.promoting)
	}
	for _, c := range s.callees {
		quiet = c.settle() && quiet
	}
	return quiet
}

func (t *thread) settle() (quiet bool) {
	quiet = t.pending == nil
	for _, s := range t.steps {
		quiet = s.settle() && quiet
	}
	return quiet
}
