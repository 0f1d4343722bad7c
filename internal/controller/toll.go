package controller

import (
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// How the toll is taken.
const (
	stretchLeast = 500 * time.Millisecond
	stretchMost  = 1500 * time.Millisecond
	trialMost    = 10 * time.Second // of a stretch that is one half of a trial
	settling     = 250 * time.Millisecond
	silence      = time.Second // after which nothing is known of what was between
	enoughDone   = 20          // activations, for the time that each takes to be known
	trialBusy    = 0.6         // share of the processors in use from which it is asked what running ahead costs
	trialEvery   = 14          // stretches between trials
	trialRarely  = 62          // the same while nothing runs ahead: a trial costs something then
	trialsKept   = 7           // that count
	trialsLeast  = 3           // before anything is barred; until then one follows the other
	tollWorth    = 1.05        // times the processor time: is not told from none
	tollBrings   = 1.5         // times as many invocations: their clients wait for one before they ask for the next
	tollBar      = 0.8         // share of the processors in use, if all run ahead, from which none does
	tollLift     = 0.7         // and from which down they do again
	tollWeight   = 0.5         // of the newest stretch in a moving average
)

// toll finds out whether the processors have time for running ahead (C5): where they are nearly all busy, and it takes more of them
// than doing one after the other, all wait for what others do ahead. Invocations that begin then do not run ahead.
//
// It goes by stretches of time. While the processors are busy some stretches are trials: of two neighbours, invocations run ahead in
// one and not in the other. What others' programs take counts where the processors' use is asked for, not in the comparison.
type toll struct {
	spent func() (s forerun.Spent, known bool) // may be nil

	plain atomic.Bool  // nothing runs ahead in this stretch
	last  atomic.Int64 // when an invocation asked, in Unix nanoseconds
	done  atomic.Int64 // activations ended, since ever
	begun atomic.Int64 // invocations that could run ahead, since ever

	mu     sync.Mutex // guards the rest
	since  time.Time  // when this stretch began
	from   mark       // as it was then
	known  bool       // from is
	settle bool       // what the stretch before began is still to end: then it begins anew

	left   int // halves of a trial that are to come, this stretch included
	wait   int // stretches until the next
	trials int // since ever
	first  half
	kept   []trial // the newest last
	busy   float64 // share of the processors that is in use if all run ahead: moving average
	barred bool
}

// mark is what has been counted at a moment.
type mark struct {
	forerun.Spent
	done, begun int64
}

// half is what was seen in half a trial.
type half struct {
	plain bool
	own   float64 // seconds of the processors
	done  float64 // activations that ended
	rate  float64 // invocations that began in a second
}

// trial is both halves of one.
type trial struct{ ahead, plain half }

// allows reports whether an invocation that begins now may run ahead. It does not wait.
func (t *toll) allows(now time.Time) bool {
	if t.spent == nil {
		return true
	}
	before := time.Unix(0, t.last.Swap(now.UnixNano()))
	if t.mu.TryLock() {
		t.look(now, before)
		t.mu.Unlock()
	}
	t.begun.Add(1)
	return !t.plain.Load()
}

// ended counts an activation.
func (t *toll) ended() { t.done.Add(1) }

func (t *toll) read() (cost float64, barred bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cost, _ = t.compared()
	return cost, t.barred
}

// look ends the stretch if it is time for that. before is when the last invocation came.
func (t *toll) look(now, before time.Time) {
	passed, silent := now.Sub(t.since), now.Sub(before) > silence
	done := t.done.Load() - t.from.done
	switch {
	case silent:
	case t.settle && passed < settling:
		return
	case t.settle:
		t.settle, t.since = false, now
		t.from, t.known = t.mark()
		return
	case passed < stretchLeast, done < enoughDone && passed < t.most():
		return
	}
	to, known := t.mark()
	switch {
	case !known || !t.known:
		t.left, t.busy, t.barred = 0, 0, false
	case silent:
		t.left = 0
		t.use(to, 1)
	default:
		t.learn(to, passed.Seconds())
		t.use(to, tollWeight)
	}
	t.since, t.from, t.known = now, to, known
	t.choose(known && !silent)
}

// most is how long the stretch lasts if few activations end in it.
func (t *toll) most() time.Duration {
	if t.left > 0 {
		return trialMost
	}
	return stretchMost
}

func (t *toll) mark() (m mark, known bool) {
	m = mark{done: t.done.Load(), begun: t.begun.Load()}
	m.Spent, known = t.spent()
	return m, known
}

// learn takes a stretch into account that was half a trial.
func (t *toll) learn(to mark, passed float64) {
	if t.left == 0 {
		return
	}
	h := half{
		plain: t.plain.Load(), own: (to.Own - t.from.Own).Seconds(), done: float64(to.done - t.from.done),
		rate: float64(to.begun-t.from.begun) / passed,
	}
	if h.done < enoughDone || h.own <= 0 {
		t.left = 0
		return
	}
	if t.left--; t.left == 1 {
		t.first = h
		return
	}
	both := trial{ahead: h, plain: t.first}
	if h.plain {
		both = trial{ahead: t.first, plain: h}
	}
	t.kept = append(t.kept, both)
	t.kept = t.kept[max(0, len(t.kept)-trialsKept):]
}

// use takes into account how busy the processors were, and decides whether there is time for running ahead.
func (t *toll) use(to mark, weight float64) {
	whole := (to.Whole - t.from.Whole).Seconds()
	if whole <= 0 {
		return
	}
	own, all := (to.Own-t.from.Own).Seconds()/whole, (to.All-t.from.All).Seconds()/whole
	cost, gain := t.compared()
	if t.plain.Load() && cost > 0 {
		all += own * (cost - 1)
	}
	t.busy += weight * (all - t.busy)
	bar := tollBar
	if t.barred {
		bar = tollLift
	}
	t.barred = t.busy > bar && cost > tollWorth && gain < tollBrings
}

// choose decides what happens in the next stretch. Now and then, while the processors are busy, a trial begins: by turns with the half
// in which invocations run ahead, and with the other.
func (t *toll) choose(mayTry bool) {
	was, plain := t.plain.Load(), t.barred
	t.wait--
	switch {
	case t.left > 0:
		plain = !was
	case mayTry && t.busy > trialBusy && t.wait <= 0:
		t.trials++
		t.left, plain = 2, t.trials%2 == 0
		t.wait = t.pause()
	}
	t.plain.Store(plain)
	t.settle = t.left > 0 && plain != was
}

// pause is how many stretches pass from the beginning of a trial to that of the next.
func (t *toll) pause() int {
	switch {
	case len(t.kept) < trialsLeast && t.trials < 2*trialsLeast: // else they are of no use: few activations end
		return 0
	case t.barred:
		return trialRarely
	}
	return trialEvery
}

// compared is how many times the processor time an activation takes where invocations run ahead, and how many times as many
// invocations begin; 0 if that is not known.
func (t *toll) compared() (cost, gain float64) {
	if len(t.kept) < trialsLeast {
		return 0, 0
	}
	var ahead, plain half
	for _, h := range t.kept {
		ahead, plain = ahead.plus(h.ahead), plain.plus(h.plain)
	}
	return ahead.own / ahead.done / (plain.own / plain.done), ahead.rate / max(plain.rate, 1e-9)
}

func (h half) plus(o half) half {
	return half{own: h.own + o.own, done: h.done + o.done, rate: h.rate + o.rate}
}
