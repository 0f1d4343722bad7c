package worker

import (
	"runtime"
	"slices"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
)

const (
	tickEvery     = 50 * time.Millisecond // how often a queue is looked at again
	serviceWeight = 0.2                   // of the newest service time in the moving average
)

// poolKey says what a sandbox holds: the code and settings of an action, for one invoking tenant.
type poolKey struct {
	digest    forerun.Digest
	namespace string
	keeps     bool // its process serves one activation after the other, where the language could fork one for each
}

// pool is the sandboxes of one poolKey and the runs that wait for them. Guarded by Worker.mu.
type pool struct {
	key       poolKey
	tenant    *tenant
	action    *forerun.Action
	language  *language
	queue     []*run // oldest first
	sandboxes []*pooledSandbox
	starting  int
	hungry    bool   // it is on Worker.hungry
	kind      string // a prefix of schedule.Asks.Kind of all its phases
	growth    growth
	squashes  bool          // activations were squashed while they ran
	inTurn    bool          // its code is not loaded for speculative activations: it reached for the outside then, or failed
	diedAhead int           // sandboxes, in a row, that ended as they loaded it for who does
	runs      int           // given to its sandboxes since it has any
	cpu       time.Duration // processor time of an activation, as last measured; 0: never measured
	waits     waits
	startTook time.Duration // of the last sandbox that was started
	started   time.Time     // when it got its last sandbox
	service   time.Duration // moving average of the time that an activation occupies a sandbox; 0: none ended yet
	calm      time.Duration // the same, of those that had the processors for themselves
}

// poolOf finds the pool for a run, or makes one.
func (w *Worker) poolOf(r *forerun.Run, l *language) *pool {
	key := poolKey{w.digests.Of(r.Action), r.Namespace, keeps(r.Action)}
	p := w.pools[key]
	if p == nil {
		p = &pool{
			key: key, tenant: w.tenantOf(r.Namespace), action: r.Action, language: l.of(r.Action),
			kind: string(key.digest[:]) + key.namespace + "/",
		}
		p.tenant.pools++
		w.pools[key] = p
	}
	return p
}

// Annotations that say whether a process serves one activation after the other, as in OpenWhisk, in a language that could fork one for each.
const (
	freshProcess = "fresh-process" // true: it serves one
	keepProcess  = "keep-process"  // its older form, of the opposite sense
)

// keeps reports whether the action's process serves one activation after the other. Such a process may remember records that it read before, and no
// row of the memo table shows that. So an action for which rows stand keeps no process, unless its author says so.
func keeps(a *forerun.Action) bool {
	if keep := forerun.Lookup(a.Annotations, keepProcess); keep != nil {
		return string(keep) == "true"
	}
	return string(forerun.Lookup(a.Annotations, freshProcess)) != "true" && !annotation.CacheOf(a.Annotations).Kept
}

// prune forgets a pool of which nothing is left.
func (w *Worker) prune(p *pool) {
	if len(p.sandboxes) > 0 || len(p.queue) > 0 || w.pools[p.key] != p {
		return
	}
	delete(w.pools, p.key)
	if p.tenant.pools--; p.tenant.pools == 0 {
		delete(w.tenants, p.key.namespace)
	}
}

// memory is what an activation may use, in bytes.
func (p *pool) memory() int64 { return int64(p.action.Limits.Memory) << 20 }

// book registers a run until it has ended and is not speculative any more.
func (w *Worker) book(r *run) {
	w.runs[r.Activation] = r
	if r.Speculative {
		w.ahead.Add(1)
	}
}

// unbook takes a run off the books, which may have been before.
func (w *Worker) unbook(r *run) {
	if w.runs[r.Activation] == r && r.Speculative {
		w.ahead.Add(-1)
	}
	delete(w.runs, r.Activation)
}

// enqueue gives a run to an idle sandbox, or lets it wait. It reports false when the worker is closing.
func (w *Worker) enqueue(r *run, l *language) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing {
		return false
	}
	p := w.poolOf(r.Run, l)
	r.pool = p
	w.book(r)
	r.callFor(w.runs[r.Caller])
	w.counters.Runs++
	if len(p.queue) == 0 && w.give(p, r) {
		if len(w.tenants) > 1 && w.busy() > runtime.GOMAXPROCS(0) {
			w.tickLater()
		}
		return true
	}
	w.push(p, r)
	w.consider(p)
	w.unparkSoon(p)
	w.tickLater()
	return true
}

// give assigns a run to an idle sandbox of its pool, if there is one and the machine has the memory that the run may
// use.
func (w *Worker) give(p *pool, r *run) bool {
	b := p.idleSandbox()
	if b == nil || !w.makeRoom(need{tenant: p.tenant, bytes: b.memory() - b.charged, keep: b, first: true}) {
		return false
	}
	w.unidle(b)
	p.handed(r)
	b.take(r)
	b.assigned <- r
	return true
}

// push puts a run into its pool's queue.
func (w *Worker) push(p *pool, r *run) {
	w.queued(p.tenant)
	p.line(r)
}

// pop takes the oldest run from a queue that has one.
func (w *Worker) pop(p *pool) *run {
	r := p.queue[0]
	p.queue = p.queue[1:]
	p.tenant.queued--
	if len(p.queue) == 0 {
		w.feed(p)
	}
	return r
}

// putBack makes a run the oldest of its kind in its queue again.
func (w *Worker) putBack(r *run) {
	p, at := r.pool, 0
	if r.isAhead() {
		at = p.heads()
	}
	w.queued(p.tenant)
	p.queue = slices.Insert(p.queue, at, r)
}

// withdraw takes a run that waits out of its queue, unless it was taken out to be failed.
func (w *Worker) withdraw(r *run) {
	p := r.pool
	i := slices.Index(p.queue, r)
	if i < 0 {
		return
	}
	p.queue = slices.Delete(p.queue, i, i+1)
	p.tenant.queued--
	if len(p.queue) == 0 {
		w.feed(p)
		w.prune(p)
	}
}

// empty takes all runs out of a queue.
func (w *Worker) empty(p *pool) []*run {
	runs := p.queue
	p.tenant.queued -= len(runs)
	p.queue = nil
	w.feed(p)
	return runs
}

// idleSandbox is the idle sandbox that was used last: its memory is the warmest, and the others can grow old.
func (p *pool) idleSandbox() *pooledSandbox {
	var best *pooledSandbox
	for _, b := range p.sandboxes {
		if b.state == sandboxIdle && (best == nil || b.since.After(best.since)) {
			best = b
		}
	}
	return best
}

// working reports whether a sandbox of the pool will come to its queue by itself.
func (p *pool) working() bool {
	return slices.ContainsFunc(p.sandboxes, func(b *pooledSandbox) bool { return b.state != sandboxIdle })
}

// consider serves a queue, or has it served when its turn comes, and starts sandboxes for it as long as it wants more.
func (w *Worker) consider(p *pool) {
	for len(p.queue) > 0 && !w.closing {
		if !p.working() || p.idleSandbox() != nil {
			w.starve(p)
			w.feedHungry()
			return
		}
		now := time.Now()
		if !w.wantsMore(p, now) {
			return
		}
		if w.goesBehind(p) || !w.mayStart(now) {
			return
		}
		if !w.startFor(p) {
			if !w.overShare(p.tenant, p.memory()) {
				w.starve(p)
			}
			return
		}
	}
}

// startFor gets a pool one more sandbox, if there is room: one that has no code yet, or a new one.
func (w *Worker) startFor(p *pool) bool {
	blank := w.blankFor(p)
	n := need{tenant: p.tenant, bytes: p.memory(), sandboxes: 1, keep: blank, first: len(p.sandboxes) == 0}
	if blank != nil {
		n.bytes, n.sandboxes = n.bytes-blank.charged, 0
	}
	if !w.makeRoom(n) {
		return false
	}
	w.counters.ColdStarts++
	w.shelf(p.language).used = time.Now()
	if blank != nil {
		w.counters.Prewarmed++
		w.unshelve(blank)
		p.adopt(blank)
		close(blank.adopted)
		return true
	}
	b := w.newSandbox(p.language)
	p.adopt(b)
	w.alive.Go(b.live)
	return true
}

// adopt gives a sandbox to the pool. It then loads the pool's code.
func (p *pool) adopt(b *pooledSandbox) {
	w := b.w
	w.charge(b, 0)
	b.owner.Store(p)
	w.charge(b, p.memory())
	b.state, b.since, b.measured, b.forAhead = sandboxStarting, time.Now(), 0, p.heads() == 0
	p.growth.grew(b.since, len(p.sandboxes))
	p.started = b.since
	p.sandboxes = append(p.sandboxes, b)
	p.starting++
	w.starting++
}

// startOver notes that a sandbox is no longer starting. Other starts may have waited for that.
func (w *Worker) startOver(p *pool) {
	p.starting--
	w.starting--
}

// unidle removes a sandbox from the list of idle ones.
func (w *Worker) unidle(b *pooledSandbox) {
	w.idle = slices.DeleteFunc(w.idle, func(i *pooledSandbox) bool { return i == b })
}

// forget removes a closing sandbox, and its pool when the pool is empty.
func (w *Worker) forget(b *pooledSandbox) {
	if b.state == sandboxGone {
		return
	}
	was := b.state
	b.state = sandboxGone
	w.sandboxes--
	w.charge(b, 0)
	p := b.pool()
	if p == nil {
		w.unshelve(b)
		return
	}
	p.sandboxes = slices.DeleteFunc(p.sandboxes, func(o *pooledSandbox) bool { return o == b })
	p.growth = growth{}
	if len(p.sandboxes) == 0 {
		p.runs = 0
	}
	if was == sandboxStarting {
		w.startOver(p)
	}
	if was != sandboxIdle {
		w.lookStuck(time.Now())
	}
	w.prune(p)
}

// next marks a sandbox as free and returns its next run. It returns nil with idle true when no run waits. It returns nil
// with idle false when the sandbox must close, because other pools need its room or because the worker closes.
func (w *Worker) next(b *pooledSandbox) (r *run, idle bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b.state == sandboxGone {
		return nil, false
	}
	if w.closing || b.stopped.Err() != nil {
		w.forget(b)
		return nil, false
	}
	p, now := b.pool(), time.Now()
	started := b.state == sandboxStarting
	switch {
	case started:
		w.startOver(p)
		p.startTook = now.Sub(b.since)
	case b.state == sandboxBusy:
		p.tenant.served += now.Sub(b.since)
		p.learn(b.atWork(now), !w.load.crowded(now))
	}
	if b.atWork(now) >= stuckAfter {
		b.since = now
		w.lookStuck(now)
	}
	if len(p.queue) > 0 && !w.yields(p) {
		r = w.pop(p)
		p.handed(r)
		b.take(r)
	} else {
		w.rest(b, now)
	}
	if started || len(w.hungry) > 0 {
		w.feedHungry()
		w.refill()
	}
	return r, r == nil && b.state != sandboxGone
}

// rest makes a sandbox idle.
func (w *Worker) rest(b *pooledSandbox, now time.Time) {
	b.state, b.since, b.clock = sandboxIdle, now, w.clock
	w.idle = append(w.idle, b)
	if b.measured > 0 {
		w.charge(b, b.measured)
	}
	if p := b.pool(); len(p.queue) > 0 && !p.working() {
		w.starve(p)
	}
}

// learn takes a service time into the moving averages; calm is false if activations took the processors from each other.
func (p *pool) learn(d time.Duration, calm bool) {
	p.growth.ended++
	average(&p.service, d)
	if calm {
		average(&p.calm, d)
	}
}

func average(of *time.Duration, d time.Duration) {
	if *of == 0 {
		*of = d
	}
	*of += time.Duration(serviceWeight * float64(d-*of))
}

// gone removes a sandbox that has ended. Its queue gets another sandbox. If the code could not be loaded and the pool
// has no other live sandbox, gone returns the waiting runs, which fail.
func (w *Worker) gone(b *pooledSandbox, loadFailed bool) (failed []*run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unidle(b)
	p := b.pool()
	if p != nil && loadFailed && !slices.ContainsFunc(p.sandboxes, func(o *pooledSandbox) bool { return o != b && o.state != sandboxStarting }) {
		failed = w.empty(p)
	}
	w.forget(b)
	if w.closing {
		return failed
	}
	if p != nil {
		w.consider(p)
		if len(p.queue) > 0 {
			w.tickLater()
		}
	}
	w.feedHungry()
	w.refill()
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
	now := time.Now()
	w.load.sample(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ticking = false
	if w.closing {
		return
	}
	w.lookStuck(now)
	w.expire(now)
	w.feedHungry()
	w.late.Store(w.lookLate(now))
	for _, p := range w.pools {
		if len(p.queue) > 0 {
			w.consider(p)
			w.unpark(p)
			w.makeWay(p, now)
			w.tickLater()
		}
	}
	w.refill()
	if w.weigh() {
		w.tickLater()
	}
}
