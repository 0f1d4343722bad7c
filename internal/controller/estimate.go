package controller

import "time"

// estimate is how long the functions of an invocation take in order, one after the other. Functions that run beside each other
// compete for the processors and take longer. So each counts with at most the time that it is known to take by itself.
type estimate struct {
	sum     time.Duration
	unknown bool // one that ran speculatively, or was skipped, has not run by itself
}

// add adds a function that took the time ran, and that is known to take the time alone by itself; 0: unknown.
func (x *estimate) add(ran, alone time.Duration, speculative bool) {
	switch {
	case alone > 0:
		x.sum += min(ran, alone)
	case speculative:
		x.unknown = true
	default:
		x.sum += ran
	}
}

// estimate adds a function that is final to the estimate of its invocation.
func (e *execution) estimate(s *slot) {
	line := &s.record.Timeline
	if e.tables == nil || s.program || line.Launched.IsZero() {
		return
	}
	alone := e.tables.alone(e.code(s))
	if line.Skipped {
		e.inOrder.add(alone, alone, true)
		return
	}
	e.inOrder.add(s.own(), alone, s.early)
}

// own is how long a function took without what it waited for: its turn, and what it called.
func (s *slot) own() time.Duration {
	line := &s.record.Timeline
	return max(0, line.Finished.Sub(line.Launched)-line.Held-line.Waited)
}

// estimated is the estimate of the invocation; 0: there is none. Branches and calls that run at the same time in order, too, have none.
func (e *execution) estimated() time.Duration {
	if e.inOrder.unknown || e.concurrent || e.machine.Forked() {
		return 0
	}
	return e.inOrder.sum
}
