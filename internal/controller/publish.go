package controller

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// publication is the writing of a call's records. A call that was answered while its caller was speculative (answerCall)
// has its records later than its answer, and the caller may not have waited for them. A failed write is tried again on
// the next request for it, and at the end.
type publication struct {
	namespace  string
	invocation *Invocation
	done       chan struct{} // closed when it was tried once
	well       atomic.Bool   // it is over, and no waiter needs its error any more

	mu   sync.Mutex            // guards the rest, once done is closed
	left []*forerun.Activation // that are not written
	lost error                 // why others never will be
	told bool                  // a function heard that something is not written
}

// publish writes the records of a finished tree. When the records of its speculative calls are also written, it lets the
// waiters continue.
func (c *Controller) publish(t *tree, calls []*publication, p *publication) {
	defer c.busy.end(p.namespace)
	defer close(p.done)
	p.left, p.lost = t.records, outcome(t.written)
	c.date(p.left)
	err := c.complete(p)
	for _, call := range calls {
		<-call.done
		err = cmp.Or(err, c.retry(call))
	}
	if t.invocation.end(t.records[len(t.records)-1], err); t.invocation.err != nil || err == nil {
		p.well.Store(true)
	}
}

// complete writes the records that are left, and returns why some are not written.
func (c *Controller) complete(p *publication) error {
	if err := c.put(p.left); err != nil {
		return cmp.Or(p.lost, err)
	}
	p.left = nil
	return p.lost
}

// retry is complete for a publication that was tried before.
func (c *Controller) retry(p *publication) error {
	if p.well.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	err := c.complete(p)
	if err == nil && p.well.CompareAndSwap(false, true) {
		p.invocation.settle(p.invocation.record, nil)
	}
	return err
}

// published returns when the records of all finished calls are written. It returns an error if the records of a call
// that was already answered could not be written. The error is returned once, as the call itself fails once without
// speculation. The client also hears of it if the records are still missing at the end.
func (e *execution) published(ctx context.Context) error {
	e.mu.Lock()
	publishing := slices.Clone(e.publishing)
	e.mu.Unlock()
	for _, p := range publishing {
		select {
		case <-p.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := e.c.retry(p); err != nil && p.tell() {
			return forerun.Errorf(forerun.KindOf(err), "", "The records of a call could not be written, so what depends on it is not done; invoke it again when they can be: %w", err)
		}
	}
	return nil
}

// tell reports whether no waiter was told before.
func (p *publication) tell() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.told
	p.told = true
	return !before
}

// writeSome writes the records that there are, of a tree that goes on.
func (c *Controller) writeSome(t *tree) {
	written, before, records := make(chan error, 1), t.written, t.records
	t.written, t.records, t.bytes = written, nil, 0
	go func() {
		lost := outcome(before)
		c.date(records)
		written <- cmp.Or(lost, c.put(records)) // if those before could not be written, these have a record all the same
	}()
}

// outcome is why records before could not be written; nil if there are none.
func outcome(before <-chan error) error {
	if before == nil {
		return nil
	}
	return <-before
}

// put writes records: all or none.
func (c *Controller) put(records []*forerun.Activation) error {
	if len(records) == 0 {
		return nil
	}
	err := c.Records.Put(context.Background(), records...)
	if err != nil {
		return err
	}
	for _, record := range records {
		c.Feed.End(record)
		if c.Observe != nil {
			c.Observe(record)
		}
	}
	return nil
}
