package baseline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
)

const clients = 32

// measureThroughput counts the answers to 32 clients, in rounds with the echo server.
func measureThroughput(ctx context.Context, b *bench, l *language) error {
	if err := l.put(ctx, b.client, l.slug(), 0); err != nil {
		return err
	}
	action, err := b.action(b.client, l.slug(), trivial)
	if err != nil {
		return err
	}
	plain, err := url("the echo server", b.echo.URL, trivial)
	if err != nil {
		return err
	}
	if _, _, err := flood(ctx, action, b.lasting(3*time.Second)); err != nil { // until there are sandboxes enough
		return err
	}
	var served, echoed harness.Sample
	for range 5 {
		_, rate, err := flood(ctx, plain, b.lasting(500*time.Millisecond))
		if err != nil {
			return err
		}
		echoed.AddMilliseconds(rate)
		if _, rate, err = flood(ctx, action, b.lasting(2*time.Second)); err != nil {
			return err
		}
		served.AddMilliseconds(rate)
	}
	name := "32 clients of a " + l.name + " action"
	b.row(harness.Row{
		Case: name, Metric: "calls, median of five rounds", Unit: "1/s", Value: harness.Number(served.P50()),
		Baseline: harness.Number(echoed.P50()), Ratio: harness.Number(served.P50() / echoed.P50()), Target: harness.Text(l.throughput),
	})
	b.row(harness.Row{
		Case: name, Metric: "calls, slowest round", Unit: "1/s", Value: harness.Number(served.Quantile(0)), Baseline: harness.Number(echoed.Quantile(0)),
		Ratio: harness.Number(served.Quantile(0) / echoed.Quantile(0)),
	})
	return nil
}

// flood has 32 clients call as fast as they are answered, and returns how many answers there were, and how many in a second.
func flood(ctx context.Context, s subject, d time.Duration) (answered, rate float64, err error) {
	all := make([]subject, clients)
	for i := range all {
		all[i] = s
	}
	callers, err := connect(ctx, all...)
	if err != nil {
		return 0, 0, err
	}
	defer disconnect(callers)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var answers atomic.Int64
	var working sync.WaitGroup
	begin := time.Now()
	for _, c := range callers {
		working.Go(func() {
			var own int64
			for ; time.Since(begin) < d; own++ {
				if err := c.call(ctx); err != nil {
					cancel(err)
					return
				}
			}
			answers.Add(own)
		})
	}
	working.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, 0, err
	}
	answered = float64(answers.Load())
	return answered, answered / time.Since(begin).Seconds(), nil
}
