package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// share is how much of the time that a script takes alone lies between two scripts of the open load.
const share = 0.5

// load measures the suite under load, with the cache off and on: first an open load of the same requests on servers that have just been
// started, then closed loops.
func (b *bench) load(ctx context.Context, r *result) error {
	for _, speculate := range modes() {
		if b.quick && speculate != "off" {
			continue // ten minutes have no room for it
		}
		if err := b.loadWith(ctx, r, speculate); err != nil {
			return err
		}
	}
	return nil
}

// loaded is what a suite's load has shown with the cache on, beside the cache off.
type loaded struct {
	name                string
	served, cpu, memory float64
	paper               float64 // served, beside FaasCache
}

func (b *bench) loadWith(ctx context.Context, r *result, speculate string) error {
	off, err := b.cellOf(ctx, r.suite, "off", speculate)
	if err != nil {
		return err
	}
	defer off.stop()
	on, err := b.cellOf(ctx, r.suite, "on", speculate)
	if err != nil {
		return err
	}
	defer on.stop()
	pair := []*cell{off, on}
	l := &loaded{paper: r.paper.served / r.paper.faasCache}
	b.loads = append(b.loads, l)
	name := fmt.Sprintf("%s, speculation %s", r.name, speculate)
	l.name = name
	b.progress("%s: open load", name)
	if err := b.open(ctx, r, l, pair); err != nil {
		return err
	}
	b.progress("%s: closed loop", name)
	return b.closed(ctx, r, l, pair)
}

// open has the same requests come to both at the same rate, one server after the other.
func (b *bench) open(ctx context.Context, r *result, l *loaded, pair []*cell) error {
	rate, rounds := share*1000/r.alone, 6
	d := 20 * time.Second
	if b.quick {
		d, rounds = 5*time.Second, 2
	}
	totals := map[*cell]*used{}
	for round := range rounds + 1 {
		due := harness.Arrivals(uint64(round), rate, d)
		for i := range pair {
			c := pair[(round+i)%len(pair)]
			u, err := c.underOpenLoad(ctx, r.suite, due, uint64(round))
			if err != nil {
				return err
			}
			if totals[c] == nil {
				totals[c] = &used{}
			}
			totals[c].add(u, round > 0)
			if round > 0 {
				continue
			}
			for _, s := range r.first() { // the first round has started the sandboxes; now each input is seen
				if _, err := c.run(ctx, s); err != nil {
					return err
				}
			}
		}
	}
	off, on := totals[pair[0]], totals[pair[1]]
	l.cpu, l.memory = on.each()/off.each(), harness.Mean(on.memory)/harness.Mean(off.memory)
	for _, row := range []struct {
		metric, unit, target string
		off, on              float64
	}{
		{"processor time of a request", "ms", "<=0.65", off.each(), on.each()},
		{"memory, PSS of server and sandboxes", "MB", "<=0.93", harness.Mean(off.memory), harness.Mean(on.memory)},
		{"cold starts", "", "<=1", off.cold, on.cold},
	} {
		title := fmt.Sprintf("%s, open load of %.1f scripts a second", l.name, rate)
		b.row(harness.Row{Case: title, Metric: row.metric, Unit: row.unit, Value: harness.Number(row.on), Baseline: harness.Number(row.off), Ratio: harness.Number(row.on / row.off)})
		b.row(harness.Row{Case: title, Metric: row.metric + " beside the cache off", Unit: "x", Value: harness.Number(row.on / row.off), Target: harness.Text(row.target)})
	}
	b.row(harness.Row{Case: l.name, Metric: "processor time of a request, by rounds: least ratio", Unit: "x", Value: harness.Number(slices.Min(quotients(on.rounds, off.rounds)))})
	b.row(harness.Row{Case: l.name, Metric: "processor time of a request, by rounds: greatest ratio", Unit: "x", Value: harness.Number(slices.Max(quotients(on.rounds, off.rounds)))})
	return nil
}

// used is what a load took.
type used struct {
	cpu      time.Duration
	requests int
	cold     float64
	memory   []float64 // MiB, now and then
	rounds   []float64 // processor time of a request, in ms
}

func (u *used) each() float64 {
	return float64(u.cpu) / float64(time.Millisecond) / float64(u.requests)
}

// add adds what a round took; of one that does not count only the cold starts.
func (u *used) add(round *used, counts bool) {
	u.cold += round.cold
	if counts {
		u.cpu, u.requests = u.cpu+round.cpu, u.requests+round.requests
		u.memory, u.rounds = append(u.memory, round.memory...), append(u.rounds, round.each())
	}
}

func quotients(over, under []float64) (all []float64) {
	for i := range over {
		all = append(all, over[i]/under[i])
	}
	return all
}

// underOpenLoad begins a script whenever one is due, whatever became of those before.
func (c *cell) underOpenLoad(ctx context.Context, s *suite, due []time.Duration, seed uint64) (*used, error) {
	random := rand.New(rand.NewPCG(seed, 45))
	var scripts []script
	for len(scripts) < len(due) {
		scripts = append(scripts, s.deck(random, 10)...)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cpu := harness.TreeTime(c.PID())
	before, err := c.metric(ctx, coldStarts)
	if err != nil {
		return nil, err
	}
	u, answered := &used{}, atomic.Int64{}
	watched := make(chan struct{})
	begin := time.Now()
	go func() {
		u.memory = c.watchMemory(begin.Add(due[len(due)-1]))
		close(watched)
	}()
	var sent sync.WaitGroup
	for i, at := range due {
		select {
		case <-time.After(time.Until(begin.Add(at))):
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		sent.Go(func() {
			n, err := c.run(ctx, scripts[i])
			answered.Add(int64(n))
			if err != nil {
				cancel(err)
			}
		})
	}
	sent.Wait()
	<-watched
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	u.cpu, u.requests = harness.TreeTime(c.PID())-cpu, int(answered.Load())
	after, err := c.metric(ctx, coldStarts)
	u.cold = after - before
	return u, err
}

const coldStarts = "forerun_cold_starts_total"

// watchMemory reads the memory of the server and its sandboxes until a moment, once at least.
func (c *cell) watchMemory(until time.Time) (all []float64) {
	for {
		kib := 0.0
		for _, pid := range harness.Descendants(c.PID()) {
			kib += harness.ProportionalKiB(pid)
		}
		all = append(all, kib/1024)
		if time.Until(until) <= 0 {
			return all
		}
		time.Sleep(min(time.Second, time.Until(until)))
	}
}

// run sends what a script sends, and returns how many requests that were.
func (c *cell) run(ctx context.Context, s script) (requests int, err error) {
	err = s(func(a ask) ([]byte, error) {
		answer, _, err := c.send(ctx, a)
		if err == nil {
			requests++
		}
		return answer, err
	})
	return requests, err
}

// closed has the suite's users replay decks, in rounds with the cache off and on.
func (b *bench) closed(ctx context.Context, r *result, l *loaded, pair []*cell) error {
	d, rounds := 20*time.Second, 6
	if b.quick {
		d, rounds = 4*time.Second, 3
	}
	served := map[*cell][]float64{}
	for round := range rounds + 1 {
		for i := range pair {
			c := pair[(round+i)%len(pair)]
			rate, err := c.loop(ctx, r.suite, d, uint64(round))
			if err != nil {
				return err
			}
			if round > 0 { // the first has begun with too few sandboxes
				served[c] = append(served[c], rate)
			}
		}
	}
	off, on := served[pair[0]], served[pair[1]]
	ratios := quotients(on, off)
	l.served = harness.Mean(on) / harness.Mean(off)
	title := fmt.Sprintf("%s, closed loop of %d users", l.name, r.users)
	b.row(harness.Row{
		Case: title, Metric: "requests, mean of the rounds", Unit: "1/s", Value: harness.Number(harness.Mean(on)), Baseline: harness.Number(harness.Mean(off)),
		Ratio: harness.Number(l.served), Paper: harness.Number(r.paper.served),
	})
	b.row(harness.Row{
		Case: title, Metric: "requests beside the cache off (paper: FaasCache)", Unit: "x", Value: harness.Number(l.served),
		Paper: harness.Number(l.paper), Target: harness.Text(r.paper.target),
	})
	b.row(harness.Row{Case: title, Metric: "the same, by rounds: least ratio (paper: OpenWhisk)", Unit: "x", Value: harness.Number(slices.Min(ratios)), Paper: harness.Number(r.paper.served / r.paper.openWhisk)})
	b.row(harness.Row{Case: title, Metric: "the same, by rounds: greatest ratio", Unit: "x", Value: harness.Number(slices.Max(ratios))})
	return nil
}

// loop has each user replay a deck of their own for a time. It returns how many requests were answered in a second.
func (c *cell) loop(ctx context.Context, s *suite, d time.Duration, seed uint64) (rate float64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var users sync.WaitGroup
	var answered atomic.Int64
	begin := time.Now()
	for user := range s.users {
		users.Go(func() {
			random := rand.New(rand.NewPCG(seed, 100+uint64(user)))
			for {
				for _, one := range s.deck(random, 10) {
					if time.Since(begin) >= d || ctx.Err() != nil {
						return
					}
					n, err := c.run(ctx, one)
					answered.Add(int64(n))
					if err != nil {
						cancel(err)
						return
					}
				}
			}
		})
	}
	users.Wait()
	return float64(answered.Load()) / time.Since(begin).Seconds(), context.Cause(ctx)
}
