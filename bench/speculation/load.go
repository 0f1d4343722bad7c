package speculation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// answered is what became of the requests of a load, in the order in which they were due.
type answered struct {
	ms       []float64 // from when each was due to its answer
	took     time.Duration
	underWay int // requests at a time, if so many were kept under way
}

// clients send requests on connections that they keep.
type clients struct {
	idle harness.Idle
}

func (c *clients) close() { c.idle.Close() }

// send sends one request and waits for its answer.
func (c *clients) send(ctx context.Context, r *harness.Request) error {
	conn, err := c.idle.Take(ctx, r)
	if err != nil {
		return err
	}
	if _, err := conn.Send(ctx, r); err != nil {
		conn.Close()
		return err
	}
	c.idle.Give(conn)
	return nil
}

// open sends requests when they are due, whatever became of those before. How long an answer took counts from when its request was
// due: what a busy machine sends late is not taken off.
func (c *clients) open(ctx context.Context, due []time.Duration, requests []*harness.Request) (*answered, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &answered{ms: make([]float64, len(due))}
	var sent sync.WaitGroup
	begin := time.Now()
	for i, at := range due {
		select {
		case <-time.After(time.Until(begin.Add(at))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		sent.Go(func() {
			if err := c.send(ctx, requests[i%len(requests)]); err != nil {
				cancel(fmt.Errorf("request %d of %d: %w", i+1, len(due), err))
				return
			}
			a.ms[i] = float64(time.Since(begin.Add(at))) / float64(time.Millisecond)
		})
	}
	sent.Wait()
	a.took = time.Since(begin)
	return a, context.Cause(ctx)
}

// closed keeps n requests under way for a time; begin is the first of the requests to send.
func (c *clients) closed(ctx context.Context, n, first int, d time.Duration, requests []*harness.Request) (*answered, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	next.Store(int64(first))
	var working sync.WaitGroup
	own := make([][]float64, n)
	begin := time.Now()
	for i := range n {
		working.Go(func() {
			for sent := time.Now(); sent.Sub(begin) < d && ctx.Err() == nil; sent = time.Now() {
				r := requests[int(next.Add(1)-1)%len(requests)]
				if err := c.send(ctx, r); err != nil {
					cancel(err)
					return
				}
				own[i] = append(own[i], float64(time.Since(sent))/float64(time.Millisecond))
			}
		})
	}
	working.Wait()
	a := &answered{took: time.Since(begin), underWay: n}
	for _, ms := range own {
		a.ms = append(a.ms, ms...)
	}
	return a, context.Cause(ctx)
}

// perSecond is how many requests were answered in a second while so many were under way (Little's law): at the end of a short time,
// when no more begin, there are fewer, the longer the more each takes.
func (a *answered) perSecond() float64 { return float64(a.underWay) / harness.Mean(a.ms) * 1000 }
