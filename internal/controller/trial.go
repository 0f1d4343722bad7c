package controller

import "math"

// The trials that count.
const (
	trialsKept  = 7 // that count
	trialsLeast = 3 // before anything is barred; until then one follows the other
	trialTells  = 4 // times as much, or as little, at most
	upsetMost   = 5 // trials in a row that sandboxes started in, and that count for nothing therefore
)

// half is what was seen in half a trial.
type half struct {
	plain bool
	took  float64 // seconds
	own   float64 // seconds of the processors
	used  float64 // likewise, of all that runs: as a share of them, times took
	begun float64 // invocations
	done  float64 // activations that ended
}

// trial is both halves of one.
type trial struct{ ahead, plain half }

// learn takes a stretch into account that was half a trial.
func (t *toll) learn(to mark, passed float64) {
	if t.left == 0 {
		return
	}
	_, all, known := t.from.shares(to)
	h := half{
		plain: t.is().plain, took: passed, own: (to.Own - t.from.Own).Seconds(), used: all * passed,
		begun: float64(to.begun - t.from.begun), done: float64(to.done - t.from.done),
	}
	if h.done < enoughDone || h.begun == 0 || h.own <= 0 || !known {
		t.abandon()
		return
	}
	if t.left--; t.left == 1 {
		t.first = h
		return
	}
	if to.Sandboxes > t.boxes && t.upset < upsetMost {
		t.again()
		return
	}
	t.upset = 0
	if t.spare.Load() == 0 {
		t.keep(t.first, h)
	}
	if t.trials >= trialsLeast {
		t.gains.judge()
	} else {
		t.gains.keep()
	}
}

// keep keeps the halves of a trial that tells what running ahead costs.
func (t *toll) keep(first, second half) {
	whole := trial{ahead: second, plain: first}
	if second.plain {
		whole = trial{ahead: first, plain: second}
	}
	t.kept = append(t.kept, whole)
	t.kept = t.kept[max(0, len(t.kept)-trialsKept):]
	t.fresh = trialFresh
}

// again forgets a trial, to make it once more: a sandbox that starts takes more of the processors than all that is compared.
func (t *toll) again() {
	t.upset++
	t.trials--
	t.early++
	t.wait = t.pause()
	t.era = t.gains.drop()
}

// abandon ends a trial that did not come to its end.
func (t *toll) abandon() {
	if t.left > 0 {
		t.left, t.era = 0, t.gains.drop()
	}
}

// cost is how many times the processor time an activation takes where invocations run ahead, and how much it may be without much of a
// surprise, unless it rather saves some; 0 if that is not known.
func (t *toll) cost() (mean, most float64) {
	if len(t.kept) < trialsLeast {
		return 0, 0
	}
	mean, doubt := times(t.kept, trial.cost)
	if mean < 1 {
		return mean, mean
	}
	return mean, mean * doubt
}

// more is how many times as many invocations begin where they run ahead, of late: clients come and go.
func (t *toll) more() float64 {
	mean, _ := times(t.kept[max(0, len(t.kept)-trialsLeast):], trial.more)
	return mean
}

// times is the mean of what trials tell, each of them no more than trialTells, as their loads may have been unlike each other; and
// by how many times it may be wrong: two standard errors.
func times(trials []trial, of func(trial) float64) (mean, doubt float64) {
	var sum, squares float64
	for _, one := range trials {
		x := math.Log(min(max(of(one), 1/trialTells), trialTells))
		sum, squares = sum+x, squares+x*x
	}
	n := float64(max(1, len(trials)))
	return math.Exp(sum / n), math.Exp(2 * math.Sqrt(max(0, squares/n-sum*sum/n/n)/n))
}

func (t trial) cost() float64 { return t.ahead.own / t.ahead.done / (t.plain.own / t.plain.done) }
func (t trial) more() float64 { return t.ahead.begun / t.ahead.took / (t.plain.begun / t.plain.took) }

// both is the sum of all halves in which invocations ran ahead, and of the others.
func both(trials []trial) (ahead, plain half) {
	for _, h := range trials {
		ahead, plain = ahead.plus(h.ahead), plain.plus(h.plain)
	}
	return ahead, plain
}

func (h half) plus(o half) half {
	return half{took: h.took + o.took, own: h.own + o.own, used: h.used + o.used, begun: h.begun + o.begun, done: h.done + o.done}
}
