package controller

import (
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// The constants of the toll.
const (
	stretchLeast = 500 * time.Millisecond
	stretchMost  = 1500 * time.Millisecond
	trialMost    = 10 * time.Second // of a stretch that is one half of a trial
	settling     = 250 * time.Millisecond
	silence      = time.Second // after which nothing is known of what was between
	enoughDone   = 20          // activations, for the time that each takes to be known
	trialBusy    = 0.45        // share of busy processors from which trials measure the cost and gain of speculation
	trialCalm    = 0.35        // and below which they stop
	trialEvery   = 6           // stretches between the first trials under load
	trialsFirst  = 15          // of these, at most
	trialsFresh  = 2           // more of them for each action that comes
	trialRarely  = 112         // stretches between trials after those, or where one costs more than it can teach
	trialFresh   = 100         // stretches under load, in which what a trial told of the cost holds
	calmLeast    = time.Minute // without load, before another load has first trials of its own
	tollWorth    = 1.05        // times the processor time: is not told from none
	tollBrings   = 1.5         // times as many invocations: their clients wait for one before they ask for the next
	tollBar      = 0.8         // share of busy processors, if all invocations speculate, from which none does
	tollLast     = 0.95        // the same where answers come sooner by more than it costs
	tollEase     = 6           // stretches of less, after which they do again
	tollWeight   = 0.5         // of the newest stretch in a moving average
)

// toll measures whether the processors have time for speculation (C5). On nearly busy processors, speculation that uses
// more processor time than running in order delays all requests. Invocations that begin then do not speculate.
//
// Time is divided into stretches. While the processors are busy some stretches are trials, in pairs: invocations
// speculate in one and not in the other. The processor use of other programs counts for the busy share, and not for the
// comparison. The trials also find actions whose answers are not faster with speculation on busy processors; these do
// not speculate either. Actions that certainly gain much speculate in both halves, unless the trial measures the cost.
type toll struct {
	spent      func() (s forerun.Spent, known bool) // may be nil
	processors int

	phase atomic.Pointer[phase]
	gains gains
	last  atomic.Int64 // when an invocation asked, in Unix nanoseconds
	done  atomic.Int64 // activations ended, since ever
	begun atomic.Int64 // invocations that could speculate, in all
	back  atomic.Int64 // of these, that may not
	spare atomic.Int64 // invocations that may speculate since the trial began, although others may not

	mu     sync.Mutex // guards the rest
	since  time.Time  // when this stretch began
	from   mark       // as it was then
	known  bool       // from is
	settle bool       // invocations of the previous stretch are still running: then it begins again

	left   int       // halves of a trial that are to come, this stretch included
	boxes  int       // sandboxes that had started before it, since ever
	upset  int       // trials in a row that more started in
	era    int       // of the answers
	wait   int       // stretches until the next
	trials int       // since ever
	early  int       // of the first ones under load, that are to come
	fresh  int       // stretches under load, until what it costs has to be found out again
	calm   time.Time // when the last load was over
	first  half
	kept   []trial // the newest last
	ease   int     // stretches since the processors had no time for it
	busy   float64 // share of busy processors if all invocations speculate: moving average
	extra  float64 // the part of it that speculation adds: moving average
	afresh bool    // this stretch is the first behind a silence
	loaded bool    // they are in use so much that it matters
	barred bool
	unsure bool // it is not, for clients that wait: which was seen a while ago, and under another load perhaps
}

// phase is what the present stretch is.
type phase struct {
	plain   bool // nothing is speculative in it
	trial   bool // it is one half of one
	spares  bool // actions that certainly gain much speculate in it all the same
	settled bool // and what began before it has ended, nearly
	loaded  bool // the processors are busy
	era     int  // of the answers
}

// permit says whether an invocation may speculate, and which trial its answer counts for.
type permit struct {
	ahead  bool
	why    forerun.ReasonCode // it may not
	counts bool
	what   asked
	began  time.Time
	era    int
}

// mark is what has been counted at a moment.
type mark struct {
	forerun.Spent
	done, begun, back int64
}

// shares are the shares of the processors that Forerun used, and everybody, up to another moment.
func (m mark) shares(to mark) (own, all float64, known bool) {
	whole := (to.Whole - m.Whole).Seconds()
	return (to.Own - m.Own).Seconds() / whole, (to.All - m.All).Seconds() / whole, whole > 0
}

// heldBack is the share of the invocations up to another moment that might not speculate.
func (m mark) heldBack(to mark) float64 {
	return min(1, float64(to.back-m.back)/max(1, float64(to.begun-m.begun)))
}

// ask says whether an invocation that begins now may speculate. It does not wait for a reader of the meters.
func (t *toll) ask(now time.Time, what asked) permit {
	if t.spent == nil {
		return permit{ahead: true}
	}
	before := time.Unix(0, t.last.Swap(now.UnixNano()))
	if t.mu.TryLock() {
		t.look(now, before)
		t.mu.Unlock()
	}
	t.begun.Add(1)
	is := t.is()
	p := permit{counts: is.settled, what: what, began: now, era: is.era}
	switch {
	case is.plain && is.spares && t.gains.large(what):
		t.spare.Add(1)
		p.ahead = true
		return p
	case is.plain && is.trial:
		p.why = forerun.ReasonMeasuring
	case is.plain:
		p.why = forerun.ReasonNoProcessorTime
	case !is.trial && is.loaded && t.gains.vain(what):
		p.why = forerun.ReasonNoGain
	default:
		p.ahead = true
		return p
	}
	t.back.Add(1)
	return p
}

// answered takes an invocation into account that has ended, if it did so well.
func (t *toll) answered(p permit, status forerun.Status, now time.Time) {
	if !p.counts || status != forerun.Success || !t.gains.note(p, now.Sub(p.began)) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.early = min(max(t.early, 0)+trialsFresh, trialsFirst)
	t.wait = min(t.wait, trialEvery)
}

// is tells the phase.
func (t *toll) is() phase {
	if now := t.phase.Load(); now != nil {
		return *now
	}
	return phase{}
}

// ended counts an activation.
func (t *toll) ended() { t.done.Add(1) }

// read tells what running ahead costs, whether nothing may, and how many actions do not as they gain nothing.
func (t *toll) read() (cost float64, barred bool, vain int) {
	vain = t.gains.vanities()
	t.mu.Lock()
	defer t.mu.Unlock()
	cost, _ = t.cost()
	return cost, t.barred, vain
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
		is := t.is()
		is.settled = true
		t.phase.Store(&is)
		return
	case passed < stretchLeast, done < enoughDone && passed < t.most():
		return
	}
	to, known := t.mark()
	switch {
	case !known || !t.known:
		t.abandon()
		t.busy, t.extra, t.loaded, t.barred = 0, 0, false, false
	case silent:
		t.abandon()
		back := t.from.heldBack(to)
		if to.begun-t.from.begun >= enoughDone { // they paused, and begin again
			back = 1
		}
		t.use(now, to, back, true)
	default:
		t.learn(to, passed.Seconds())
		t.use(now, to, t.from.heldBack(to), false)
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
	m = mark{done: t.done.Load(), begun: t.begun.Load(), back: t.back.Load()}
	m.Spent, known = t.spent()
	return m, known
}

// use takes into account how busy the processors were while a part of the invocations was kept from running ahead, and decides
// whether there is time for it. Behind a silence what was before it does not count.
func (t *toll) use(now time.Time, to mark, back float64, silent bool) {
	own, all, known := t.from.shares(to)
	if !known {
		return
	}
	_, cost := t.cost() // at most: what is due comes first
	extra, weight := 0., tollWeight
	if cost > 0 {
		extra = own * (cost - 1) / (1 + (cost-1)*(1-back))
	}
	busy := all + extra*back
	if silent || t.afresh || busy < trialCalm { // another load than before, or none
		weight = 1
	}
	t.afresh = silent
	t.busy += weight * (busy - t.busy)
	t.extra += weight * (extra - t.extra)
	t.load(now)
	tight, wait := cost > tollWorth && t.isTight(cost), t.more() >= tollBrings
	t.bar(tight && !wait, silent)
	t.unsure = tight && wait && t.fresh <= trialFresh-trialEvery
}

// bar keeps invocations from running ahead where the processors have no time for that, until they have had it for a while, or the load
// is over. Behind a silence another load may come than before: then it is enough that they have it once.
func (t *toll) bar(tight, silent bool) {
	switch t.ease++; {
	case silent:
		t.ease = tollEase - 1
	case tight:
		t.ease = 0
	}
	t.barred = tight || t.barred && t.loaded && t.ease < tollEase
}

// load notes whether the processors are so busy that it matters what runs ahead. A load that comes anew is looked at soon, unless it was
// there just now, and much was gained.
func (t *toll) load(now time.Time) {
	was := t.loaded
	t.loaded = t.busy > trialBusy || was && t.busy > trialCalm
	switch {
	case t.loaded && !was:
		another := now.Sub(t.calm) > calmLeast
		if another {
			t.early = trialsFirst
		}
		if another || !t.gains.much() {
			t.wait = min(t.wait, trialEvery)
		}
	case was && !t.loaded:
		t.calm = now
	}
	if t.busy >= tollBar && len(t.kept) < trialsLeast && t.early > 0 { // there may be no time for it, and it is not known what it costs
		t.wait = 0
	}
}

// choose decides what happens in the next stretch. Now and then, while the processors are busy, a trial begins: by turns with the half
// in which invocations run ahead, and with the other.
func (t *toll) choose(mayTry bool) {
	is := t.is()
	plain, spares := t.barred, is.spares
	if t.loaded {
		t.fresh--
	}
	t.wait--
	switch {
	case t.left > 0:
		plain = !is.plain
	case mayTry && t.loaded && (t.wait <= 0 || t.unsure):
		t.trials++
		t.early--
		t.left, t.boxes, plain = 2, t.from.Sandboxes-t.from.Starting, t.trials%2 == 0
		t.wait, spares = t.pause(), t.isCostKnown()
		t.spare.Store(0)
	}
	t.settle = t.left > 1 || t.left > 0 && plain != is.plain
	t.phase.Store(&phase{plain: plain, trial: t.left > 0, spares: t.left > 0 && spares, settled: t.left > 0 && !t.settle, loaded: t.loaded && mayTry, era: t.era})
}

// pause is how many stretches pass from the beginning of a trial to that of the next.
func (t *toll) pause() int {
	switch {
	case len(t.kept) < trialsLeast && t.trials < 2*trialsLeast: // else they are of no use: few activations end
		return 0
	case t.barred || t.early <= 0 || t.gains.clear():
		return trialRarely
	}
	return trialEvery
}

// isCostKnown reports whether it is known what running ahead costs, or there is time for it, whatever that is.
func (t *toll) isCostKnown() bool {
	return t.fresh > 0 && !t.barred && !t.unsure && (t.busy < tollBar || len(t.kept) >= trialsLeast)
}
