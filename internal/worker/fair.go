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

// tenant is what the worker knows of one namespace that has a pool. Guarded by Worker.mu.
//
// While somebody has to wait, sandboxes go to the tenant that was served least since the waiting began: one that floods
// waits for itself.
type tenant struct {
	name    string
	pools   int
	queued  int           // runs that wait
	held    int64         // bytes that its boxes are charged
	served  time.Duration // that its activations occupied sandboxes, in this epoch
	epoch   int           // of served
	weight  int           // CPU weight of each of its boxes
	working int           // of its boxes, as weigh has counted
}

func (w *Worker) tenantOf(namespace string) *tenant {
	t := w.tenants[namespace]
	if t == nil {
		t = &tenant{name: namespace, weight: sandbox.DefaultCPUWeight}
		w.tenants[namespace] = t
	}
	return t
}

// queued counts one more run of a tenant that waits. Who begins to wait is not owed for the time when it did not, and an
// epoch ends when nobody waits.
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

// claimsRoom reports whether a pool that waits for room may have that of other tenants' speculative activations. Who holds more than its
// share may only for an action that has no sandbox: what waits for such a one holds the others, perhaps.
func (w *Worker) claimsRoom(p *pool) bool { return len(p.boxes) == 0 || !w.overShare(p.tenant, 0) }

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

// hungriest is the pool whose turn it is: of those with what does not run ahead, if there are any, of the tenant that was served
// least, the one that waits longest. While nothing may start, or nothing for it, those are left out that have no sandbox; so are
// hopeless ones, and those that are to leave room for these.
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
		return mayStart && (p.heads() > 0 || ahead && !p.inTurn) || p.idleBox() != nil
	})
}

// first is the hungry pool whose turn it would be among those of which something is true.
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

// stops reports whether nothing of a namespace is to run ahead for that (C5). Who waits for its own sandboxes, for one that starts or for
// processors, waits for itself: what others run ahead gets none of these before it. So does who has no claim on their room.
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

// mayStartAhead reports whether a sandbox may start for what runs ahead: while others wait, the next start may be for one of them, and
// needs a processor (C5).
func (w *Worker) mayStartAhead() bool { return len(w.late.Load().tenants) == 0 }

// goesBehind reports whether others come before a pool that has sandboxes and wants one more: those that wait for one, but for what only
// runs ahead where p does not (C5).
func (w *Worker) goesBehind(p *pool) bool {
	ahead, h := p.queue[0].isAhead(), w.rival(p)
	return ahead && !w.mayStartAhead() || h != nil && (ahead || !h.queue[0].isAhead())
}

// serve gives a hungry pool an idle sandbox of its own, or starts one. It reports false if that has to wait.
func (w *Worker) serve(p *pool) bool {
	now := time.Now()
	switch {
	case p.idleBox() != nil:
		if !w.give(p, p.queue[0]) {
			return false
		}
		w.pop(p)
	case p.working() && !w.wantsMore(p, now):
	case !w.startFor(p):
		return false
	}
	if p.idleBox() == nil {
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

// blocked reports whether a hungry pool waits for room, and not just for a start.
func (w *Worker) blocked(h *pool) bool {
	need, boxes := h.memory(), 1
	if b := h.idleBox(); b != nil {
		need, boxes = b.memory()-b.charged, 0
	}
	return w.boxes+boxes > w.config.MaxSandboxes || w.charged+need > w.limit
}

// expire ends the runs that have waited too long, those that were promoted since then.
func (w *Worker) expire(now time.Time) {
	for _, p := range w.pools {
		late := false
		for len(p.queue) > 0 && now.Sub(p.queue[0].asked) > w.config.QueueTimeout {
			r := w.pop(p)
			w.unbook(r)
			r.answerCaller()
			w.counters.Expired++
			w.counters.ended(forerun.InternalError)
			result := waitFailure(w.config.QueueTimeout)
			w.alive.Go(func() { r.tellEnded(forerun.RunEnd{Status: result.Status, Result: result.Value}) })
			late = true
		}
		if late {
			w.prune(p)
		}
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
		for _, b := range p.boxes {
			if b.state != boxStarting && b.weight != weight {
				b.weight = weight
				w.alive.Go(func() { _ = b.setWeight(weight) })
			}
		}
	}
	return len(w.tenants) > 1 && busy > runtime.GOMAXPROCS(0)
}

// share finds what each tenant's boxes are to weigh, the usual if there is no other, and returns how many boxes do something.
func (w *Worker) share() (busy int) {
	for _, t := range w.tenants {
		t.working = 0
	}
	for _, p := range w.pools {
		for _, b := range p.boxes {
			if b.state != boxIdle {
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

// weightOf is the weight of each of so many boxes that share one weight; it changes with every doubling only.
func weightOf(boxes int) int {
	if boxes < 2 {
		return sandbox.DefaultCPUWeight
	}
	return max(leastWeight, sandbox.DefaultCPUWeight>>bits.Len(uint(boxes-1)))
}

// leastWeight leaves a sandbox whose activation runs ahead a quarter of what others weigh (C5): the smallest weight is 1.
const leastWeight = 4

// asideWeight is the share of the processors of a sandbox that starts while others serve its pool: a start takes the time of many
// activations, and those come first.
const asideWeight = 1

// asideFor is for how long at most. Then somebody may wait for it after all, while others keep the processors busy.
const asideFor = 250 * time.Millisecond

// startAside has a box that loads its code weigh little, if others serve its pool meanwhile, until stop or for most of the time that the
// loading may take.
func (b *box) startAside() (stop func() error) {
	if !b.isBeside() {
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

// isBeside reports whether others serve the box's pool.
func (b *box) isBeside() bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return slices.ContainsFunc(b.pool().boxes, func(o *box) bool { return o.state != boxStarting && !o.isAhead() })
}

// startWeight is what a box of its tenant weighs now.
func (b *box) startWeight() int {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.weight = b.pool().tenant.weight
	return b.weight
}

// setWeight fails if the sandbox has ended.
func (b *box) setWeight(weight int) error {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Limit(ctx, sandbox.Limits{CPUWeight: weight})
}
