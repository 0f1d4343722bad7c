package controller

import (
	"cmp"
	"context"
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// publication is the writing of the records of a call, for which its caller may not have waited: one that was answered ahead (answerCall)
// has its record later than its answer.
type publication struct {
	done chan struct{}
	err  error // why that failed, unless the caller was told; to be read when done is closed
}

// isWell reports whether it is over, and nobody need hear of it any more.
func (p *publication) isWell() bool {
	select {
	case <-p.done:
		return p.err == nil
	default:
		return false
	}
}

// publish writes the records of a tree that is over, then, when those of calls ahead are, too, lets who waits for it go on.
func (c *Controller) publish(t *tree, calls []*publication, p *publication) {
	defer c.busy.Done()
	defer close(p.done)
	err := c.write(t.written, t.records)
	for _, call := range calls {
		<-call.done
		err = cmp.Or(err, call.err)
	}
	if t.invocation.end(t.records[len(t.records)-1], err); t.invocation.err == nil {
		p.err = err
	}
}

// published returns when the records are written of all calls that are over, or why one that was answered ahead has none.
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
		if p.err != nil {
			return forerun.Errorf(forerun.KindOf(p.err), "", "The records of a call could not be written, so what depends on it is not done; invoke it again when they can be: %w", p.err)
		}
	}
	return nil
}

// writeSome writes the records that there are, of a tree that goes on.
func (c *Controller) writeSome(t *tree) {
	written, before, records := make(chan error, 1), t.written, t.records
	t.written, t.records, t.bytes = written, nil, 0
	go func() { written <- c.write(before, records) }()
}

// write writes records once those before them are written. If these could not be, that is the error, but each activation that can have a
// record has one.
func (c *Controller) write(before <-chan error, records []*forerun.Activation) error {
	var missing error
	if before != nil {
		missing = <-before
	}
	for _, record := range records {
		c.date(record)
	}
	err := c.Records.Put(context.Background(), records...)
	if err == nil && c.Observe != nil {
		for _, record := range records {
			c.Observe(record)
		}
	}
	return cmp.Or(missing, err)
}
