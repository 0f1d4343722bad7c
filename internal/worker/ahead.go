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

// What is different for an activation that runs ahead: its effects on the outside wait until it is promoted, it waits
// behind the others and gets what they leave of the processors, and nothing of it is left when it is squashed.

// readHosts is the annotation that lists the hosts from which an action only reads: what it sends them need not wait.
const readHosts = "read-hosts"

// endLooks is how often is looked for a connection of a process that was killed: one with threads may have it a moment longer than it
// is listed.
const endLooks = 20

var errSquashed = errors.New("the activation was squashed before it began")

// hold prepares the sandbox for an activation. What a speculative one sends to the outside waits. One that could reach the
// outside or its successors all the same, through what was there before it, begins only when it is promoted; so does one whose process
// listens to channels: those before it may publish what it is to hear.
func (b *box) hold(r *run) error {
	for looks := 0; r.isAhead(); looks++ {
		if b.reachesAhead() {
			return b.tooEarly()
		}
		held, err := b.shut(r.Action)
		switch {
		case err != nil:
			return err
		case b.keeps() && held.Connected && looks == 0:
			if err := b.replaceConnected(r); err != nil {
				return err
			}
			continue
		case held.Connected && looks < endLooks:
			if err := b.pause(r, time.Millisecond); err != nil {
				return err
			}
			continue
		case held.Connected, b.keeps() && b.doors.tenure().listens(), !b.sealed, !b.language.launched && (held.Shared || b.spare.threads):
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

// begins lets go what waits for an activation whose turn it is; unless it was code that reached for the outside before, when it had been
// loaded for what runs ahead, and may have given up.
func (b *box) begins() error {
	if b.reachesAhead() {
		return b.tooEarly()
	}
	return b.letOut()
}

// tooEarly has another sandbox started in the turn of an activation.
func (b *box) tooEarly() error {
	b.w.loadInTurn(b.pool())
	return errEarly
}

// replaceConnected has a process that has no connections take the place of one that has, unless it is the activation's turn before
// another could be there: then it needs none, and to load one each time takes longer than running ahead saves.
func (b *box) replaceConnected(r *run) error {
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

// pause waits, unless the activation's turn comes, or never will.
func (b *box) pause(r *run, d time.Duration) error {
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
func (b *box) awaitPromotion(r *run) error {
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

// limit begins the time that an activation may take: now, or when it is promoted. The returned function ends it, and
// what lets a speculative one's effects go. One that is ahead for half that time is to make way: it was told when it would be
// killed, and would take that for near.
func (b *box) limit(r *run, begin time.Time) (stop func()) {
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

// outdated has a run end that is still ahead.
func (w *Worker) outdated(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.isAhead() && !r.wanted && !r.squashed {
		w.want(r, forerun.Overdue, "it was ahead for half of its time limit: it runs again in its turn")
	}
}

// flooded has the box's run end if it is ahead: it has sent more datagrams than are to wait for its turn.
func (b *box) flooded() {
	b.w.mu.Lock()
	r := b.current
	b.w.mu.Unlock()
	if r != nil {
		b.wantAgain(r, "it sent more datagrams than can wait: it runs again in its turn")
	}
}

// wantAgain has a run end if it is ahead: in its turn it may have what it lacks.
func (b *box) wantAgain(r *run, why string) {
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
func (b *box) park(r *run) {
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
func (r *run) withhold(b *box) {
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

// takeHeld takes out what waits to be sent, or what waited when that was killed which its handler had left. What need not wait is out, if there
// are others whose turn the activation's end may bring: what they have sent comes behind it.
func (b *box) takeHeld(t *tenure) (send func()) {
	if !t.over.Load() { // else nobody asks for it, and a kill is under way
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

// leave takes a run that has ended off the books: one that is ahead as soon as it is known whether it happened.
func (w *Worker) leave(r *run) {
	switch {
	case r.squashed:
	case r.isAhead():
		r.left = true
	default:
		w.unbook(r)
	}
}

// spent is what a box has taken of the processors, if that matters for a run: what is squashed, or may be yet, is wasted.
func (b *box) spent(r *run) time.Duration {
	if !r.isAhead() {
		return 0
	}
	spent, _ := b.sandbox.Spent() // the sandbox may have ended
	return spent
}

// account notes what a run has taken, and its removal.
func (b *box) account(r *run, before time.Duration) {
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
	if slices.ContainsFunc(p.boxes, func(b *box) bool { return b.current == nil || !b.current.isAhead() || b.current.isParked() }) {
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
	for _, b := range p.boxes {
		if b.state == boxBusy && b.current != nil && b.current.isParked() {
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
	w.want(victim, forerun.MadeWay, "it made way for what does not run ahead: it runs again in its turn")
}

// lacksRoom reports whether an activation that is not speculative waits, and more room would spare it that. What it waits for otherwise
// may itself wait for it: a function that it was called by.
func (w *Worker) lacksRoom(p *pool, now time.Time) bool {
	if p.heads() == 0 || !w.blocked(p) || w.isHopeless(p) {
		return false
	}
	return len(p.boxes) == 0 || p.hasWaited(now) && (p.idleBox() != nil || w.wantsMore(p, now))
}

// want asks who began a speculative run to end it. Worker.mu is held.
func (w *Worker) want(r *run, kind forerun.SquashKind, why string) {
	r.wanted = true
	w.counters.Wanted++
	w.alive.Go(func() { r.Events.Wanted(r.Activation, kind, why) })
}

// busyAhead lists the boxes that speculative activations occupy.
func (w *Worker) busyAhead() (boxes []*box) {
	for _, p := range w.pools {
		for _, b := range p.boxes {
			if b.isAhead() {
				boxes = append(boxes, b)
			}
		}
	}
	return boxes
}

// runsAhead reports whether speculative activations have sandboxes of the pool, or wait for one.
func (p *pool) runsAhead() bool {
	return len(p.queue) > p.heads() || slices.ContainsFunc(p.boxes, (*box).isAhead)
}

// isAhead reports whether a speculative activation occupies the box.
func (b *box) isAhead() bool { return b.state == boxBusy && b.current != nil && b.current.isAhead() }

// atWork is for how long the box has been busy by now, without the time for which a handler that had ended was only parked.
func (b *box) atWork(now time.Time) time.Duration {
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
func (b *box) shut(a *forerun.Action) (held sandbox.Held, err error) {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	b.held = true
	return b.sandbox.Hold(ctx, hostsOf(a))
}

// restOpen lets it go while the sandbox is idle, if a process is kept, which may do something by itself: else it would wait for the next
// activation. What was loaded for nobody but what runs ahead waits on.
func (b *box) restOpen() {
	if !b.loadsAhead && b.keeps() {
		_ = b.letOut() // if it fails the sandbox has ended
	}
}

// letOut lets it go where nothing waits yet.
func (b *box) letOut() error {
	_, err := b.release()
	return err
}

// release lets it go, and returns for how long the first call that waits has.
func (b *box) release() (waited time.Duration, err error) {
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
