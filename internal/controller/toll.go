package controller

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// How the toll is taken.
const (
	stretchLeast = 500 * time.Millisecond
	stretchMost  = 1500 * time.Millisecond // after twice that it says nothing: nobody came for a while
	stretchDone  = 20                      // activations at least, for the time that each takes to be known
	trialBusy    = 0.6                     // share of the processors in use from which it is asked what running ahead costs
	trialEvery   = 16                      // of so many stretches, two are a trial
	trialRarely  = 64                      // the same while nothing runs ahead: trials cost then
	trialsKept   = 7                       // of which the one in the middle counts
	trialsLeast  = 3                       // before anything is barred: one follows the other until then
	tollWorth    = 1.05                    // times the processor time: is not told from none
	tollBrings   = 1.3                     // times as many activations: their clients wait for one before they ask for the next
	tollBar      = 0.8                     // share of the processors in use, if all run ahead, from which none does
	tollLift     = 0.7                     // and from which down they do again
	tollWeight   = 0.5                     // of the newest stretch in a moving average
)

// toll finds out how many times the processor time an activation takes where invocations run ahead, and has none do so while the
// processors have no time for that (C5): on processors that are nearly all busy, each activation waits for what others do ahead.
// It goes by stretches of time. In trials all invocations of one stretch run ahead and none of its neighbour, to compare. What
// others' programs take counts where the processors' use is asked for, not in the comparison.
type toll struct {
	spent func() (own, all time.Duration, known bool) // may be nil

	mu       sync.Mutex // guards the rest
	since    time.Time  // when this stretch began
	own, all time.Duration
	known    bool // own and all are what was spent then
	plain    bool // nothing runs ahead in it
	done     int  // activations ended in it
	trial    int  // its number, from the beginning of a trial

	before stretch   // the first of a trial
	costs  []float64 // that trials showed: times the processor time of an activation, the newest last
	gains  []float64 // times the activations in a second
	busy   float64   // share of the processors that is in use if all run ahead: moving average
	barred bool
}

// stretch is what was seen in one.
type stretch struct {
	plain bool
	each  float64 // seconds of the processors that an activation took; 0: not known
	rate  float64 // activations in a second
	own   float64 // share of the processors that the server and its sandboxes took
	other float64 // that others' programs did
}

// allows reports whether an invocation that begins now may run ahead.
func (t *toll) allows(now time.Time) bool {
	if t.spent == nil {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	passed := now.Sub(t.since)
	if passed >= stretchMost || passed >= stretchLeast && t.done >= stretchDone {
		t.turn(now, passed)
	}
	return !t.plain
}

// ended counts an activation.
func (t *toll) ended() {
	t.mu.Lock()
	t.done++
	t.mu.Unlock()
}

func (t *toll) read() (cost float64, barred bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return middle(t.costs), t.barred
}

// turn ends a stretch and begins the next.
func (t *toll) turn(now time.Time, passed time.Duration) {
	own, all, known := t.spent()
	if known && t.known && passed < 2*stretchMost {
		t.learn(t.seen(own-t.own, all-t.all, passed.Seconds()))
	} else if t.trial == 0 {
		t.trial = trialRarely // it is lost, and comes again
	}
	t.since, t.own, t.all, t.known, t.done = now, own, all, known, 0
	t.plain = t.choose()
}

func (t *toll) seen(own, all time.Duration, passed float64) stretch {
	processors := passed * float64(runtime.GOMAXPROCS(0))
	s := stretch{plain: t.plain, own: own.Seconds() / processors, other: max(0, (all-own).Seconds()/processors)}
	if t.done >= stretchDone {
		s.each, s.rate = own.Seconds()/float64(t.done), float64(t.done)/passed
	}
	return s
}

// learn takes what was seen in a stretch into account.
func (t *toll) learn(s stretch) {
	if t.trial == 1 && s.each > 0 && t.before.each > 0 {
		ahead, plain := s, t.before
		if s.plain {
			ahead, plain = plain, ahead
		}
		t.costs = latest(t.costs, ahead.each/plain.each)
		t.gains = latest(t.gains, ahead.rate/plain.rate)
	}
	t.before = s
	busy := s.own + s.other
	if cost := middle(t.costs); s.plain && cost > 0 {
		busy = s.own*cost + s.other
	}
	t.busy += tollWeight * (busy - t.busy)
	bar := tollBar
	if t.barred {
		bar = tollLift
	}
	t.barred = t.busy > bar && middle(t.costs) > tollWorth && middle(t.gains) < tollBrings
}

// choose decides whether nothing runs ahead in the next stretch.
func (t *toll) choose() (plain bool) {
	t.trial++
	every := trialEvery
	if t.barred {
		every = trialRarely
	}
	switch {
	case t.trial == 1: // the other half of a trial
		return !t.plain
	case t.busy > trialBusy && (t.trial >= every || len(t.costs) < trialsLeast):
		t.trial = 0
		return !t.plain // so that sometimes the one comes first, sometimes the other
	default:
		return t.barred
	}
}

// latest adds a value to those that are kept.
func latest(values []float64, v float64) []float64 {
	values = append(values, v)
	return values[max(0, len(values)-trialsKept):]
}

// middle is the median; 0 if there are too few.
func middle(values []float64) float64 {
	if len(values) < trialsLeast {
		return 0
	}
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
