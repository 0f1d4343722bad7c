package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// measureOther compares the server with that of another binary, if one is named.
func measureOther(ctx context.Context, b *bench) error {
	if b.other == "" {
		if b.only != "" {
			return errors.New("which other binary? Name it with --other")
		}
		return nil
	}
	var servers []*server.Server
	defer func() {
		for _, s := range servers {
			stop(s)
		}
	}()
	for _, f := range []struct{ name, binary string }{{"other", b.other}, {"other-again", b.other}, {"own", b.binary}} {
		s, err := b.filled(ctx, f.binary, f.name, unloaded, 0)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	settle(ctx, 3*time.Second)
	return b.compareAll(ctx, "beside another binary", "its", "<=1.02", servers)
}

// comparison holds a server to compare with, another one that is equal to it, and the one that is compared, and a client of each.
type comparison struct {
	*bench
	name, with, bound string
	servers           []*server.Server
	clients           []*server.Client
}

// Indices of the servers.
const (
	reference = iota
	equal
	compared
)

// compareAll measures servers in turn, for a case; with is whose times are the unit.
func (b *bench) compareAll(ctx context.Context, name, with, bound string, servers []*server.Server) error {
	c := &comparison{bench: b, name: name, with: with, bound: bound, servers: servers}
	for _, s := range servers {
		c.clients = append(c.clients, s.Client(1))
	}
	return c.measure(ctx)
}

func (c *comparison) measure(ctx context.Context) error {
	native, err := c.deployed(ctx, c.native())
	if err != nil {
		return err
	}
	python, err := c.deployed(ctx, c.python())
	if err != nil {
		return err
	}
	for _, w := range []struct {
		name     string
		n        int
		pause    time.Duration
		subjects []subject
	}{
		{"warm native call", 420, rest, native},
		{"warm native call, back to back", 12000, 0, native},
		{"warm Python call", 420, rest, python},
		{"warm Python call, back to back", 6000, 0, python},
	} {
		samples, err := c.stretches(ctx, c.count(w.n), w.pause, w.subjects)
		if err != nil {
			return err
		}
		c.compareServers(w.name, samples)
	}
	if err := c.measureFirst(ctx); err != nil {
		return err
	}
	return c.measureFlood(ctx, native)
}

// stretches calls each subject n times, in rounds. In a round it calls one after the other, each many times in a row: what a server
// has left to do when it has answered then delays its own calls, and those of no other. What comes first changes.
func (c *comparison) stretches(ctx context.Context, n int, pause time.Duration, subjects []subject) (samples []*harness.Sample, err error) {
	plain, err := url("the echo server", c.echo.URL, trivial)
	if err != nil {
		return nil, err
	}
	callers, err := connect(ctx, append([]subject{plain}, subjects...)...)
	if err != nil {
		return nil, err
	}
	defer disconnect(callers)
	echo, callers := callers[0], callers[1:]
	for round := range rounds {
		c.echoed.Round()
		c.synced.Round()
		for range unasked {
			if err := echo.call(ctx, &c.echoed); err != nil {
				return nil, err
			}
		}
		if err := c.sync(); err != nil {
			return nil, err
		}
		for turn := range callers {
			caller := callers[(round+turn)%len(callers)]
			caller.sample.Round()
			for i := range unasked + max(1, n/rounds) {
				time.Sleep(pause)
				var counted []*harness.Sample
				if i >= unasked {
					counted = append(counted, &caller.sample)
				}
				if err := caller.call(ctx, counted...); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, caller := range callers {
		samples = append(samples, &caller.sample)
	}
	return samples, nil
}

// deployed has each server hold a function of a language.
func (c *comparison) deployed(ctx context.Context, l *language) (subjects []subject, err error) {
	for _, client := range c.clients {
		if err := l.put(ctx, client, l.slug(), 0); err != nil {
			return nil, err
		}
		s, err := c.action(client, l.slug(), trivial)
		if err != nil {
			return nil, err
		}
		subjects = append(subjects, s)
	}
	return subjects, nil
}

// measureFirst calls actions that no server has run yet, each of them once.
func (c *comparison) measureFirst(ctx context.Context) error {
	samples := []*harness.Sample{{}, {}, {}}
	for i := range max(10, c.count(unloaded)) {
		for _, s := range samples {
			if i%10 == 0 {
				s.Round()
			}
		}
		for turn := range c.clients {
			which := (i + turn) % len(c.clients)
			if err := c.first(ctx, c.clients[which], fmt.Sprintf("stored-%d", i), samples[which], new(harness.Sample)); err != nil {
				return err
			}
		}
	}
	c.compareServers("cold start of a Python action", samples)
	return nil
}

// measureFlood has 32 clients call each server in turn. Beside the time of 1,000 calls, which depends on who else uses the machine, it takes
// what the server itself used of the processors for them. Turns are short and many: the machine's pace changes from second to second.
// Nobody is always behind the same one, which may have left itself work to do.
func (c *comparison) measureFlood(ctx context.Context, subjects []subject) error {
	const calls = 1000
	times, used := []*harness.Sample{{}, {}, {}}, []*harness.Sample{{}, {}, {}}
	for round := range 1 + c.count(6*rounds) {
		for turn := range subjects {
			if round%2 == 1 {
				turn = len(subjects) - 1 - turn
			}
			which := (round/2 + turn) % len(subjects)
			pid, d := c.servers[which].PID(), time.Second
			if round > 0 {
				d = 200 * time.Millisecond
			}
			settle(ctx, 50*time.Millisecond)
			before := harness.ProcessorTime(pid)
			answers, rate, err := flood(ctx, subjects[which], d)
			if err != nil {
				return err
			}
			if round == 0 { // until there are sandboxes enough
				continue
			}
			times[which].Round()
			times[which].AddMilliseconds(1000 * calls / rate)
			used[which].Round()
			used[which].AddMilliseconds(1000 * calls * (harness.ProcessorTime(pid) - before).Seconds() / answers)
		}
	}
	c.compareServers("1,000 calls of 32 clients", times)
	c.compareServers("processor time of the server for 1,000 calls of 32 clients", used)
	return nil
}

// compareServers adds the rows of one measurement. The bound is on how much longer the compared server takes, round by round: the
// machine does not stay the same from the first round to the last.
func (c *comparison) compareServers(name string, samples []*harness.Sample) {
	name = c.name + ": " + name
	c.beside(name, samples[compared], samples[reference])
	lower, middle, upper := harness.Ratios(samples[compared], samples[reference])
	_, equals, _ := harness.Ratios(samples[equal], samples[reference])
	for _, r := range []struct {
		metric, bound string
		value         float64
	}{
		{"rounds' p50, times " + c.with + ": median", c.bound, middle},
		{"noise: its lower quartile", "", lower},
		{"noise: its upper quartile", "", upper},
		{"noise: the median of two equal servers", "", equals},
	} {
		c.row(harness.Row{Case: name, Metric: r.metric, Unit: "x", Value: harness.Number(r.value), Target: harness.Text(r.bound)})
	}
}
