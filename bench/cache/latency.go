package cache

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// result is what was measured of a suite.
type result struct {
	*suite
	cells  []*cell
	passes []*pass
	alone  float64 // ms that a script takes with nothing on, alone
}

// pass is the answers to single requests, one at a time, to the same requests in each cell.
type pass struct {
	name    string
	ms      map[*cell]map[string][]float64 // by application
	answers int                            // that were compared
	differ  int                            // of them, those that were not the same in all cells
	first   []byte                         // one of these
}

// take adds a time.
func (p *pass) take(c *cell, app string, took time.Duration) {
	if p.ms[c] == nil {
		p.ms[c] = map[string][]float64{}
	}
	p.ms[c][app] = append(p.ms[c][app], float64(took)/float64(time.Millisecond))
}

// script has each cell replay it; which comes first changes with the turn. The times of one application count, or of all if it is empty.
func (r *result) script(ctx context.Context, p *pass, s script, turn int, only string) error {
	answers := make([][][]byte, len(r.cells))
	for i := range r.cells {
		at := (turn + i) % len(r.cells)
		c := r.cells[at]
		err := c.replay(ctx, s, func(app string, answer []byte, took time.Duration) {
			answers[at] = append(answers[at], answer)
			if only == "" || only == app {
				p.take(c, app, took)
			}
		})
		if err != nil {
			return err
		}
	}
	for i, answer := range answers[0] {
		p.answers++
		for _, others := range answers[1:] {
			if !bytes.Equal(others[i], answer) {
				p.differ++
				p.first = fmt.Appendf(nil, "%s / %s", answer, others[i])
				break
			}
		}
	}
	return nil
}

// pass replays decks of scripts for a time, and two at least; then the applications of which there were too few.
func (r *result) pass(ctx context.Context, name string, d time.Duration, scale int) error {
	p := &pass{name: name, ms: map[*cell]map[string][]float64{}}
	random := rand.New(rand.NewPCG(44, uint64(len(r.passes))))
	begin, turn := time.Now(), 0
	for decks := 0; decks < 2 || time.Since(begin) < d; decks++ {
		for _, s := range r.deck(random, scale) {
			if err := r.script(ctx, p, s, turn, ""); err != nil {
				return err
			}
			turn++
		}
	}
	r.passes = append(r.passes, p)
	r.alone = p.alone(r.cellWith("off", "off"), turn)
	for range fewest { // the mix has too few of some
		for _, a := range r.apps {
			if len(p.ms[r.cells[0]][a.name]) >= fewest {
				continue
			}
			if err := r.script(ctx, p, a.draw(random), turn, a.name); err != nil {
				return err
			}
			turn++
		}
	}
	return nil
}

// alone is the time that each of so many scripts took in a cell, in milliseconds.
func (p *pass) alone(c *cell, scripts int) float64 {
	sum := 0.0
	for _, all := range p.ms[c] {
		for _, ms := range all {
			sum += ms
		}
	}
	return sum / float64(scripts)
}

// cellWith is the cell with so many on.
func (r *result) cellWith(cache, speculate string) *cell {
	for _, c := range r.cells {
		if c.cache == cache && c.speculate == speculate {
			return c
		}
	}
	return nil
}

// suites are the three, as a rough look or the full run has them.
func suites() []func(quick bool) (*suite, error) {
	return []func(bool) (*suite, error){trainTicket, hotelReservation, faasWorkflow}
}

// suite measures a suite: single requests in four cells, then load.
func (b *bench) suite(read func(quick bool) (*suite, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		s, err := read(b.quick)
		if err != nil {
			return err
		}
		r := &result{suite: s}
		if err := b.answers(ctx, r); err != nil {
			return err
		}
		return b.load(ctx, r)
	}
}

// seen is the name of the pass after each input was seen.
const seen = "inputs seen"

// answers measures single requests in four cells, from empty tables and once each input was seen.
func (b *bench) answers(ctx context.Context, r *result) error {
	for _, speculate := range modes() {
		for _, cache := range []string{"off", "on"} {
			c, err := b.cellOf(ctx, r.suite, cache, speculate)
			if err != nil {
				return err
			}
			defer c.stop()
			r.cells = append(r.cells, c)
		}
	}
	d, scale := 4*time.Minute, 1
	if b.quick {
		d, scale = 30*time.Second, 20
	} else if err := r.pass(ctx, "from an empty table", d, scale); err != nil {
		return err
	}
	b.progress("%s: each input once", r.name)
	first := &pass{ms: map[*cell]map[string][]float64{}}
	for turn, s := range r.first() {
		if err := r.script(ctx, first, s, turn, ""); err != nil {
			return err
		}
	}
	b.progress("%s: single requests", r.name)
	if err := r.pass(ctx, seen, d, scale); err != nil {
		return err
	}
	for _, p := range r.passes {
		b.latencyRows(r, p)
	}
	return b.oracleRows(ctx, r)
}

// modes are the modes of speculation that are measured.
func modes() []string { return []string{"off", "all"} }

// latencyRows are the rows of a pass: each application's mean and p99 beside those with the cache off.
func (b *bench) latencyRows(r *result, p *pass) {
	for _, speculate := range modes() {
		on, off := p.ms[r.cellWith("on", speculate)], p.ms[r.cellWith("off", speculate)]
		for _, a := range r.apps {
			with, without := on[a.name], off[a.name]
			name := fmt.Sprintf("%s: %s, speculation %s, %s", r.name, a.name, speculate, p.name)
			b.row(harness.Row{
				Case: name, Metric: fmt.Sprintf("mean of %d", len(with)), Unit: "ms", Value: harness.Number(harness.Mean(with)), Baseline: harness.Number(harness.Mean(without)),
				Ratio: harness.Number(harness.Mean(with) / harness.Mean(without)), Paper: harness.Number(a.paper.keptMean),
			})
			mean := compare(harness.Mean, with, without)
			b.row(harness.Row{Case: name, Metric: "mean beside the cache off", Unit: "x", Value: harness.Number(mean.Value), Interval: mean.Interval(), Paper: harness.Number(a.paper.keptMean / a.paper.mean)})
			p99 := compare(harness.P99, with, without)
			b.row(harness.Row{Case: name, Metric: "p99 beside the cache off", Unit: "x", Value: harness.Number(p99.Value), Interval: p99.Interval(), Paper: harness.Number(a.paper.keptP99 / a.paper.p99)})
			b.ratios = append(b.ratios, ratio{name: name, app: a.name, paper: a.paper, pass: p.name, speculate: speculate, mean: mean, p99: p99})
		}
	}
	b.row(harness.Row{Case: r.name + ", " + p.name, Metric: fmt.Sprintf("answers of %d that differ between the cells", p.answers), Value: harness.Number(float64(p.differ)), Target: harness.Text("<=0")})
	if p.differ > 0 {
		b.progress("%s: answers differ, as in %.2000s", r.name, p.first)
	}
}

// fewest are the requests from which an interval can be told.
const fewest = 16

// compare is a statistic with the cache on beside the same with it off.
func compare(statistic func([]float64) float64, with, without []float64) harness.Quotient {
	q := harness.Compare(statistic, with, without, 0)
	if len(with) < fewest {
		q.Lower, q.Upper = math.NaN(), math.NaN()
	}
	return q
}

// oracleRows compare the hits with the oracle's.
func (b *bench) oracleRows(ctx context.Context, r *result) error {
	for _, speculate := range modes() {
		c := r.cellWith("on", speculate)
		all, hits, err := c.activations(ctx)
		if err != nil {
			return err
		}
		name, can := fmt.Sprintf("%s: hits, speculation %s", r.name, speculate), float64(c.oracle.hits)
		b.row(harness.Row{Case: name, Metric: "share of all activations", Unit: "%", Value: harness.Number(100 * hits / all), Baseline: harness.Number(100 * can / float64(c.oracle.calls)), Paper: harness.Number(100 * r.paper.hits)})
		b.row(harness.Row{Case: name, Metric: "hits beside the oracle's (baseline)", Unit: "", Value: harness.Number(hits), Baseline: harness.Number(can), Ratio: harness.Number(hits / can)})
		b.row(harness.Row{Case: name, Metric: "share of the oracle's", Unit: "x", Value: harness.Number(hits / can), Target: harness.Text(">=0.99")})
		b.row(harness.Row{Case: name, Metric: "hits that the oracle does not have", Unit: "", Value: harness.Number(max(0, hits-can)), Target: harness.Text("<=0")})
	}
	return nil
}

// ratio is an application beside itself with the cache off.
type ratio struct {
	name, app, pass, speculate string
	paper                      latencyPaper
	mean, p99                  harness.Quotient
}
