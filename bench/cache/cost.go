package cache

import (
	"context"
	"fmt"
	"slices"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// costing is an action on a server whose cache is on or off, and what the server's process took for its calls.
type costing struct {
	side   *side
	action string
	conn   *harness.Connection
	calls  int
	cpu    []time.Duration // by rounds
	sample harness.Sample
}

// cost measures what the cache costs where it does not help: a native function on inputs that never come again, and one without annotation,
// on a server with the cache on and on one with it off.
func (b *bench) cost(ctx context.Context) error {
	on, err := b.start(ctx, "--speculate", "off")
	if err != nil {
		return err
	}
	defer on.stop()
	off, err := b.start(ctx, "--speculate", "off", "--cache", "off")
	if err != nil {
		return err
	}
	defer off.stop()
	var all []*costing
	for _, action := range []string{"known", "executed"} {
		for _, s := range []*side{on, off} {
			if len(all) < 2 {
				if err := b.deploySingles(ctx, s); err != nil {
					return err
				}
			}
			all = append(all, &costing{side: s, action: action})
		}
	}
	const each = 200 // calls of a round
	rounds := 20_000 / each
	if b.quick {
		rounds = 15
	}
	for round := range rounds + 1 {
		for i := range all {
			c := all[(round+i)%len(all)]
			if err := c.round(ctx, each, round > 0); err != nil { // the first starts the sandboxes
				return err
			}
		}
	}
	for i, title := range []string{"a miss of a native function", "a native function without annotation"} {
		with, without := all[2*i], all[2*i+1]
		ratios := make([]float64, rounds)
		for k := range ratios {
			ratios[k] = float64(with.cpu[k]) / float64(without.cpu[k])
		}
		name, calls := fmt.Sprintf("%s, %d calls", title, rounds*each), float64(rounds*each)
		us := func(c *costing) float64 { return float64(sum(c.cpu)) / float64(time.Microsecond) / calls }
		b.row(harness.Row{Case: name, Metric: "processor time of the server", Unit: "us", Value: harness.Number(us(with)), Baseline: harness.Number(us(without)), Ratio: harness.Number(us(with) / us(without))})
		if i == 0 {
			b.row(harness.Row{Case: name, Metric: "processor time beside the cache off, median of the rounds", Unit: "x", Value: harness.Number(harness.Quantile(ratios, 0.5)), Target: harness.Text("<=1.02")})
		} else {
			b.row(harness.Row{Case: name, Metric: "processor time above the cache off", Unit: "us", Value: harness.Number(us(with) - us(without)), Target: harness.Text("<=4")})
			b.row(harness.Row{Case: name, Metric: "processor time beside the cache off, median of the rounds", Unit: "x", Value: harness.Number(harness.Quantile(ratios, 0.5))})
		}
		b.row(harness.Row{Case: name, Metric: "the same, lower quartile of the rounds", Unit: "x", Value: harness.Number(harness.Quantile(ratios, 0.25))})
		b.row(harness.Row{Case: name, Metric: "the same, upper quartile of the rounds", Unit: "x", Value: harness.Number(harness.Quantile(ratios, 0.75))})
		b.row(harness.Row{Case: name, Metric: "p50", Unit: "ms", Value: harness.Number(with.sample.P50()), Baseline: harness.Number(without.sample.P50()), Ratio: harness.Number(with.sample.P50() / without.sample.P50())})
	}
	for _, c := range all {
		c.conn.Close()
	}
	return nil
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

// round calls so many times, each time with another input.
func (c *costing) round(ctx context.Context, calls int, counts bool) (err error) {
	before := harness.ProcessClock(c.side.PID())
	c.sample.Round()
	for range calls {
		c.calls++
		r, err := c.side.request(c.action, fmt.Sprintf(`{%s,"n":%d}`, sent, c.calls), sent)
		if err != nil {
			return err
		}
		if c.conn == nil {
			if c.conn, err = r.Connect(ctx); err != nil {
				return err
			}
		}
		took, err := c.conn.Send(ctx, r)
		if err != nil {
			return err
		}
		if counts {
			c.sample.Add(took)
		}
	}
	if counts {
		c.cpu = append(c.cpu, harness.ProcessClock(c.side.PID())-before)
	}
	return nil
}

// hotCode reads the record that all its results rest on.
const hotCode = `
const Redis = require('ioredis')
const state = new Redis(process.env.REDIS_URL)
exports.main = async ({ n }) => ({ n, hot: await state.get('hot') })
`

// writes measures what a write to a record costs on which 5,000 results rest, beside one to a record that nothing has read.
func (b *bench) writes(ctx context.Context) error {
	on, err := b.start(ctx, "--speculate", "off")
	if err != nil {
		return err
	}
	defer on.stop()
	if err := on.client.Put(ctx, "hot", map[string]any{"exec": map[string]any{"kind": "nodejs:default", "code": hotCode}, "annotations": annotated()}); err != nil {
		return err
	}
	const rows = 5000
	if err := on.fill(ctx, "hot", rows, func(i int) string { return fmt.Sprintf(`{"n":%d}`, i) }); err != nil {
		return err
	}
	kept, err := on.metric(ctx, "forerun_cache_rows")
	if err != nil {
		return err
	}
	var hot, cold harness.Sample
	var first time.Duration
	n := b.count(10_000)
	for i := range n {
		if i%max(1, n/rounds) == 0 {
			hot.Round()
			cold.Round()
		}
		names := []string{"hot", "cold"}
		if i%2 == 1 && i > 1 {
			slices.Reverse(names)
		}
		for _, name := range names {
			begin := time.Now()
			if err := on.door.Set(ctx, name, i, 0).Err(); err != nil {
				return err
			}
			switch took := time.Since(begin); {
			case i == 0 && name == "hot":
				first = took
			case name == "hot":
				hot.Add(took)
			default:
				cold.Add(took)
			}
		}
	}
	name := fmt.Sprintf("a write to a record with %.0f results", kept)
	lower, middle, upper := harness.Ratios(&hot, &cold)
	b.row(harness.Row{Case: name, Metric: "p50", Unit: "ms", Value: harness.Number(hot.P50()), Baseline: harness.Number(cold.P50()), Ratio: harness.Number(hot.P50() / cold.P50())})
	b.row(harness.Row{Case: name, Metric: "p50 beside another record's, median of the rounds", Unit: "x", Value: harness.Number(middle), Target: harness.Text("<=1.05")})
	b.row(harness.Row{Case: name, Metric: "the same, lower quartile of the rounds", Unit: "x", Value: harness.Number(lower)})
	b.row(harness.Row{Case: name, Metric: "the same, upper quartile of the rounds", Unit: "x", Value: harness.Number(upper)})
	b.row(harness.Row{Case: name, Metric: "the first write", Unit: "ms", Value: harness.Number(first.Seconds() * 1000)})
	return nil
}
