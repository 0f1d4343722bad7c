package worker

import (
	"math"
	"runtime"
	"slices"
	"time"

	"forerun.dev/forerun/internal/schedule"
)

// When a queue asks for one more sandbox (see pool.wants).
const (
	shortWait = 5 * time.Millisecond   // worth another sandbox while processors are free
	longWait  = 100 * time.Millisecond // worth one while they are crowded, or taken, if the last ones paid
	oftenWait = 10 * time.Millisecond  // mean wait from which activations often wait; it is less where they take less than that
	waitsOver = 2 * time.Second        // for how long a wait counts
)

// wantsMore reports whether one more sandbox is worth its start to a pool that has some, and to the machine.
func (w *Worker) wantsMore(p *pool, now time.Time) bool {
	if w.turns.bounds {
		return w.turns.starts(p.asQueue(now))
	}
	return p.wants(now, w.load.pressure(now, w.busy()))
}

// asQueue is the pool as the scheduler sees it. Activations wait for it.
func (p *pool) asQueue(now time.Time) schedule.Queue {
	q := schedule.Queue{
		Due: p.heads(), Sandboxes: len(p.sandboxes), Starting: p.starting, Service: p.serviceTime(now), Start: p.startTook,
		Waited: p.queue[0].waited(now), SinceLast: now.Sub(p.started),
	}
	if !p.inTurn {
		q.Ahead = len(p.queue) - q.Due
	}
	for _, b := range p.sandboxes {
		if r := b.current; b.state == sandboxBusy && r != nil && !(r.isAhead() && !r.isParked()) {
			q.Serving = append(q.Serving, r.Activation)
		}
	}
	return q
}

// busy is the number of sandboxes that do something.
func (w *Worker) busy() int { return w.sandboxes - len(w.idle) - w.blanks() }

// wants reports whether one more sandbox is worth its start.
//
// For speculative activations a start is not worth it until they have waited for as long as a start takes:
// mostly several came at once, and speculative ones end soon. On crowded processors it is not worth it for speculative
// activations, which make way, and rarely for pools that have some. On pressed processors it is not worth it for a few
// activations that came at once, because a start takes the time of many. An activation that has waited long gets one in
// every case.
func (p *pool) wants(now time.Time, is pressure) bool {
	waiting := len(p.queue)
	if is.crowded || p.inTurn {
		waiting = p.heads()
	}
	switch {
	case waiting == 0 || p.starting >= waiting:
		return false
	case len(p.sandboxes) == 0, p.allCall():
		return true
	case !is.crowded && p.runsAhead() && !p.owes(now, waiting):
		return false
	case p.onlyAhead() && (!is.crowded || p.hasWaited(now)):
		return true
	}
	worth := shortWait
	if is.crowded && p.runsAhead() && !p.hasWaited(now) || is.pressed && (is.packed || !p.waitOften()) && p.queue[0].waited(now) < longWait {
		worth = longWait
	}
	wait := p.wait(now, waiting)
	return wait > worth && !is.saturated || wait > longWait && p.growth.pays(now, len(p.sandboxes), p.enough())
}

// allCall reports whether all activations that have the pool's sandboxes wait for others, perhaps for those that wait here: a function
// that calls itself.
func (p *pool) allCall() bool {
	return !slices.ContainsFunc(p.sandboxes, func(b *pooledSandbox) bool { return b.state != sandboxBusy || b.current == nil || b.current.calls == 0 })
}

// wait is how long the last of so many probably waits.
func (p *pool) wait(now time.Time, waiting int) time.Duration {
	return time.Duration(waiting) * p.serviceTime(now) / time.Duration(len(p.sandboxes))
}

// owes reports whether activations, recent and present, have together waited for as long as a start takes.
func (p *pool) owes(now time.Time, waiting int) bool {
	waits := p.waits
	waits.note(p.wait(now, waiting)*time.Duration(waiting+1)/2, now)
	return waits.sum() >= p.startTook
}

// waits are how often and how long activations that are not speculative waited for a sandbox. One counts less and less.
type waits struct {
	n, seconds float64
	at         time.Time // when the last of them got it
}

func (w *waits) note(d time.Duration, now time.Time) {
	old := math.Exp(-now.Sub(w.at).Seconds() / waitsOver.Seconds())
	w.n, w.seconds, w.at = w.n*old+1, w.seconds*old+d.Seconds(), now
}

func (w *waits) sum() time.Duration { return time.Duration(w.seconds * float64(time.Second)) }

func (w *waits) mean() time.Duration { return time.Duration(float64(w.sum()) / max(w.n, 1)) }

// waitOften reports whether activations often wait.
func (p *pool) waitOften() bool { return p.waits.mean() >= min(oftenWait, max(p.service, shortWait)) }

// waited is how long a run has waited since it is not speculative; 0: it is.
func (r *run) waited(now time.Time) time.Duration {
	if r.isAhead() {
		return 0
	}
	return now.Sub(r.asked)
}

// handed notes that a run gets a sandbox.
func (p *pool) handed(r *run) {
	if now := time.Now(); !r.isAhead() {
		p.waits.note(r.waited(now), now)
	}
}

// serviceTime is how long an activation probably occupies a sandbox: at least as long as every one that runs now has.
func (p *pool) serviceTime(now time.Time) time.Duration {
	shortest := time.Duration(-1)
	for _, b := range p.sandboxes {
		if b.state != sandboxBusy {
			continue
		}
		if elapsed := b.atWork(now); shortest < 0 || elapsed < shortest {
			shortest = elapsed
		}
	}
	return max(p.service, shortest, 0)
}

// hasWaited reports whether an activation that is not speculative waited for as long as from one look to the next.
func (p *pool) hasWaited(now time.Time) bool {
	return p.queue[0].waited(now) >= tickEvery
}

// startingFor is how long a start counts as one that needs a processor: code that takes longer to load mostly waits.
const startingFor = 500 * time.Millisecond

// mayStart reports whether one more start would not keep those under way, and the sandboxes that are warm, from their
// work. A queue that has to wait with its start is looked at again when one is over, and by tick.
func (w *Worker) mayStart(now time.Time) bool {
	if w.starting < maxStarting() {
		return true
	}
	fresh := 0
	for _, p := range w.pools {
		for _, b := range p.sandboxes {
			if b.state == sandboxStarting && now.Sub(b.since) < startingFor {
				fresh++
			}
		}
	}
	return fresh < maxStarting()
}

// maxStarting is how many starts may need a processor at a time.
func maxStarting() int { return max(2, runtime.GOMAXPROCS(0)) }
