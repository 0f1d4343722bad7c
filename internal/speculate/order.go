package speculate

import "slices"

// Program order: a slot precedes the slots of later steps of its program. A caller precedes its callees, and these
// precede the slots that follow the caller. Branches of a fork are unordered; all of them precede the slots that follow
// the join.

// around returns the slot that s is in, or nil: its caller, or the program or fork of its thread.
func (s *slot) around() *slot {
	switch {
	case s.orphan:
		return nil
	case s.caller != nil:
		return s.caller
	case s.thread != nil:
		return s.thread.owner
	}
	return nil
}

// beside returns the list that s is in, in program order, and its place there.
func (s *slot) beside() (list []*slot, at int) {
	switch {
	case s.orphan:
		return nil, 0
	case s.caller != nil:
		list = s.caller.callees
	case s.thread != nil:
		list = s.thread.steps
	}
	return list, slices.Index(list, s)
}

// nextInLine returns the direct successor of a finished function, or of a program without one: a function, or such a program. It is nil if
// that is not known, or is on another line: in a fork or behind a join.
func (s *slot) nextInLine() *slot {
	for s.thread != nil && !s.orphan {
		list, at := s.beside()
		if at+1 < len(list) {
			return list[at+1].first()
		}
		if s.thread.end == nil || s.thread.owner.kind != program {
			return nil
		}
		s = s.thread.owner
	}
	return nil
}

// first returns the first part of a step, or the step itself: a function, or a program without one. It may be nil.
func (s *slot) first() *slot {
	switch {
	case s.kind == fork:
		return nil
	case s.kind == function:
		return s
	case len(s.branches[0].steps) > 0:
		return s.branches[0].steps[0].first()
	case s.branches[0].end != nil:
		return s
	}
	return nil
}

// firstFunction returns the function that a step begins with, or that follows it if there is none in it, or nil.
func (s *slot) firstFunction() *slot {
	for s = s.first(); s != nil && s.kind == program; {
		s = s.nextInLine()
	}
	return s
}

// innermostFork returns the fork that s is in a branch of, or nil.
func (s *slot) innermostFork() *slot {
	for s = s.around(); s != nil && s.kind != fork; {
		s = s.around()
	}
	return s
}

// without returns the list without s, in its place.
func without(list []*slot, s *slot) []*slot {
	if i := slices.Index(list, s); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}
