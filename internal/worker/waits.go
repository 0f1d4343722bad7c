package worker

import (
	"time"

	"forerun.dev/forerun/internal/schedule"
)

// longOperation is how long an operation at a door takes until its activation counts as one that waits. Shorter ones are not worth a change of
// whose turn it is.
const longOperation = time.Millisecond

// operation is one at a door of an activation. Its fields but the first two are guarded by scheduler.mu.
type operation struct {
	s      *scheduler
	tenure *tenure
	waits  *admission // that waits in it; nil: none does
	over   bool
}

func nothing() {}

// operates notes that an operation begins at a door, and returns its end.
func (s *scheduler) operates(t *tenure) (end func()) {
	if !s.bounds {
		return nothing
	}
	o := &operation{s: s, tenure: t}
	timer := time.AfterFunc(longOperation, o.takesLong)
	return func() {
		if !timer.Stop() {
			o.end()
		}
	}
}

// takesLong has the activation give back its slabs, unless the operation or the activation is over.
func (o *operation) takesLong() {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.turns[o.tenure.activation]
	if o.over || a == nil || a.tenure != o.tenure {
		return
	}
	o.waits = a
	a.doors++
	s.step(schedule.Waits{Activation: a.id})
}

// end has the activation go on if it waits in no other operation.
func (o *operation) end() {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	o.over = true
	a := o.waits
	if a == nil || s.turns[a.id] != a {
		return
	}
	if a.doors--; a.doors == 0 {
		s.step(schedule.Answered{Activation: a.id})
	}
}
