package worker

import (
	"context"
	"errors"
	"time"

	"forerun.dev/forerun/internal/proc"
)

// clean removes what an activation left, and makes the next handler ready. It reports false if the sandbox is of no
// more use.
func (b *pooledSandbox) clean() bool {
	if b.untouched {
		b.untouched = false
		if err := b.goBack(); err != nil {
			return b.giveUpOn(err)
		}
		return true
	}
	alone, err := b.renewSpare()
	if cleared := b.takeCleared(); err == nil && !alone && (cleared == nil || cleared != b.spare) { // else it was done
		err = b.reset(b.kept()...)
	}
	if b.struck.Swap(false) && err == nil {
		err = b.starved()
		b.mistrust()
	}
	if err == nil {
		err = b.damaged()
	}
	for range maxForks {
		if err != nil || !b.spare.isUseless() {
			break
		}
		b.spare.killed.Store(true)
		if alone, err = b.renewSpare(); err == nil && !alone {
			err = b.reset(b.kept()...)
		}
	}
	if err != nil {
		return b.giveUpOn(err)
	}
	b.oomClean = b.oomKills.Load()
	_ = b.outOfMemory() // an earlier kill is not the next activation's
	b.output.discard()
	b.sayRefused() // into no log: the activation is gone
	if !alone {
		b.doors.fence()
	}
	b.handOver()
	if b.isForked() && b.forksNext() {
		b.fork()
	}
	return true
}

// giveUpOn logs why the sandbox is of no more use.
func (b *pooledSandbox) giveUpOn(err error) bool {
	if b.stopped.Err() == nil {
		b.w.config.Log.Warn("a sandbox is given up", "action", b.pool().action.Name.String(), "error", err)
	}
	return false
}

// mistrust marks the processes that a kill may have hit as they were made.
func (b *pooledSandbox) mistrust() {
	for _, s := range []*spare{b.spare, b.standing.Load()} {
		if s != nil && s != b.survivor.Load() {
			s.killed.Store(true)
		}
	}
}

// takeCleared waits for a kill that is under way, and returns whom it alone has left.
func (b *pooledSandbox) takeCleared() *spare {
	b.reseting.Lock()
	defer b.reseting.Unlock()
	s := b.cleared
	b.cleared = nil
	return s
}

// starved is an error if processes were killed for the memory limit since the sandbox was clean, as far as the last kill saw. The
// initializer may be one of them, which is seen only when it has got the time to end.
func (b *pooledSandbox) starved() error {
	if b.oomKills.Load() > b.oomClean {
		return errors.New("its memory was exhausted, and the initializer may end yet")
	}
	return nil
}

// damaged returns an error if the activation was cut off and may have left state unusable that all handlers share since
// the code was loaded, such as a lock that it held.
func (b *pooledSandbox) damaged() error {
	if !b.cutOff || b.language.launched {
		return nil
	}
	b.cutOff = false
	held, err := b.shut(b.pool().action)
	switch {
	case err != nil:
		return err
	case held.Shared:
		return errors.New("an activation was cut off that may have held a lock of all")
	}
	return b.letOut()
}

// renewSpare provides a handler for the next activation: the one that stays, or another. alone reports that the code was
// loaded after all leftovers of the activation were gone, so every connection belongs to the new handler.
func (b *pooledSandbox) renewSpare() (alone bool, err error) {
	if b.spare.stays && !b.spare.killed.Load() && !b.isWorn(b.spare) && b.spare.readyAgain() {
		return false, b.receiveFresh()
	}
	b.spare.discard()
	b.doors.cut()
	if resumed, err := b.resume(); resumed || err != nil {
		return false, err
	}
	if s := b.takeOver(); s != nil {
		b.spare = s
		return false, nil
	}
	if b.language.launched {
		return true, b.renewAlone() // the code may wait for what it connects with
	}
	limit := b.forkTime()
	if b.held {
		limit = heldFork
	}
	if b.nextSpareWithin(limit) != nil { // leftovers of the activation may be in the way, or a held connection
		return true, b.renewAlone()
	}
	return false, nil
}

// renewAlone makes a handler when nothing of the activation is left. The code's requests go out meanwhile.
func (b *pooledSandbox) renewAlone() error {
	err := b.empty()
	if err == nil {
		err = b.letOut()
	}
	if err == nil && b.forking.Load() {
		err = b.dropAsked()
	}
	if err != nil {
		return err
	}
	b.doors.fence()
	return b.nextSpare()
}

// dropAsked removes the handler that was asked for as all were killed: it may be one of them, which shows only when the initializer has got
// the time to say so.
func (b *pooledSandbox) dropAsked() error {
	s, err := b.awaitSpare(b.forkTime())
	switch {
	case err == nil:
		s.discard()
	case b.forking.Load(): // it does not come
		return err
	}
	return b.empty()
}

// heldFork bounds the fork of a handler whose effects are held. Code may act when a process is forked
// (os.register_at_fork), for example connect, and no promotion would release it.
const heldFork = 200 * time.Millisecond

// isUseless reports whether a handler was killed as the activation before it ended, or stopped by that, and would never begin.
func (s *spare) isUseless() bool {
	return s.killed.Load() || !s.stays && !s.stopped && proc.IsStopped(s.hostPID)
}

// empty leaves only the initializer. It first completes all earlier kills, because a late kill could hit a new process.
func (b *pooledSandbox) empty() error {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	b.reseting.Lock()
	defer b.reseting.Unlock()
	b.cleared = nil
	_, err := b.sandbox.Reset(ctx)
	if b.struck.Swap(false) && err == nil {
		err = b.starved()
	}
	return err
}

// reset removes all processes but the initializer and those in keep. It cuts the connections of the removed ones,
// because they cannot be told from those of a handler that stays.
func (b *pooledSandbox) reset(keep ...int) error {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	b.reseting.Lock()
	defer b.reseting.Unlock()
	killed, err := b.sandbox.Reset(ctx, keep...)
	if killed > 0 {
		b.doors.cut()
	}
	return err
}
