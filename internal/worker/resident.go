package worker

import (
	"context"
	"fmt"

	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/internal/sandbox"
)

// A kept Python process serves one activation after the other, but no speculative ones. A speculative activation gets a handler that is forked from
// the initializer for it alone, so its squash leaves nothing. If the kept process has served before, it waits meanwhile, and is called the
// resident. It has no thread, hears no signal, and has its connections set aside. The sandbox may use as much more memory as the resident
// has grown by. Beside a kept process a fresh handler stands by, so that a speculative activation does not wait for its fork.
//
// If the kept process listens to a channel, the activation waits until it is promoted, and gets that process.
//
// The resident ends where the two could connect to each other, where it has a connection on which it may send to the outside, or a second
// thread: a native one is not seen by the interpreter, hears signals and runs on.

// defaultKeptRuns is how many activations a kept Python process serves before another takes its place.
const defaultKeptRuns = 50_000

// grownPart is the part of an action's memory by which a kept Python process may grow.
const grownPart = 2

// besidePart is the part of an action's memory that a resident may have without the sandbox getting more.
const besidePart = 32

// keepsHandler reports whether the handler of the activation serves further ones.
func (b *pooledSandbox) keepsHandler() bool { return b.keeps() && !b.once.Load() }

// forksNext reports whether a handler is to be forked for an activation to come: the next, or a speculative one beside a kept process.
func (b *pooledSandbox) forksNext() bool { return !b.language.launched && b.standing.Load() == nil }

// chooseHandler makes spare the handler that an activation is to have.
func (b *pooledSandbox) chooseHandler(r *run) error {
	b.once.Store(b.keeps() && !b.language.launched && r.isAhead())
	switch {
	case r.Fresh && b.spare.served && !b.once.Load():
		b.spare.stays = false
		if !b.clean() {
			return errExited
		}
		return nil
	case !b.once.Load():
		return nil
	case !b.spare.served:
		return nil
	case b.doors.tenure().listens(): // to what a slot before may publish: hold has the activation wait for its promotion
		b.once.Store(false)
		return nil
	case !hasOneThread(b.spare.hostPID), !b.spare.unreached && b.isReachable(b.spare), !b.roomBeside(b.spare):
		b.spare.stays = false
		if !b.clean() {
			return errExited
		}
		return nil
	}
	b.spare.unreached = true
	b.spare.conns = b.doors.setAside()
	b.resident.Store(b.spare)
	if err := b.freshSpare(); err != nil {
		return err
	}
	b.handOver()
	return nil
}

// hasOneThread reports whether a process has one thread, as the kernel counts. When it cannot be told, it has more.
func hasOneThread(pid int) bool {
	t, ok := proc.ReadTask(fmt.Sprintf("/proc/%d/stat", pid))
	return ok && t.Threads == 1
}

// freshSpare takes a handler that an activation before has not stopped.
func (b *pooledSandbox) freshSpare() error {
	for range maxForks {
		if err := b.nextSpare(); err != nil {
			return err
		}
		if !b.spare.isUseless() {
			return nil
		}
		b.spare.discard()
		if err := b.reset(b.resident.Load().hostPID); err != nil {
			return err
		}
	}
	return errExited
}

// isForked reports whether the sandbox keeps a process that was forked.
func (b *pooledSandbox) isForked() bool { return b.keeps() && !b.language.launched }

// resume makes the resident the next handler, if there is one that lives. A fresh handler that was asked for meanwhile stands by.
func (b *pooledSandbox) resume() (resumed bool, err error) {
	s := b.resident.Swap(nil)
	if s == nil {
		return false, nil
	}
	if s.hasExited() || s.killed.Load() {
		s.discard()
		return false, nil
	}
	b.spare, s.stays = s, false // clean looks whether the activation has stopped it
	return true, b.receiveFresh()
}

// receiveFresh has the fresh handler stand by that was asked for as an activation ran, beside the kept process that is the next handler.
func (b *pooledSandbox) receiveFresh() error {
	if !b.isForked() || !b.forking.Load() {
		return nil
	}
	limit := b.forkTime()
	if b.held {
		limit = heldFork
	}
	switch fresh, err := b.awaitSpare(limit); {
	case err != nil: // the next one is made when it is needed
		return nil
	case b.struck.Load(): // the kill may have hit it as it was made
		fresh.discard()
		return b.reset(b.spare.hostPID)
	default:
		b.standing.Store(fresh)
		return nil
	}
}

// goBack makes the resident the next handler after an activation that did not come to the fresh one, which stands by.
func (b *pooledSandbox) goBack() error {
	fresh := b.spare
	resumed, err := b.resume()
	if !resumed {
		return err
	}
	if b.standing.Load() == nil && !b.struck.Load() {
		b.standing.Store(fresh)
	} else {
		fresh.discard()
		err = b.reset(b.kept()...)
	}
	b.handOver()
	return err
}

// dropResident ends the resident.
func (b *pooledSandbox) dropResident() error {
	b.resident.Swap(nil).discard()
	return b.reset(b.spare.hostPID)
}

// isWorn reports whether a kept Python process is to serve no more: it has served many activations, or its memory has grown much.
func (b *pooledSandbox) isWorn(s *spare) bool {
	if !b.isForked() {
		return false
	}
	s.runs++
	return s.runs >= b.w.config.KeptRuns || s.grown() > b.pool().memory()/grownPart
}

// measure notes how much memory a process has that is about to be given its first activation.
func (s *spare) measure() {
	memory, err := proc.OpenMemory(s.hostPID)
	if err != nil {
		return // it has ended
	}
	s.born = memory.Anonymous()
	s.memory.Store(memory)
}

// grown is by how many bytes the memory of a kept process has grown since then.
func (s *spare) grown() int64 {
	memory := s.memory.Load()
	if memory == nil {
		return 0
	}
	return max(0, memory.Anonymous()-s.born)
}

// roomBeside lets the sandbox use as much more memory as the process that is to wait has grown by, if there is room.
func (b *pooledSandbox) roomBeside(s *spare) bool {
	w, grown := b.w, s.grown()
	if grown <= b.pool().memory()/besidePart {
		return true
	}
	w.mu.Lock()
	more := grown - b.second.bytes
	fits := more <= 0 || w.charged+more <= w.limit
	if fits && more > 0 {
		b.second.bytes = grown
		w.charge(b, b.memory())
	}
	w.mu.Unlock()
	if !fits || more <= 0 {
		return fits
	}
	ctx, cancel := context.WithTimeout(b.stopped, forkLimit)
	defer cancel()
	return b.sandbox.Limit(ctx, sandbox.Limits{MemoryMiB: int(b.memory() >> 20)}) == nil
}
