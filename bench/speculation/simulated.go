package speculation

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/speculation/cluster"
)

const (
	// processors are those of the paper's cluster: five servers of 24 cores.
	processors = 120
	// played is how many requests a run of the simulation has.
	played = 4000
	// oneByOne is how long it takes to have a sandbox again that was ended with what was squashed in it.
	oneByOne = 60 * time.Millisecond
)

// model is what Table I says of a suite: functions and their time, what calls what. What a function and a call cost of the
// processors is what they cost Forerun here.
type model struct {
	suite
	each  time.Duration // of a function
	build func(hits float64, cost cluster.Cost) (*cluster.Application, error)
}

func models() []model {
	all := suites()
	called := func(name string, n, callees, depth int) func(float64, cluster.Cost) (*cluster.Application, error) {
		return func(_ float64, c cluster.Cost) (*cluster.Application, error) {
			return cluster.Called(name, n, callees, depth, c), nil
		}
	}
	return []model{
		{all[0], 160 * time.Millisecond * 10 / 78, func(hits float64, c cluster.Cost) (*cluster.Application, error) {
			return cluster.Composed("FaaSChain", 8, 3, hits, c)
		}},
		{all[1], 268 * time.Millisecond * 10 / 112, called("TrainTicket", 11, 5, 3)},
		{all[2], 387 * time.Millisecond * 10 / 176, called("Alibaba", 18, 3, 5)},
	}
}

// cost is that of a model's functions.
func (m *model) cost() cluster.Cost {
	const cpu, call = 2500 * time.Microsecond, 2 * time.Millisecond
	return cluster.Cost{CPU: cpu, Call: call, Wait: m.each - cpu}
}

// simulate plays the paper's evaluation on a cluster of its size.
func simulate(_ context.Context, b *bench) error {
	for _, m := range models() {
		a, err := m.build(0.9, m.cost())
		if err != nil {
			return err
		}
		b.simulateLoads(&m, a)
		b.simulateThroughput(&m, a)
	}
	return b.simulateHits()
}

// playAt plays an application at a share of the baseline's capacity on so many processors.
func playAt(processors int, a *cluster.Application, share float64, mode string, squash time.Duration) cluster.Played {
	run := runAt(processors, a, share, mode)
	run.Squash = squash
	return cluster.Play(run)
}

// runAt is what playAt plays.
func runAt(processors int, a *cluster.Application, share float64, mode string) cluster.Run {
	_, cpu := a.Alone()
	return cluster.Run{Application: a, Mode: mode, Processors: processors, Requests: played, Rate: share * float64(processors) / cpu.Seconds()}
}

// simulateLoads is Figures 11 to 13, and what of them this machine's processors can show.
func (b *bench) simulateLoads(m *model, a *cluster.Application) {
	var tails []float64
	for i, share := range []float64{0.2, 0.5, 0.8} {
		what := fmt.Sprintf("%s at %.0f%%", m.name, share*100)
		few := func(mode string) []float64 { return playAt(runtime.NumCPU(), a, share, mode, 0).MS }
		b.gainRows(b.on(runtime.NumCPU(), what), few("off"), few("all"), math.NaN())
		name := b.on(processors, what)
		off, all := playAt(processors, a, share, "off", 0), playAt(processors, a, share, "all", 0)
		before := harness.Mean(off.MS)
		tails = append(tails, b.gainRows(name, off.MS, all.MS, m.speedup[i]))
		if i > 0 {
			continue
		}
		branches, slow := playAt(processors, a, share, "branches", oneByOne), playAt(processors, a, share, "all", oneByOne)
		b.row(harness.Row{Case: name, Metric: "mean speedup, branches alone, sandboxes ended by squashes (paper: all loads)", Unit: "x", Value: harness.Number(before / harness.Mean(branches.MS)), Paper: harness.Number(m.branches)})
		b.row(harness.Row{Case: name, Metric: "mean speedup, sandboxes ended by squashes (paper: all loads)", Unit: "x", Value: harness.Number(before / harness.Mean(slow.MS)), Paper: harness.Number(m.memoized)})
	}
	b.row(harness.Row{Case: b.on(processors, m.name+", mean of all loads"), Metric: "p99 lower by", Unit: "%", Value: harness.Number(harness.Mean(tails)), Paper: harness.Number(m.tail)})
}

// gainRows are the mean speedup and by how much p99 is lower, which it returns.
func (b *bench) gainRows(name string, off, all []float64, paper float64) (tail float64) {
	b.row(harness.Row{Case: name, Metric: "mean speedup", Unit: "x", Value: harness.Number(harness.Mean(off) / harness.Mean(all)), Paper: harness.Number(paper)})
	tail = 100 * (1 - harness.Quantile(all, 0.99)/harness.Quantile(off, 0.99))
	b.row(harness.Row{Case: name, Metric: "p99 lower by", Unit: "%", Value: harness.Number(tail)})
	return tail
}

// simulateThroughput is Table III: as many requests under way as there are processors.
func (b *bench) simulateThroughput(m *model, a *cluster.Application) {
	off, all := servedAt(processors, a, "off"), servedAt(processors, a, "all")
	b.row(harness.Row{
		Case: b.on(processors, m.name), Metric: servedMetric(processors), Unit: "1/s",
		Value: harness.Number(all), Baseline: harness.Number(off), Ratio: harness.Number(all / off), Paper: harness.Number(m.throughput),
	})
}

// simulateHits is Figure 14 and Table IV.
func (b *bench) simulateHits() error {
	m := models()[0]
	for _, h := range hits() {
		a, err := m.build(h.rate, m.cost())
		if err != nil {
			return err
		}
		off, all := playAt(processors, a, 0.2, "off", 0), playAt(processors, a, 0.2, "all", 0)
		run := runAt(processors, a, 0.2, "all")
		run.Lazy = true
		lazy := cluster.Play(run)
		name := b.on(processors, fmt.Sprintf("%s, hit rate %.0f%%", m.name, h.rate*100))
		b.row(harness.Row{Case: name, Metric: "mean speedup", Unit: "x", Value: harness.Number(harness.Mean(off.MS) / harness.Mean(all.MS)), Paper: harness.Number(h.speedup)})
		b.row(harness.Row{Case: name, Metric: "processor time beside the baseline's", Unit: "x", Value: harness.Number(all.CPU / off.CPU), Paper: harness.Number(h.cpu)})
		b.row(harness.Row{Case: name, Metric: "likewise, if squashed functions run to their ends", Unit: "x", Value: harness.Number(lazy.CPU / off.CPU), Paper: harness.Number(h.lazy)})
		b.row(harness.Row{Case: name, Metric: "of squashed functions", Unit: "x", Value: harness.Number(all.Squashed / off.CPU)})
	}
	return nil
}
