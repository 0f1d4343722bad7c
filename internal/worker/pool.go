package worker

import (
	"runtime"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// When a queue asks for one more sandbox (see pool.wants).
const (
	shortWait     = 5 * time.Millisecond   // worth another sandbox while processors are free
	longWait      = 100 * time.Millisecond // worth one while they are not, if the last ones paid
	tickEvery     = 50 * time.Millisecond  // how often a queue is looked at again
	serviceWeight = 0.2                    // of the newest service time in the moving average
)

// poolKey says what a sandbox holds: the code and settings of an action, for one invoking tenant.
type poolKey struct {
	digest    forerun.Digest
	namespace string
}

// pool is the sandboxes of one poolKey and the runs that wait for them. Guarded by Worker.mu.
type pool struct {
	key      poolKey
	action   *forerun.Action
	language *language
	queue    []*run // oldest first
	boxes    []*box
	starting int
	growth   growth
	service  time.Duration // moving average of the time that an activation occupies a sandbox; 0: none ended yet
}

// withdraw takes a run that waits out of its queue.
func (w *Worker) withdraw(r *run) {
	p := r.pool
	p.queue = slices.DeleteFunc(p.queue, func(q *run) bool { return q == r })
	if len(p.queue) == 0 {
		w.hungry = slices.DeleteFunc(w.hungry, func(h *pool) bool { return h == p })
		w.prune(p)
	}
}

// prune forgets a pool of which nothing is left.
func (w *Worker) prune(p *pool) {
	if len(p.boxes) == 0 && len(p.queue) == 0 && w.pools[p.key] == p {
		delete(w.pools, p.key)
	}
}

// enqueue gives a run to an idle sandbox, or lets it wait. It reports false when the worker is closing.
func (w *Worker) enqueue(r *run, l *language) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return false
	}
	key := poolKey{w.digests.Of(r.Action), r.Namespace}
	p := w.pools[key]
	if p == nil {
		p = &pool{key: key, action: r.Action, language: l}
		w.pools[key] = p
	}
	r.pool = p
	w.runs[r.Activation] = r
	w.counters.Runs++
	if b := p.idleBox(); b != nil {
		w.unidle(b)
		b.take(r)
		b.assigned <- r
		return true
	}
	p.queue = append(p.queue, r)
	w.consider(p)
	w.tickLater()
	return true
}

// idleBox is the idle sandbox that was used last: its memory is the warmest, and the others can grow old.
func (p *pool) idleBox() *box {
	var best *box
	for _, b := range p.boxes {
		if b.state == boxIdle && (best == nil || b.since.After(best.since)) {
			best = b
		}
	}
	return best
}

// consider starts sandboxes for a queue as long as it wants one and there is room.
func (w *Worker) consider(p *pool) {
	for {
		now := time.Now()
		if !w.mayStart(now) || !p.wants(now, w.load.saturated(now, w.busy())) {
			return
		}
		idleFor := time.Duration(0)
		if len(p.boxes) > 0 {
			idleFor = idleEnough
		}
		if !w.makeRoom(p.action.Limits.Memory, idleFor) {
			if len(p.boxes) == 0 && !slices.Contains(w.hungry, p) {
				w.hungry = append(w.hungry, p)
			}
			return
		}
		w.hungry = slices.DeleteFunc(w.hungry, func(h *pool) bool { return h == p })
		w.startBox(p)
	}
}

// busy is the number of sandboxes that do something.
func (w *Worker) busy() int { return w.boxes - len(w.idle) }

// wants reports whether one more sandbox is worth its start.
func (p *pool) wants(now time.Time, saturated bool) bool {
	switch {
	case len(p.queue) == 0 || p.starting >= len(p.queue):
		return false
	case len(p.boxes) == 0:
		return true
	}
	wait := time.Duration(len(p.queue)) * p.serviceTime(now) / time.Duration(len(p.boxes))
	return wait > shortWait && !saturated || wait > longWait && p.growth.pays(now)
}

// serviceTime is how long an activation probably occupies a sandbox: at least as long as every one that runs now has.
func (p *pool) serviceTime(now time.Time) time.Duration {
	shortest := time.Duration(-1)
	for _, b := range p.boxes {
		if b.state != boxBusy {
			continue
		}
		if elapsed := now.Sub(b.since); shortest < 0 || elapsed < shortest {
			shortest = elapsed
		}
	}
	return max(p.service, shortest, 0)
}

// idleEnough is how long a sandbox must have been idle to make room for one more of an action that has some: else two
// busy actions would take each other's in turns.
const idleEnough = time.Second

// makeRoom closes idle sandboxes, the least recently used first, until one of memory MiB fits. Only those are closed
// that have been idle for some time.
func (w *Worker) makeRoom(memory int, idleFor time.Duration) bool {
	fits := func() bool {
		return w.boxes < w.config.MaxSandboxes && w.memory+memory <= w.config.MemoryMiB
	}
	for !fits() {
		if len(w.idle) == 0 || time.Since(w.idle[0].since) < idleFor {
			return false
		}
		b := w.idle[0]
		w.unidle(b)
		w.forget(b)
		w.counters.Evicted++
		close(b.leave)
	}
	return true
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
		for _, b := range p.boxes {
			if b.state == boxStarting && now.Sub(b.since) < startingFor {
				fresh++
			}
		}
	}
	return fresh < maxStarting()
}

// maxStarting is how many starts may need a processor at a time.
func maxStarting() int { return max(2, runtime.GOMAXPROCS(0)) }

// startOver takes note that a box is no longer starting; others may have waited for that.
func (w *Worker) startOver(p *pool) {
	p.starting--
	w.starting--
	for _, q := range w.pools {
		if !w.closing && len(q.queue) > 0 && len(q.boxes) == 0 {
			w.consider(q)
		}
	}
}

func (w *Worker) startBox(p *pool) {
	w.lastBox++
	b := newBox(w, p, w.lastBox)
	p.boxes = append(p.boxes, b)
	p.growth.grew(time.Now())
	p.starting++
	w.starting++
	w.boxes++
	w.memory += p.action.Limits.Memory
	w.counters.ColdStarts++
	w.alive.Go(b.live)
}

// unidle takes a box off the list of idle ones.
func (w *Worker) unidle(b *box) {
	w.idle = slices.DeleteFunc(w.idle, func(i *box) bool { return i == b })
}

// forget takes a box that is closing off the books, and its pool when nothing is left of it.
func (w *Worker) forget(b *box) {
	if b.state == boxGone {
		return
	}
	p := b.pool
	wasStarting := b.state == boxStarting
	b.state = boxGone
	p.boxes = slices.DeleteFunc(p.boxes, func(o *box) bool { return o == b })
	w.boxes--
	w.memory -= p.action.Limits.Memory
	w.prune(p)
	if wasStarting {
		w.startOver(p)
	}
}

// next marks a box as free and returns what it is to run. It returns nil with idle true when there is nothing yet, and
// with idle false when the box is to close: for a queue that waits longer and has no sandbox, or for good.
func (w *Worker) next(b *box) (r *run, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, now := b.pool, time.Now()
	switch b.state {
	case boxStarting:
		b.state = boxIdle
		w.startOver(p)
	case boxBusy:
		p.learn(now.Sub(b.since))
	}
	b.state, b.since = boxIdle, now
	switch {
	case w.closing:
	case len(w.hungry) > 0 && (len(p.queue) == 0 || w.hungry[0].queue[0].queued.Before(p.queue[0].queued)):
		if len(p.queue) == 0 {
			w.idle = append(w.idle, b) // it makes room if need be
			w.feedHungry()
			return nil, b.state == boxIdle
		}
	case len(p.queue) > 0:
		r = p.queue[0]
		p.queue = p.queue[1:]
		b.take(r)
		return r, false
	default:
		w.idle = append(w.idle, b)
		return nil, true
	}
	w.forget(b)
	w.feedHungry()
	return nil, false
}

// learn takes a service time into the moving average.
func (p *pool) learn(d time.Duration) {
	p.growth.ended++
	if p.service == 0 {
		p.service = d
		return
	}
	p.service += time.Duration(serviceWeight * float64(d-p.service))
}

// feedHungry starts sandboxes for pools that have none, the oldest first, as far as there is room.
func (w *Worker) feedHungry() {
	for _, p := range slices.Clone(w.hungry) {
		w.consider(p)
	}
}

// gone takes a box that ended off the books. Its queue gets another box, or, when the code could not be loaded and no
// other box of the pool lives, the runs that waited are returned to be failed.
func (w *Worker) gone(b *box, loadFailed bool) (failed []*run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unidle(b)
	p := b.pool
	others := slices.ContainsFunc(p.boxes, func(o *box) bool { return o != b && o.state != boxStarting })
	if loadFailed && !others {
		failed, p.queue = p.queue, nil
		w.hungry = slices.DeleteFunc(w.hungry, func(h *pool) bool { return h == p })
	}
	w.forget(b)
	if !w.closing {
		w.consider(p)
		w.feedHungry()
	}
	return failed
}

// tickLater looks at the queues again in a while, as long as there are any.
func (w *Worker) tickLater() {
	if w.ticking || w.closing {
		return
	}
	w.ticking = true
	after := tickEvery
	if w.load.stale(time.Now()) {
		after = 0 // to measure from now on
	}
	time.AfterFunc(after, w.tick)
}

func (w *Worker) tick() {
	w.load.sample(time.Now())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticking = false
	if w.closing {
		return
	}
	for _, p := range w.pools {
		if len(p.queue) > 0 {
			w.consider(p)
			w.tickLater()
		}
	}
}
