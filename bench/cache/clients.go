package cache

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// many is how many clients call at once.
const many = 32

// clients counts the answers to 32 clients: of the echo, of a native function, and of a known one; then the times of hits by load.
func (b *bench) clients(ctx context.Context) error {
	on, err := b.start(ctx, "--speculate", "off")
	if err != nil {
		return err
	}
	defer on.stop()
	if err := b.deploySingles(ctx, on); err != nil {
		return err
	}
	echo, err := harness.NewRequest(b.echo.URL, "", input, sent)
	if err != nil {
		return err
	}
	executed, err := on.request("executed", input, sent)
	if err != nil {
		return err
	}
	known, err := on.request("known", input, sent)
	if err != nil {
		return err
	}
	all, d, rounds := []*harness.Request{echo, executed, known}, 2*time.Second, 8
	if b.quick {
		d, rounds = 700*time.Millisecond, 4
	}
	rates := make([]harness.Sample, len(all))
	for round := range rounds + 1 {
		for i := range all {
			at := (round + i) % len(all)
			rate, err := flood(ctx, all[at], d)
			if err != nil {
				return err
			}
			if round > 0 { // the first has begun with too few sandboxes
				rates[at].Round()
				rates[at].AddMilliseconds(rate)
			}
		}
	}
	const name = "32 clients of a known function"
	b.row(harness.Row{Case: name, Metric: "calls, median of the rounds", Unit: "1/s", Value: harness.Number(rates[2].P50())})
	for i, base := range []struct {
		metric, target string
		sample         *harness.Sample
	}{{"calls beside those of a warm native function", ">=2", &rates[1]}, {"calls beside the echo's", ">=0.4", &rates[0]}} {
		b.row(harness.Row{
			Case: name, Metric: base.metric, Unit: "x", Value: harness.Number(rates[2].P50() / base.sample.P50()),
			Target: harness.Text(base.target),
		})
		lower, _, upper := harness.Ratios(&rates[2], base.sample)
		b.row(harness.Row{Case: name, Metric: base.metric + ": lower quartile of the rounds", Unit: "x", Value: harness.Number(lower)})
		b.row(harness.Row{Case: name, Metric: base.metric + ": upper quartile of the rounds", Unit: "x", Value: harness.Number(upper)})
		b.row(harness.Row{Case: name, Metric: []string{"calls of the native function", "calls of the echo"}[i], Unit: "1/s", Value: harness.Number(base.sample.P50())})
	}
	return b.hitsByLoad(ctx, known, rates[2].P50())
}

// hitsByLoad has hits come at random, at 20 and at 80% of the rate that 32 clients reach, in turn.
func (b *bench) hitsByLoad(ctx context.Context, known *harness.Request, capacity float64) error {
	d, rounds := 3*time.Second, 5
	if b.quick {
		d, rounds = time.Second, 3
	}
	var light, heavy harness.Sample
	for round := range rounds {
		for share, into := range map[float64]*harness.Sample{0.2: &light, 0.8: &heavy} {
			into.Round()
			if err := arrive(ctx, known, harness.Arrivals(uint64(round), share*capacity, d), into); err != nil {
				return err
			}
		}
	}
	const name = "hits that come at random"
	b.row(harness.Row{Case: name, Metric: "p99 at 20% load", Unit: "ms", Value: harness.Number(light.P99())})
	b.row(harness.Row{Case: name, Metric: "p99 at 80% load", Unit: "ms", Value: harness.Number(heavy.P99()), Baseline: harness.Number(light.P99()), Ratio: harness.Number(heavy.P99() / light.P99())})
	b.row(harness.Row{Case: name, Metric: "p99 at 80% load beside 20%", Unit: "x", Value: harness.Number(heavy.P99() / light.P99()), Target: harness.Text("<=5")})
	return nil
}

// flood has the clients send a request as fast as it is answered, and returns how many answers there were in a second.
func flood(ctx context.Context, r *harness.Request, d time.Duration) (rate float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	var answered atomic.Int64
	begin := time.Now()
	for range many {
		all.Go(func() {
			conn, err := r.Connect(ctx)
			if err != nil {
				cancel(err)
				return
			}
			defer conn.Close()
			for time.Since(begin) < d && ctx.Err() == nil {
				if _, err := conn.Call(ctx); err != nil {
					cancel(err)
					return
				}
				answered.Add(1)
			}
		})
	}
	all.Wait()
	return float64(answered.Load()) / time.Since(begin).Seconds(), context.Cause(ctx)
}

// arrive sends a request whenever it is due, on connections that are kept. A time counts from when the request was due.
func arrive(ctx context.Context, r *harness.Request, due []time.Duration, into *harness.Sample) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := make(chan *harness.Connection, len(due))
	took := make([]time.Duration, len(due))
	var sent sync.WaitGroup
	begin := time.Now()
	for i, at := range due {
		if wait := time.Until(begin.Add(at)); wait > 0 {
			time.Sleep(wait)
		}
		if ctx.Err() != nil {
			break
		}
		sent.Go(func() {
			var conn *harness.Connection
			var err error
			select {
			case conn = <-idle:
			default:
				if conn, err = r.Connect(ctx); err != nil {
					cancel(err)
					return
				}
			}
			if _, err := conn.Call(ctx); err != nil {
				conn.Close()
				cancel(err)
				return
			}
			took[i] = time.Since(begin.Add(at))
			idle <- conn
		})
	}
	sent.Wait()
	close(idle)
	for conn := range idle {
		conn.Close()
	}
	for _, d := range took {
		into.Add(d)
	}
	return context.Cause(ctx)
}
