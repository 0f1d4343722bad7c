package worker

import (
	"context"
	"errors"
	"time"

	"forerun.dev/forerun/internal/proc"
)

// clean removes what an activation left, and makes the next handler ready. It reports false if the sandbox is of no
// more use.
func (b *box) clean() bool {
	if b.untouched {
		b.untouched = false
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
		if b.stopped.Err() == nil {
			b.w.config.Log.Warn("a sandbox is given up", "action", b.pool().action.Name.String(), "error", err)
		}
		return false
	}
	b.oomClean = b.oomKills.Load()
	_ = b.outOfMemory() // who was killed before is not the next one's
	b.output.discard()
	b.sayRefused() // to nobody: it was what is gone
	if !alone {
		b.doors.fence()
	}
	b.handOver()
	return true
}

// mistrust marks the processes that a kill may have hit as they were made.
func (b *box) mistrust() {
	for _, s := range []*spare{b.spare, b.standing.Load()} {
		if s != nil && s != b.survivor.Load() {
			s.killed.Store(true)
		}
	}
}

// takeCleared waits for a kill that is under way, and returns whom it alone has left.
func (b *box) takeCleared() *spare {
	b.reseting.Lock()
	defer b.reseting.Unlock()
	s := b.cleared
	b.cleared = nil
	return s
}

// starved is an error if processes were killed for the memory limit since the sandbox was clean, as far as the last kill saw. The
// initializer may be one of them, which is seen only when it has got the time to end.
func (b *box) starved() error {
	if b.oomKills.Load() > b.oomClean {
		return errors.New("its memory was exhausted, and the initializer may end yet")
	}
	return nil
}

// damaged is an error if the activation was cut off, and what all handlers share since the code was loaded may be as none can use it:
// a lock that it held.
func (b *box) damaged() error {
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

// renewSpare sees that there is a handler for the next activation: the one that stays, or another. alone says that this loaded its code
// when nothing of the activation was left: what is connected with the doors is the handler's own.
func (b *box) renewSpare() (alone bool, err error) {
	if b.spare.stays && !b.spare.killed.Load() && b.spare.readyAgain() {
		return false, nil
	}
	b.spare.discard()
	b.doors.cut()
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
	if b.nextSpareWithin(limit) != nil { // what the activation left may be in the way, or who waits for its turn
		return true, b.renewAlone()
	}
	return false, nil
}

// renewAlone makes a handler when nothing of the activation is left: what it reaches for as it is made goes out.
func (b *box) renewAlone() error {
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
func (b *box) dropAsked() error {
	s, err := b.awaitSpare(b.forkTime())
	switch {
	case err == nil:
		s.discard()
	case b.forking.Load(): // it does not come
		return err
	}
	return b.empty()
}

// heldFork is how long the fork of a handler may take where what it reaches for waits, for nobody's turn: code can have something done as a
// process is forked (os.register_at_fork), such as connecting.
const heldFork = 200 * time.Millisecond

// isUseless reports whether a handler was killed as the activation before it ended, or stopped by that, and would never begin.
func (s *spare) isUseless() bool {
	return s.killed.Load() || !s.stays && !s.stopped && proc.IsStopped(s.hostPID)
}

// empty leaves nothing but the initializer. What was killed before is over; a kill that comes later may hit what is made next.
func (b *box) empty() error {
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

// reset removes what is left but the initializer and the processes in keep. What the others were connected with is cut: it
// cannot be told from what a handler that stays is connected with.
func (b *box) reset(keep ...int) error {
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
