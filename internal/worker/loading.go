package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/schedule"
)

// The worker loads the code of an action before its first activation. Code may reach for the outside while it loads. If only speculative activations
// wait for it, nothing may go out. It cannot wait for a promotion either: the code's own clients might give up first,
// and an activation in order may wait for the room. So the sandbox ends, as after a failed load, and the pool gets
// another one when an activation in order waits.

// lookLoading is how often is looked whether it does, or that is so.
const lookLoading = 5 * time.Millisecond

var errEarly = errors.New("its code reached for the outside before the turn of anybody")

// loading is what the scheduler knows the loading of the sandbox's code by.
func (b *pooledSandbox) loading() forerun.ActivationID { return forerun.ActivationID("init " + b.id) }

// admitLoading waits until the code may be loaded, which is a phase: it is speculative until an activation in order waits for the pool.
func (b *pooledSandbox) admitLoading() error {
	ahead := b.forAhead && !b.isDue()
	a := &admission{id: b.loading(), sandbox: b, ahead: func() bool { return ahead }, classes: microtasks(b.pool().action)}
	begun := b.w.turns.enter(a, initPhase)
	if ahead && b.isDue() { // since it was looked
		b.w.turns.tell(schedule.Promoted{Activation: a.id})
	}
	return b.w.turns.await(a, begun)
}

// hastenLoading has code that is loaded for speculative activations be loaded before others', as one in order waits for it. Worker.mu is held.
func (p *pool) hastenLoading() {
	for _, b := range p.sandboxes {
		if b.state == sandboxStarting && b.forAhead {
			b.w.turns.tell(schedule.Promoted{Activation: b.loading()})
		}
	}
}

// loadAside has the runtime load the code, and others come first while it does if they serve the pool.
func (b *pooledSandbox) loadAside(code []byte) (failure forerun.Result, ok bool) {
	stop := b.startAside()
	failure, ok = b.load(code)
	if err := stop(); ok && err != nil {
		return b.startFailure(err), false
	}
	return failure, ok
}

// load has the runtime load the code.
func (b *pooledSandbox) load(code []byte) (failure forerun.Result, ok bool) {
	a := b.pool().action
	b.output.restart(b.logLimit())
	if err := b.confine(a); err != nil {
		return b.startFailure(err), false
	}
	if err := b.holdLoading(); err != nil {
		return b.startFailure(err), false
	}
	if err := b.permit(a); err != nil {
		return b.startFailure(err), false
	}
	start, limit := time.Now(), time.Duration(a.Limits.Timeout)*time.Millisecond
	timer, look := time.NewTimer(limit), time.NewTicker(lookLoading)
	defer timer.Stop()
	defer look.Stop()
	if !b.held {
		look.Stop()
	}
	if b.language.launched {
		b.noteAsked()
	}
	header := runtimewire.Init{Main: a.Exec.Main, Binary: a.Exec.Binary, Env: b.pool().environment(), Keep: b.pool().key.keeps}
	if err := b.writeInit(header, code, start.Add(limit)); err != nil {
		return b.loadCrash(), false
	}
	b.blank = false
	for {
		select {
		case done := <-b.initDone:
			b.initTime = time.Since(start)
			if done.OK && b.reachesAhead() {
				return b.startFailure(errEarly), false
			}
			return forerun.Failure(forerun.DeveloperError, done.Error), done.OK
		case <-look.C:
			if b.reachesAhead() {
				return b.startFailure(errEarly), false
			}
			if b.releaseLoading() {
				look.Stop()
			}
		case <-timer.C:
			if len(b.initDone) > 0 { // and we come late
				timer.Reset(lookLoading)
				continue
			}
			return forerun.Failure(forerun.DeveloperError,
				fmt.Sprintf("The action exceeded its time limits of %d milliseconds during initialization.", a.Limits.Timeout)), false
		case <-b.dead:
			return b.loadCrash(), false
		case <-b.stopped.Done():
			return forerun.Failure(forerun.InternalError, shutDown), false
		}
	}
}

// firstSpare takes the first handler. Effects of the fork are treated like effects of loading the code.
func (b *pooledSandbox) firstSpare() error {
	look := time.NewTicker(lookLoading / 5)
	defer look.Stop()
	for end := time.Now().Add(b.forkTime()); b.held && time.Now().Before(end); {
		if s := b.upcoming.Load(); s != nil && s.isDecided() {
			break
		}
		select {
		case <-look.C:
			if b.reachesAhead() {
				return errEarly
			}
			b.releaseLoading()
		case <-b.dead:
			return errExited
		case <-b.stopped.Done():
			return context.Cause(b.stopped)
		}
	}
	if err := b.nextSpare(); err != nil {
		return err
	}
	if b.reachesAhead() {
		return errEarly
	}
	return nil
}

// holdLoading holds what the code sends to the outside while only speculative activations wait for the sandbox.
func (b *pooledSandbox) holdLoading() error {
	if !b.forAhead || b.isDue() {
		return nil
	}
	b.loadsAhead = true
	_, err := b.shut(b.pool().action)
	return err
}

// reachesAhead reports whether the code reached for the outside as it was loaded, or has since, before the turn of anybody.
func (b *pooledSandbox) reachesAhead() bool {
	return b.loadsAhead && b.held && (b.sandbox.Reached() || b.sandbox.TakeHeld() != nil)
}

// releaseLoading lets the code go on with the gate open if it is the turn of an activation, and reports whether it is.
func (b *pooledSandbox) releaseLoading() bool { return b.isDue() && b.letOut() == nil }

// diedAhead calls loadInTurn once a few sandboxes in a row have died while loading the code speculatively. A single one
// may have died for another reason.
func (w *Worker) diedAhead(p *pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.diedAhead++
	p.inTurn = p.inTurn || p.diedAhead == maxForks
}

// loadedAhead notes that one has not.
func (w *Worker) loadedAhead(p *pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.diedAhead = 0
}

// loadInTurn stops loading the pool's code for speculative activations alone.
func (w *Worker) loadInTurn(p *pool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.inTurn = true
}

// isDue reports whether activations that are not speculative wait for the sandbox's pool.
func (b *pooledSandbox) isDue() bool {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.pool().heads() > 0
}

// writeInit sends the code, which a runtime that does not read could hold up.
func (b *pooledSandbox) writeInit(header runtimewire.Init, code []byte, deadline time.Time) error {
	if err := b.control.Socket().SetWriteDeadline(deadline); err != nil {
		return err
	}
	if err := b.control.Write(runtimewire.TypeInit, header, code); err != nil {
		return err
	}
	return b.control.Socket().SetWriteDeadline(time.Time{})
}

func (b *pooledSandbox) loadCrash() forerun.Result {
	if b.outOfMemory() {
		return forerun.Failure(forerun.DeveloperError, outOfMemory)
	}
	return forerun.Failure(forerun.DeveloperError, "Initialization has failed: the process exited while it loaded the code. See the logs for details.")
}
