package worker

import (
	"context"
	"errors"
	"slices"
	"time"
)

// hold prepares the sandbox for an activation. What a speculative one sends to the outside waits. A process that served others
// may hold connections that were made before: it is given a speculative activation only once that is promoted.
func (b *box) hold(r *run) error {
	if r.Speculative && b.language.reuse {
		select {
		case <-r.promoted:
		case <-r.tenure.squashed:
		case <-b.dead:
			return errExited
		case <-b.w.stopped.Done():
			return errExited
		}
	}
	select {
	case <-r.tenure.squashed:
		return errSquashed
	default:
	}
	held := r.Speculative && !r.isPromoted()
	if held == b.held {
		return nil
	}
	ctx, cancel := context.WithTimeout(b.w.stopped, forkLimit)
	defer cancel()
	if err := b.sandbox.Hold(ctx, held); err != nil {
		return err
	}
	b.held = held
	return nil
}

var errSquashed = errors.New("the activation was squashed before it began")

// letGo lets what a speculative activation sends go out when that is promoted; the time that it may take counts from then on. The
// returned function ends the wait.
func (b *box) letGo(r *run, limit *time.Timer) (end func()) {
	if !b.held {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-r.promoted:
		case <-over:
			return
		}
		if limit.Stop() {
			limit.Reset(time.Duration(r.Action.Limits.Timeout) * time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(b.w.stopped, forkLimit)
		defer cancel()
		if b.sandbox.Hold(ctx, false) == nil {
			b.held = false
		}
	}()
	return func() {
		close(over)
		<-ended
	}
}

func (r *run) isPromoted() bool {
	select {
	case <-r.promoted:
		return true
	default:
		return false
	}
}

// line puts a run into its pool's queue: speculative ones wait behind the others (C5).
func (p *pool) line(r *run) {
	at := len(p.queue)
	if !r.Speculative || r.isPromoted() {
		if first := slices.IndexFunc(p.queue, func(q *run) bool { return q.Speculative && !q.isPromoted() }); first >= 0 {
			at = first
		}
	}
	p.queue = slices.Insert(p.queue, at, r)
}

// hasten puts a run that waits and was promoted before those that are speculative.
func (w *Worker) hasten(r *run) {
	if i := slices.Index(r.pool.queue, r); i >= 0 {
		r.pool.queue = slices.Delete(r.pool.queue, i, i+1)
		r.pool.line(r)
	}
}
