package worker

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// A speculative activation differs in three ways. Its effects on the outside wait until it is promoted. It queues behind
// the others, and runs at a lower CPU weight. A squash leaves nothing of it.

// readHosts is the annotation that lists the hosts from which an action only reads. Connections to them are not held.
const readHosts = "read-hosts"

// endLooks is how often is looked for a connection of a process that was killed: one with threads may have it a moment longer than it
// is listed.
const endLooks = 20

var errSquashed = errors.New("the activation was squashed before it began")

// hold prepares the sandbox for an activation. It holds what a speculative activation sends to the outside. Connections
// that the process already has could bypass that, so such an activation begins only when it is promoted. The same holds
// for a process that listens to channels, because earlier slots may still publish to them.
func (b *pooledSandbox) hold(r *run) error {
	for looks := 0; r.isAhead(); looks++ {
		if b.reachesAhead() {
			return b.tooEarly()
		}
		held, err := b.shut(r.Action)
		if err != nil {
			return err
		}
		b.shares = &held.Shared
		switch {
		case held.Connected && b.resident.Load() != nil:
			if err := b.dropResident(); err != nil {
				return err
			}
			continue
		case b.keepsHandler() && held.Connected && looks == 0:
			if err := b.replaceConnected(r); err != nil {
				return err
			}
			continue
		case held.Connected && looks < endLooks:
			if err := b.pause(r, time.Millisecond); err != nil {
				return err
			}
			continue
		case held.Connected, b.keeps() && b.doors.tenure().listens(), !b.sealed, b.lacksMemoryOfItsOwn(held):
			b.giveUpRehearsal(r, held)
			if err := b.awaitPromotion(r); err != nil {
				return err
			}
			return b.begins()
		}
		return r.tenure.squashedErr()
	}
	if err := r.tenure.squashedErr(); err != nil {
		return err
	}
	return b.begins()
}

// giveUpRehearsal ends an activation that could begin only when it is promoted, if it never is.
func (b *pooledSandbox) giveUpRehearsal(r *run, held sandbox.Held) {
	switch {
	case !r.Rehearsed:
	case b.lacksMemoryOfItsOwn(held):
		b.wantAgain(r, forerun.ReasonSharesMemory)
	default:
		b.wantAgain(r, forerun.ReasonFailedEarly)
	}
}

// lacksMemoryOfItsOwn reports whether a process that is forked from the loaded one may see what another one does.
func (b *pooledSandbox) lacksMemoryOfItsOwn(held sandbox.Held) bool {
	return !b.language.launched && (held.Shared || b.spare.threads)
}

// begins releases the held effects of an activation that is in order. It does not if the code already tried to reach the
// outside while it was loaded speculatively, and may have given up.
func (b *pooledSandbox) begins() error {
	if b.reachesAhead() {
		return b.tooEarly()
	}
	return b.letOut()
}

// tooEarly has another sandbox started in the turn of an activation.
func (b *pooledSandbox) tooEarly() error {
	b.w.loadInTurn(b.pool())
	return errEarly
}

// replaceConnected replaces a process that has connections by one that has none. It does nothing if the activation is
// promoted before the new process could be ready. Loading a process for each activation would take longer than
// speculation saves.
func (b *pooledSandbox) replaceConnected(r *run) error {
	loads := b.standing.Load() == nil
	if loads {
		if err := b.pause(r, b.replacing); err != nil || !r.isAhead() {
			return err
		}
	}
	began := time.Now()
	b.spare.stays = false
	if !b.clean() {
		return errExited
	}
	if took := time.Since(began); loads && (b.replacing == 0 || took < b.replacing) {
		b.replacing = took
	}
	return nil
}

// pause waits for a duration, until the activation is promoted, or until it is squashed.
func (b *pooledSandbox) pause(r *run, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-r.promoted.Done():
	case <-r.tenure.squashed:
		return errSquashed
	case <-b.dead:
		return errExited
	}
	return nil
}

// awaitPromotion keeps an activation from its handler until it is promoted.
func (b *pooledSandbox) awaitPromotion(r *run) error {
	select {
	case <-r.promoted.Done():
		return nil
	case <-r.tenure.squashed:
		return errSquashed
	case <-b.dead:
	case <-b.stopped.Done():
	}
	return errExited
}

func (t *tenure) squashedErr() error {
	select {
	case <-t.squashed:
		return errSquashed
	default:
		return nil
	}
}

// hostsOf reads the annotation of an action: an array of strings. Anything else names none.
func hostsOf(a *forerun.Action) (hosts []string) {
	if json.Unmarshal(forerun.Lookup(a.Annotations, readHosts), &hosts) != nil {
		return nil
	}
	return hosts
}

// limit starts the time limit of an activation: now, or when it is promoted. The returned function stops the timer, and
// stops releasing a speculative activation's effects.
//
// An activation that is speculative for half of its limit makes way. It was told its deadline, and would otherwise
// believe that it is near.
func (b *pooledSandbox) limit(r *run, begin time.Time) (stop func()) {
	limit := time.Duration(r.Action.Limits.Timeout) * time.Millisecond
	t := r.tenure // it may be given back as its time is over
	expire := func() { b.timeOut(t) }
	if !b.held {
		timer := time.AfterFunc(time.Until(begin.Add(limit)), expire)
		return func() { timer.Stop() }
	}
	timer := time.AfterFunc(limit/2, func() { b.w.outdated(r) })
	begun := make(chan struct{})
	stays := context.AfterFunc(r.promoted, func() {
		defer close(begun)
		timer.Stop()
		timer = time.AfterFunc(limit, expire)
		r.atGuard, _ = b.release() // if it fails the sandbox has ended
	})
	return func() {
		if !stays() {
			<-begun
		}
		timer.Stop()
	}
}

// outdated ends a run that is still speculative.
func (w *Worker) outdated(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.isAhead() && !r.wanted && !r.squashed {
		w.want(r, forerun.Overdue, forerun.ReasonHalfLimit)
	}
}

// flooded ends the sandbox's run if it is speculative: it has sent more datagrams than may be held.
func (b *pooledSandbox) flooded() {
	b.w.mu.Lock()
	r := b.current
	b.w.mu.Unlock()
	if r != nil {
		b.wantAgain(r, forerun.ReasonManyDatagrams)
	}
}

// wantAgain ends a run if it is speculative. In order it may get the resource that it lacks.
func (b *pooledSandbox) wantAgain(r *run, why forerun.ReasonCode) {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r == b.current && r.isAhead() && !r.isParked() && !r.wanted && !r.squashed {
		b.w.want(r, forerun.Failed, why)
	}
}

// parkedAtMost is how long a handler is kept for an activation that has ended and is neither promoted nor squashed.
const parkedAtMost = 10 * time.Second

// park keeps the process of a speculative activation that has ended from the next one, until it is known whether the
// activation happened. If it did not, the process, which remembers it, is not used again.
func (b *pooledSandbox) park(r *run) {
	late := time.NewTimer(parkedAtMost)
	defer late.Stop()
	select {
	case <-r.promoted.Done():
	case <-r.tenure.squashed:
	case <-r.unpark:
	case <-late.C:
	case <-b.dead:
	case <-b.stopped.Done():
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	b.w.leave(r)
	r.parkedFor = time.Since(r.parkedAt)
	b.spare.stays = r.isPromoted()
}

// withhold keeps what a speculative activation that has ended sent to the outside without waiting for it.
func (r *run) withhold(b *pooledSandbox) {
	send := b.takeHeld(r.tenure)
	if send == nil {
		return
	}
	b.w.mu.Lock()
	ahead := r.isAhead()
	if ahead && !r.squashed {
		r.effects = send
	}
	b.w.mu.Unlock()
	if !ahead {
		send()
	}
}

// takeHeld takes the held datagrams of an activation, or those that were held when its leftovers were killed. Datagrams
// that need not be held are sent first, if other activations may be promoted by this one's end: their datagrams come
// later.
func (b *pooledSandbox) takeHeld(t *tenure) (send func()) {
	if !t.over.Load() { // else the activation has ended, and a kill is under way
		b.reseting.Lock()
		defer b.reseting.Unlock()
		if t.unsent != nil {
			return t.unsent
		}
	}
	if !b.held && b.w.ahead.Load() == 0 {
		return nil
	}
	return b.sandbox.TakeHeld()
}

// leave removes a run that has ended from the worker. A speculative run is removed once it is promoted or squashed.
func (w *Worker) leave(r *run) {
	switch {
	case r.squashed:
	case r.isAhead():
		r.left = true
	default:
		w.unbook(r)
	}
}

// spent is the processor time of a sandbox, if a run needs it: the time of a squashed run is wasted.
func (b *pooledSandbox) spent(r *run) time.Duration {
	if !r.isAhead() {
		return 0
	}
	spent, _ := b.sandbox.Spent() // the sandbox may have ended
	return spent
}

// account notes what a run has taken, and its removal.
func (b *pooledSandbox) account(r *run, before time.Duration) {
	if !r.isAhead() {
		return
	}
	took := max(0, b.spent(r)-before)
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r.squashed && !r.isPromoted() {
		b.w.counters.Wasted += took
	} else {
		r.took = took
	}
}

// isPromoted reports whether a speculative activation has been promoted.
func (r *run) isPromoted() bool { return r.promoted != nil && r.promoted.Err() != nil }

// isAhead reports whether it is speculative still.
func (r *run) isAhead() bool { return r.promoted != nil && r.promoted.Err() == nil }

// line puts a run into its pool's queue: speculative ones wait behind the others (C5).
func (p *pool) line(r *run) {
	at := len(p.queue)
	if !r.isAhead() {
		at = p.heads()
		p.hastenLoading()
	}
	p.queue = slices.Insert(p.queue, at, r)
}

// hasten puts a run that waits and was promoted before those that are speculative.
func (w *Worker) hasten(r *run) {
	if i := slices.Index(r.pool.queue, r); i >= 0 {
		r.pool.queue = slices.Delete(r.pool.queue, i, i+1)
		r.asked = time.Now()
		r.pool.line(r)
		w.consider(r.pool)
		w.unparkSoon(r.pool)
	}
}

// onlyAhead reports whether nothing but speculative activations that run keeps the pool's sandboxes from an activation that is not.
func (p *pool) onlyAhead() bool {
	if slices.ContainsFunc(p.sandboxes, func(b *pooledSandbox) bool { return b.current == nil || !b.current.isAhead() || b.current.isParked() }) {
		return false
	}
	return p.heads() > 0
}

// heads is how many in the queue are not speculative: the first ones.
func (p *pool) heads() int {
	if first := slices.IndexFunc(p.queue, (*run).isAhead); first >= 0 {
		return first
	}
	return len(p.queue)
}

// isParked reports whether a run has ended and its handler waits for what becomes of it, or did.
func (r *run) isParked() bool { return !r.parkedAt.IsZero() }

// parked lists the activations whose handlers are only parked.
func (p *pool) parked() (runs []*run) {
	for _, b := range p.sandboxes {
		if b.state == sandboxBusy && b.current != nil && b.current.isParked() {
			runs = append(runs, b.current)
		}
	}
	return runs
}

// unpark has parked handlers make way for activations that have waited although they are not speculative, one for each. The sandbox
// comes to the queue by itself, with another handler.
func (w *Worker) unpark(p *pool) {
	late := p.heads()
	for late > 0 && time.Since(p.queue[late-1].queued) < shortWait {
		late--
	}
	parked := p.parked()
	for _, r := range parked[:min(late, len(parked))] {
		r.yield()
	}
}

// unparkSoon looks whether handlers that are parked are in the way once that has taken a while: they may be promoted before.
func (w *Worker) unparkSoon(p *pool) {
	if p.heads() == 0 || len(p.parked()) == 0 {
		return
	}
	time.AfterFunc(shortWait, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.unpark(p)
	})
}

// yield ends the parking of a run's handler.
func (r *run) yield() {
	if !r.yielded {
		r.yielded = true
		close(r.unpark)
	}
}

// makeWay takes a sandbox from a speculative activation for a pool whose activations wait although they are not: from one that
// has ended, whose handler is only parked, or else from the one that began last, if who asked for that agrees.
func (w *Worker) makeWay(p *pool, now time.Time) {
	lacks, claims := w.lacksRoom(p, now), w.claimsRoom(p)
	if !lacks && !p.onlyAhead() {
		return
	}
	var victim *run
	for _, b := range w.busyAhead() {
		r, owner := b.current, b.pool()
		if owner != p && !(lacks && (claims || owner.tenant == p.tenant)) {
			continue
		}
		if victim == nil || r.isParked() && !victim.isParked() || r.isParked() == victim.isParked() && r.queued.After(victim.queued) {
			victim = r
		}
	}
	if victim == nil || victim.wanted && !victim.isParked() {
		return
	}
	if victim.isParked() {
		victim.yield()
		return
	}
	w.want(victim, forerun.MadeWay, forerun.ReasonMadeWay)
}

// lacksRoom reports whether an activation that is not speculative waits for room. One that waits for something else does
// not count: it may wait for a function that called it.
func (w *Worker) lacksRoom(p *pool, now time.Time) bool {
	if p.heads() == 0 || !w.blocked(p) || w.isHopeless(p) {
		return false
	}
	return len(p.sandboxes) == 0 || p.hasWaited(now) && (p.idleSandbox() != nil || w.wantsMore(p, now))
}

// want asks who began a speculative run to end it. Worker.mu is held.
func (w *Worker) want(r *run, kind forerun.SquashKind, why forerun.ReasonCode) {
	r.wanted = true
	w.counters.Wanted++
	w.alive.Go(func() { r.Events.Wanted(r.Activation, kind, forerun.Because(why)) })
}

// busyAhead lists the sandboxes that run speculative activations.
func (w *Worker) busyAhead() (sandboxes []*pooledSandbox) {
	for _, p := range w.pools {
		for _, b := range p.sandboxes {
			if b.isAhead() {
				sandboxes = append(sandboxes, b)
			}
		}
	}
	return sandboxes
}

// runsAhead reports whether speculative activations have sandboxes of the pool, or wait for one.
func (p *pool) runsAhead() bool {
	return len(p.queue) > p.heads() || slices.ContainsFunc(p.sandboxes, (*pooledSandbox).isAhead)
}

// isAhead reports whether the sandbox runs a speculative activation.
func (b *pooledSandbox) isAhead() bool {
	return b.state == sandboxBusy && b.current != nil && b.current.isAhead()
}

// atWork is how long the sandbox has been busy, without the time for which a finished handler was only parked.
func (b *pooledSandbox) atWork(now time.Time) time.Duration {
	d, r := now.Sub(b.since), b.current
	switch {
	case r == nil || !r.isParked():
	case r.parkedFor > 0:
		d -= r.parkedFor
	default:
		d -= now.Sub(r.parkedAt)
	}
	return d
}

// shut holds what the sandbox sends to the outside.
func (b *pooledSandbox) shut(a *forerun.Action) (held sandbox.Held, err error) {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	b.held = true
	return b.sandbox.Hold(ctx, hostsOf(a))
}

// restOpen releases held effects while the sandbox is idle, if it keeps a process that was not forked. That process may act on its own, and
// would otherwise wait for the next activation. Code that was loaded for speculative activations alone stays held.
func (b *pooledSandbox) restOpen() {
	if !b.loadsAhead && b.language.launched {
		_ = b.letOut() // if it fails the sandbox has ended
	}
}

// letOut lets it go where nothing waits yet.
func (b *pooledSandbox) letOut() error {
	_, err := b.release()
	return err
}

// release lets it go, and returns for how long the first call that waits has.
func (b *pooledSandbox) release() (waited time.Duration, err error) {
	if !b.held {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	if waited, err = b.sandbox.Release(ctx); err == nil {
		b.held = false
	}
	return waited, err
}
