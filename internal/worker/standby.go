package worker

import (
	"context"
	"time"

	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
)

// A sandbox whose process is started, not forked, has no spare. After a squash it would have to start one, which takes tens of
// milliseconds for Node. So once running activations of an action were squashed, its sandboxes keep a
// second process, which takes over when the first is killed.
//
// The second process is loaded while the sandbox is idle and its effects may go out. It must not see anything of an
// activation, and its output belongs to no log. The first process is stopped meanwhile, so every new connection belongs
// to the second. Then the second is stopped, and does nothing until it takes over.
//
// There is no second process where the two could connect to each other: the first would tell it about squashed
// activations.

// A sandbox is idle for this long before its second process is loaded. The time doubles each time that an activation comes in between.
const (
	standbyFirst = 5 * time.Millisecond
	standbyLast  = 10 * time.Second
)

// standby is a sandbox's second process. live owns all fields that name no other guard.
type standby struct {
	loading bool          // it was asked for
	paused  bool          // the first one is stopped
	after   time.Duration // of idleness
	useless int           // how many of it, in a row, had ended or did not wait alone: at maxForks, the code cannot be loaded twice
	bytes   int64         // that the sandbox may use for it, beyond the action's limit; guarded by Worker.mu
}

// wantsStandby reports whether the sandbox should have a second process, and has none. Effects of loading it go out, so
// there is none while only speculative activations have used the code.
func (b *pooledSandbox) wantsStandby() bool {
	if b.held || !b.keeps() || !b.language.standby || b.second.useless == maxForks || b.second.loading || b.standing.Load() != nil {
		return false
	}
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	return b.pool().squashes
}

// standbyAfter is how long the sandbox must be idle before it gets one.
func (b *pooledSandbox) standbyAfter() time.Duration {
	if !b.wantsStandby() {
		return standbyLast
	}
	return max(b.second.after, standbyFirst)
}

// later has it wait twice as long.
func (s *standby) later() { s.after = min(2*max(s.after, standbyFirst), standbyLast) }

// buryStandby makes place for another in the place of one that has ended.
func (b *pooledSandbox) buryStandby() {
	if s := b.standing.Load(); s != nil && s.hasExited() {
		b.standing.Store(nil)
		s.discard()
	}
}

// standBy has a second process loaded. Its memory is not taken from the first one's. Where that cannot be now, it is tried again.
func (b *pooledSandbox) standBy() {
	if !b.wantsStandby() {
		return
	}
	if b.isReachable(b.spare) || !b.roomForStandby() || !b.pauseFirst() {
		b.second.later()
		return
	}
	b.doors.part()
	if len(b.assigned) > 0 {
		b.rejoinDoors().end(nil)
		return
	}
	b.leaveFirst() // in a file that both have open the one would tell the other
	b.second.loading = true
	b.upcoming.Store(b.spare)
	b.askFork(runtimewire.Fork{Stop: true})
}

// pauseFirst stops the first process, and reports whether that can be.
func (b *pooledSandbox) pauseFirst() bool {
	b.tell(runtimewire.TypePause, runtimewire.Pause{PID: b.spare.pid})
	late := time.NewTimer(forkLimit)
	defer late.Stop()
	select {
	case p := <-b.paused:
		b.second.paused = p.Stopped
	case <-late.C:
		_ = b.control.Close() // listen ends, and the sandbox with it
	case <-b.dead:
	}
	return b.second.paused
}

// rejoinDoors lets the first process go on, which the doors are for again. It returns the tenure of what the second is connected with.
func (b *pooledSandbox) rejoinDoors() (seconds *tenure) {
	seconds = b.doors.rejoin()
	if b.second.paused {
		b.tell(runtimewire.TypeContinue, runtimewire.Continue{PID: b.spare.pid})
	}
	b.second.paused = false
	return seconds
}

// sayDecided wakes live when it is known if a process that was asked for will be of use.
func (b *pooledSandbox) sayDecided() {
	if !b.keeps() {
		return // there is one for each activation
	}
	select {
	case b.decided <- struct{}{}:
	default:
	}
}

// roomForStandby sees that the sandbox may use as much more as its first process does, if there is room for that beside an activation.
func (b *pooledSandbox) roomForStandby() bool {
	w := b.w
	w.mu.Lock()
	bytes, had := b.measured, b.second.bytes
	fits := bytes > 0 && w.charged+bytes <= w.limit && (had > 0 || b.memory()+bytes <= w.limit)
	if fits && had == 0 {
		b.second.bytes = bytes
	}
	w.mu.Unlock()
	if !fits || had > 0 {
		return fits
	}
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Limit(ctx, sandbox.Limits{MemoryMiB: int(b.memory() >> 20)}) == nil
}

// memory is the memory that an activation may use in the sandbox, including a second process. Callers hold Worker.mu, or
// are live.
func (b *pooledSandbox) memory() int64 { return b.pool().memory() + b.second.bytes }

// receiveStandby receives the second process while the sandbox is idle, if that is what was decided.
func (b *pooledSandbox) receiveStandby() {
	if b.second.loading && b.hasArrived() {
		b.settleStandby()
	}
}

// hasArrived reports whether it is known if the second process will be of use.
func (b *pooledSandbox) hasArrived() bool {
	s := b.upcoming.Load()
	return s != b.spare && s.isDecided()
}

// settleStandby sees, before an activation, that no process is being loaded beside it. One that has come too late is killed: that it
// failed then says nothing.
func (b *pooledSandbox) settleStandby() {
	if !b.second.loading {
		return
	}
	b.second.loading = false
	arrived := b.hasArrived()
	if !arrived {
		b.killUntilItComes()
	}
	s, err := b.awaitSpare(b.forkTime())
	fine := err == nil && arrived && b.waitsAlone(s)
	if !fine {
		b.leaveFirst()
	}
	conns := b.rejoinDoors()
	if fine {
		s.conns, b.second.after, b.second.useless = conns, 0, 0
		b.standing.Store(s)
	} else {
		b.second.later()
		if arrived {
			b.second.useless++
		}
		conns.end(nil)
		if s != nil {
			s.close()
		}
	}
	b.output.discard()
}

// waitsAlone reports whether nothing of the second process runs on beside an activation: neither others that it has started, which are
// removed, nor the process itself. Nor may the two be connected.
func (b *pooledSandbox) waitsAlone(s *spare) bool {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	b.reseting.Lock()
	defer b.reseting.Unlock()
	killed, err := b.sandbox.Reset(ctx, b.spare.hostPID, s.hostPID)
	return err == nil && killed == 0 && s.stopped && !b.isReachable(b.spare, s)
}

// isReachable reports whether others in the sandbox can connect to one of its processes. When it cannot be told, they can.
func (b *pooledSandbox) isReachable(processes ...*spare) bool {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	var pids []int
	for _, s := range processes {
		pids = append(pids, s.hostPID)
	}
	is, err := b.sandbox.Reachable(ctx, pids...)
	return is || err != nil
}

// killAgain is how often what is being loaded is killed: it may not have been started yet.
const killAgain = 2 * time.Millisecond

// killUntilItComes kills the second process until the initializer has told of it, or of its end.
func (b *pooledSandbox) killUntilItComes() {
	again := time.NewTicker(killAgain)
	defer again.Stop()
	for end := time.Now().Add(forkLimit); len(b.spares) == 0; {
		b.leaveFirst()
		select {
		case <-again.C:
		case <-b.dead:
			return
		}
		if time.Now().After(end) {
			_ = b.control.Close() // listen ends, and the sandbox with it
		}
	}
}

// leaveFirst leaves nothing but the first process, whose connections stay, too.
func (b *pooledSandbox) leaveFirst() {
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	b.reseting.Lock()
	defer b.reseting.Unlock()
	_, _ = b.sandbox.Reset(ctx, b.spare.hostPID) // if it fails the sandbox has ended
}

// takeOver returns the process that stands by, if it lives, for handOver to let it go on.
func (b *pooledSandbox) takeOver() *spare {
	s := b.standing.Swap(nil)
	if s == nil {
		return nil
	}
	if s.hasExited() || s.killed.Load() {
		s.discard()
		return nil
	}
	return s
}

// handOver gives a process that took over what it is connected with, and lets it go on.
func (b *pooledSandbox) handOver() {
	s := b.spare
	if s.conns != nil {
		b.doors.adopt(s.conns)
		s.conns = nil
	}
	if s.stopped {
		s.stopped = false
		b.tell(runtimewire.TypeContinue, runtimewire.Continue{PID: s.pid})
	}
}

// kept are the processes that a reset leaves between two activations.
func (b *pooledSandbox) kept() []int {
	kept := []int{b.spare.hostPID}
	if s := b.standing.Load(); s != nil && !s.hasExited() {
		kept = append(kept, s.hostPID)
	}
	return kept
}

// survivorOf is the process that is spared when everything of an activation is killed: one that knows nothing of it.
func (b *pooledSandbox) survivorOf(handler *spare) *spare {
	s := b.upcoming.Load()
	if resident := b.resident.Load(); resident != nil {
		s = resident
	} else if b.keepsHandler() {
		s = b.standing.Load()
	}
	if s == nil || s == handler || !s.isReady() {
		return nil
	}
	return s
}
