package worker

import (
	"context"
	"math/bits"
	"runtime"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// tenant is the worker's state of one namespace that has a pool. Guarded by Worker.mu.
//
// While activations wait, sandboxes go to the tenant that was served least since the waiting began. A tenant that floods
// the queue delays only itself.
type tenant struct {
	name    string
	pools   int
	queued  int           // runs that wait
	held    int64         // bytes charged for its sandboxes
	served  time.Duration // that its activations occupied sandboxes, in this epoch
	epoch   int           // of served
	weight  int           // CPU weight of each of its sandboxes
	working int           // its busy sandboxes, as weigh has counted them
}

func (w *Worker) tenantOf(namespace string) *tenant {
	t := w.tenants[namespace]
	if t == nil {
		t = &tenant{name: namespace, weight: sandbox.DefaultCPUWeight}
		w.tenants[namespace] = t
	}
	return t
}

// queued counts one more waiting run of a tenant. A tenant is not owed service for the time in which it did not wait. An
// epoch ends when no run waits.
func (w *Worker) queued(t *tenant) {
	if t.queued++; t.queued > 1 {
		return
	}
	least, waiting := time.Duration(0), false
	for _, o := range w.tenants {
		if o != t && o.queued > 0 && (!waiting || o.served < least) {
			least, waiting = o.served, true
		}
	}
	if !waiting {
		w.epoch++
	}
	if t.epoch != w.epoch {
		t.epoch, t.served = w.epoch, 0
	}
	t.served = max(t.served, least)
}

// overShare reports whether a tenant that got bytes more would hold more than its part of the room.
func (w *Worker) overShare(t *tenant, bytes int64) bool {
	return t.held+bytes > w.limit/int64(max(1, len(w.tenants)))
}

// claimsRoom reports whether a pool that waits for room may take the room of other tenants' speculative activations. A
// tenant above its share may only do so for an action without a sandbox, because activations that wait for such an
// action may hold the others.
func (w *Worker) claimsRoom(p *pool) bool { return len(p.sandboxes) == 0 || !w.overShare(p.tenant, 0) }

// starve puts a pool among those that wait for a sandbox.
func (w *Worker) starve(p *pool) {
	if !p.hungry {
		p.hungry = true
		w.hungry = append(w.hungry, p)
	}
}

// feed takes a pool off the list of those that wait for a sandbox.
func (w *Worker) feed(p *pool) {
	if p.hungry {
		p.hungry = false
		w.hungry = slices.DeleteFunc(w.hungry, func(h *pool) bool { return h == p })
	}
}

// feedHungry serves those that wait for a sandbox, in turn, until one has to wait on.
func (w *Worker) feedHungry() {
	for !w.closing {
		p := w.hungriest()
		if p == nil || !w.serve(p) {
			return
		}
	}
}

// hungriest returns the pool to serve next. Pools with runs that are not speculative come first, then the tenant that
// was served least, then the longest wait. Pools without a sandbox are left out while nothing may start for them.
// Hopeless pools are left out, and so are pools that must leave room for others.
func (w *Worker) hungriest() *pool {
	if len(w.hungry) == 0 {
		return nil
	}
	now := time.Now()
	mayStart, ahead, hopeless := w.mayStart(now), w.mayStartAhead(), w.first(w.isHopeless)
	return w.first(func(p *pool) bool {
		if w.isHopeless(p) || hopeless != nil && hopeless.before(p) && p.takesLong(now) {
			return false
		}
		return mayStart && (p.heads() > 0 || ahead && !p.inTurn) || p.idleSandbox() != nil
	})
}

// first returns the next hungry pool among those that satisfy a condition.
func (w *Worker) first(is func(*pool) bool) (first *pool) {
	for _, p := range w.hungry {
		if (first == nil || p.before(first)) && is(p) {
			first = p
		}
	}
	return first
}

func (p *pool) before(o *pool) bool {
	if ahead := p.queue[0].isAhead(); ahead != o.queue[0].isAhead() {
		return !ahead // C5
	}
	if p.tenant != o.tenant && p.tenant.served != o.tenant.served {
		return p.tenant.served < o.tenant.served
	}
	return p.queue[0].queued.Before(o.queue[0].queued)
}

// late tells whose activations have waited for a sandbox although they are not speculative: at the last look, since the one before.
type late struct {
	tenants map[string]bool
	room    bool // for room that others' may have
}

// stops reports whether a waiting pool stops the speculation of a namespace (C5). A pool that waits for its own
// sandboxes, for a start or for processors does not: speculative runs of others get none of these before it. Neither
// does a pool without a claim on their room.
func (l *late) stops(namespace string) bool { return l.room || l.tenants[namespace] }

func (w *Worker) lookLate(now time.Time) *late {
	l := &late{tenants: make(map[string]bool)}
	for _, p := range w.pools {
		if len(p.queue) > 0 && p.hasWaited(now) {
			l.tenants[p.tenant.name] = true
			l.room = l.room || w.claimsRoom(p) && w.lacksRoom(p, now)
		}
	}
	return l
}

// mayStartAhead reports whether a sandbox may start for speculative runs. While other runs wait, the next start may be
// for one of them, and needs a processor (C5).
func (w *Worker) mayStartAhead() bool { return len(w.late.Load().tenants) == 0 }

// goesBehind reports whether other pools come before a pool that has sandboxes and wants one more. These are the pools
// without a sandbox. A pool with speculative runs alone does not precede p unless p has only such runs too (C5).
func (w *Worker) goesBehind(p *pool) bool {
	ahead, h := p.queue[0].isAhead(), w.rival(p)
	return ahead && !w.mayStartAhead() || h != nil && (ahead || !h.queue[0].isAhead())
}

// serve gives a hungry pool one of its idle sandboxes, or starts one. It reports false if that has to wait.
func (w *Worker) serve(p *pool) bool {
	now := time.Now()
	switch {
	case p.idleSandbox() != nil:
		if !w.give(p, p.queue[0]) {
			return false
		}
		w.pop(p)
	case p.working() && !w.wantsMore(p, now):
	case !w.startFor(p):
		return false
	}
	if p.idleSandbox() == nil {
		w.feed(p)
	}
	return true
}

// yields reports whether a free sandbox of a pool with a queue is rather to make room for another pool: of the same tenant for
// one without a sandbox whose run is older, of another tenant if that was served less.
func (w *Worker) yields(p *pool) bool {
	h := w.rival(p)
	if h == nil || h == p || !h.before(p) {
		return false
	}
	return w.blocked(h) && (h.tenant != p.tenant || !h.working())
}

// rival is the pool whose turn it is, or a hopeless one for which p is to leave room.
func (w *Worker) rival(p *pool) *pool {
	if len(w.hungry) > 0 && p.takesLong(time.Now()) {
		if h := w.first(w.isHopeless); h != nil && h.before(p) {
			return h
		}
	}
	return w.hungriest()
}

// blocked reports whether a hungry pool waits for room, and not only for a start.
func (w *Worker) blocked(h *pool) bool {
	need, sandboxes := h.memory(), 1
	if b := h.idleSandbox(); b != nil {
		need, sandboxes = b.memory()-b.charged, 0
	}
	return w.sandboxes+sandboxes > w.config.MaxSandboxes || w.charged+need > w.limit
}

// expire ends the runs that have waited too long, those that were promoted since then.
func (w *Worker) expire(now time.Time) {
	for _, p := range w.pools {
		late := false
		for len(p.queue) > 0 && now.Sub(p.queue[0].asked) > w.config.QueueTimeout {
			w.giveUp(w.pop(p))
			late = true
		}
		if late {
			w.prune(p)
		}
	}
}

// giveUp ends a run that has waited too long.
func (w *Worker) giveUp(r *run) {
	w.unbook(r)
	r.answerCaller()
	w.counters.Expired++
	w.counters.ended(forerun.InternalError)
	result := waitFailure(w.config.QueueTimeout)
	w.alive.Go(func() { r.tellEnded(forerun.RunEnd{Status: result.Status, Result: result.Value}) })
}

// expired ends a run that has waited too long for its turn.
func (w *Worker) expired(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.squashed {
		w.giveUp(r)
	}
}

// Queued is how many of a namespace's activations wait for a sandbox, of those whose turn it is.
func (w *Worker) Queued(namespace string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.tenants[namespace]
	if t == nil || t.queued == 0 {
		return 0
	}
	for _, p := range w.pools {
		if p.tenant == t {
			n += p.heads()
		}
	}
	return n
}

// weigh shares the processors out: while the activations of several tenants want them, the sandboxes of each get what one
// has, together. It reports whether there is a need to look again.
func (w *Worker) weigh() bool {
	busy := w.share()
	for _, p := range w.pools {
		weight := p.tenant.weight
		for _, b := range p.sandboxes {
			if b.state != sandboxStarting && b.weight != weight {
				b.weight = weight
				w.alive.Go(func() { _ = b.setWeight(weight) })
			}
		}
	}
	return len(w.tenants) > 1 && busy > runtime.GOMAXPROCS(0)
}

// share sets the CPU weight of each tenant's sandboxes; a single tenant gets the usual weight. It returns the number of
// busy sandboxes.
func (w *Worker) share() (busy int) {
	for _, t := range w.tenants {
		t.working = 0
	}
	for _, p := range w.pools {
		for _, b := range p.sandboxes {
			if b.state != sandboxIdle {
				p.tenant.working++
				busy++
			}
		}
	}
	for _, t := range w.tenants {
		t.weight = sandbox.DefaultCPUWeight
		if len(w.tenants) > 1 {
			t.weight = weightOf(t.working)
		}
	}
	return busy
}

// weightOf is the weight of each of n sandboxes that share one weight. It changes only when n doubles.
func weightOf(sandboxes int) int {
	if sandboxes < 2 {
		return sandbox.DefaultCPUWeight
	}
	return max(leastWeight, sandbox.DefaultCPUWeight>>bits.Len(uint(sandboxes-1)))
}

// leastWeight gives a sandbox with a speculative activation a quarter of the weight of others (C5): the smallest weight
// is 1.
const leastWeight = 4

// asideWeight is the share of the processors of a sandbox that starts while others serve its pool: a start takes the time of many
// activations, and those come first.
const asideWeight = 1

// asideFor bounds a start at low weight. Later an activation may wait for it, while other work keeps the processors
// busy.
const asideFor = 250 * time.Millisecond

// startAside lowers the weight of a sandbox that loads its code, if other sandboxes serve its pool meanwhile. This lasts
// until stop, or for most of the load's time limit.
func (b *pooledSandbox) startAside() (stop func() error) {
	if b.w.turns.bounds || !b.isBeside() { // else loading has the slabs of a phase
		return func() error { return nil }
	}
	fully := func() error { return b.setWeight(b.startWeight()) }
	_ = b.setWeight(asideWeight) // if it has ended that will be seen
	limit := time.Duration(b.pool().action.Limits.Timeout) * time.Millisecond
	timer := time.AfterFunc(min(asideFor, limit/4), func() { _ = fully() })
	return func() error {
		timer.Stop()
		return fully()
	}
}

// isBeside reports whether other sandboxes serve the sandbox's pool.
func (b *pooledSandbox) isBeside() bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return slices.ContainsFunc(b.pool().sandboxes, func(o *pooledSandbox) bool { return o.state != sandboxStarting && !o.isAhead() })
}

// startWeight is the weight of a sandbox of this tenant now.
func (b *pooledSandbox) startWeight() int {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.weight = b.pool().tenant.weight
	return b.weight
}

// setWeight fails if the sandbox has ended.
func (b *pooledSandbox) setWeight(weight int) error {
	b.weighing.Lock()
	defer b.weighing.Unlock()
	if b.behind.Load() {
		weight = max(1, weight/behindShare)
	}
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Limit(ctx, sandbox.Limits{CPUWeight: weight})
}
