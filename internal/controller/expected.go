package controller

import "math"

// isTight reports whether the processors have no time for speculation that costs extra. Either they would be nearly all
// in use, or most would be and answers would become faster by less than the cost.
func (t *toll) isTight(cost float64) bool {
	if t.busy <= tollBar || t.busy > tollLast {
		return t.busy > tollLast
	}
	times := t.expected(cost)
	return times == 0 || times*cost >= 1
}

// expected is the ratio of answer times with all invocations speculating at a cost to those without; 0: unknown. It is
// the ratio of the trials, corrected for the processor work of an invocation, which takes longer on busier processors.
func (t *toll) expected(cost float64) float64 {
	took, without, _ := t.gains.means()
	ahead, plain := both(t.kept)
	if took == 0 || plain.begun == 0 {
		return 0
	}
	work := min(plain.own/plain.begun, without) // includes other invocations' work where not all can speculate
	took += cost * work * t.slower(ahead.used/ahead.took, t.busy)
	without += work * t.slower(plain.used/plain.took, t.busy-t.extra)
	return took / without
}

// slower is how much longer something lasts, in times what it takes of a processor, where they are busy to one share than to another.
func (t *toll) slower(then, now float64) float64 { return max(0, t.lasts(now)-t.lasts(then)) }

// lasts is how long, in the same times: as in a queue with a server for each processor (M/M/n, nearly).
func (t *toll) lasts(busy float64) float64 {
	return 1 / (1 - math.Pow(min(max(0, busy), tollLast), float64(t.processors)))
}
