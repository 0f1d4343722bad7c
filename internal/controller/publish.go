package controller

import (
	"context"
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// publish writes the records of a tree that is over, then lets who waits for it go on.
func (c *Controller) publish(t *tree) {
	defer c.busy.Done()
	t.invocation.end(t.records[len(t.records)-1], c.write(t.written, t.records))
}

// published returns when the records are written of all calls that are over: one that was answered ahead (answerCall) has its record
// later than its answer.
func (e *execution) published(ctx context.Context) error {
	e.mu.Lock()
	publishing := slices.Clone(e.publishing)
	e.mu.Unlock()
	for _, published := range publishing {
		select {
		case <-published:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// writeSome writes the records that there are, of a tree that goes on.
func (c *Controller) writeSome(t *tree) {
	written, before, records := make(chan error, 1), t.written, t.records
	t.written, t.records, t.bytes = written, nil, 0
	go func() { written <- c.write(before, records) }()
}

// write writes records once those before them are written.
func (c *Controller) write(before <-chan error, records []*forerun.Activation) error {
	if before != nil {
		if err := <-before; err != nil {
			return err
		}
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
	return err
}
