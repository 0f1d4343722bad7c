package worker

import (
	"context"
	"time"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
)

// Where a process serves several activations its sandbox has no other, and a squash costs the start of one: of Node, tens of
// milliseconds, of Python a fork. Once activations of an action were squashed while they ran, its sandboxes keep a second process,
// which takes over from the first when that is killed. It is loaded while nothing runs in the sandbox, as it would be in its turn:
// it may see nothing of an activation, and what it prints is in nobody's log. Then it waits for its Run in a read, or is stopped,
// and nothing else of it runs.

// How long a sandbox is idle before its second process is loaded. Each time that an activation came in between, twice as long.
const (
	standbyFirst = 5 * time.Millisecond
	standbyLast  = 10 * time.Second
)

// standby is a box's second process. Its fields are of live, but for those that say otherwise.
type standby struct {
	loading bool          // it was asked for
	conns   uint64        // that the doors had accepted then
	after   time.Duration // of idleness
	never   bool          // the code cannot be loaded twice, or connects while it is loaded
	bytes   int64         // that the sandbox may use for it, beyond the action's limit; guarded by Worker.mu
}

// wantsStandby reports whether the box is to have a second process, and does not.
func (b *box) wantsStandby() bool {
	if !b.keeps() || !b.language.standby || b.second.never || b.second.loading || b.standing.Load() != nil {
		return false
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.pool().squashes
}

// standbyAfter is how long the box is to be idle before it gets one.
func (b *box) standbyAfter() time.Duration {
	if !b.wantsStandby() {
		return standbyLast
	}
	return max(b.second.after, standbyFirst)
}

// standBy has a second process loaded. Its memory is not taken from the first one's.
func (b *box) standBy() {
	if !b.wantsStandby() || !b.roomForStandby() || b.letOut() != nil {
		return
	}
	b.second.loading, b.second.conns = true, b.doors.accepted.Load()
	if b.forking.CompareAndSwap(false, true) {
		b.tell(runtimewire.TypeFork, runtimewire.Fork{Stop: true})
	}
}

// roomForStandby sees that the sandbox may use as much more as its first process does.
func (b *box) roomForStandby() bool {
	w := b.w
	w.mu.Lock()
	bytes, had := b.measured, b.second.bytes
	fits := bytes > 0 && w.charged+bytes <= w.limit
	if fits && had == 0 {
		b.second.bytes = bytes
	}
	w.mu.Unlock()
	if !fits || had > 0 {
		return fits
	}
	ctx, cancel := context.WithTimeout(w.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Limit(ctx, sandbox.Limits{MemoryMiB: int(b.memory() >> 20)}) == nil
}

// memory is what an activation may use in the box, a second process included. It is read with Worker.mu held, or by live.
func (b *box) memory() int64 { return b.pool().memory() + b.second.bytes }

// settleStandby sees, before an activation, that no process is being loaded beside it.
func (b *box) settleStandby() {
	if !b.second.loading {
		return
	}
	s := b.upcoming.Load()
	arrived := s != nil && s != b.spare && s.isDecided()
	if !arrived {
		b.second.after = min(2*max(b.second.after, standbyFirst), standbyLast)
		b.killLoading()
	}
	b.second.loading = false
	s, err := b.awaitSpare()
	b.doors.discard() // takes in what has knocked
	switch {
	case err != nil:
		b.second.never = b.second.never || arrived
	case b.doors.accepted.Load() != b.second.conns, b.leaves(s): // some may be its own, and would be taken for the activation's
		b.second.never = true
		s.close()
		b.killLoading()
	default:
		b.second.after = 0
		b.standing.Store(s)
	}
	b.output.discard()
}

// leaves reports whether the second process has started others, which would run on beside an activation. They, and files, are removed.
func (b *box) leaves(s *spare) bool {
	ctx, cancel := context.WithTimeout(b.w.stopped, forkLimit)
	defer cancel()
	b.reseting.Lock()
	defer b.reseting.Unlock()
	killed, err := b.sandbox.Reset(ctx, b.spare.hostPID, s.hostPID)
	return err != nil || killed > 0
}

// killLoading kills everything but the first process. It closes no connection: those of that one stay.
func (b *box) killLoading() {
	ctx, cancel := context.WithTimeout(b.w.stopped, forkLimit)
	defer cancel()
	b.reseting.Lock()
	defer b.reseting.Unlock()
	_, _ = b.sandbox.Reset(ctx, b.spare.hostPID) // if it fails the sandbox has ended
}

// takeOver returns the process that stands by, if it lives.
func (b *box) takeOver() *spare {
	s := b.standing.Swap(nil)
	if s == nil || s.hasExited() || s.killed.Load() {
		return nil
	}
	if s.stopped {
		b.tell(runtimewire.TypeContinue, runtimewire.Continue{PID: s.pid})
	}
	return s
}

// kept are the processes that a reset leaves between two activations.
func (b *box) kept() []int {
	kept := []int{b.spare.hostPID}
	if s := b.standing.Load(); s != nil && !s.hasExited() {
		kept = append(kept, s.hostPID)
	}
	return kept
}

// survivorOf is the process that is spared when everything of an activation is killed: one that knows nothing of it.
func (b *box) survivorOf(handler *spare) *spare {
	s := b.upcoming.Load()
	if b.keeps() {
		s = b.standing.Load()
	}
	if s == nil || s == handler || !s.isReady() {
		return nil
	}
	return s
}
