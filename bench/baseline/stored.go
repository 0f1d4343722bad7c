package baseline

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/test/server"
)

// What is stored in the one of the servers that are compared.
const (
	storedActions     = 100_000
	storedActivations = 1_000_000
	unloaded          = 60 // actions that all of them hold, to be called once each
)

// measureStored compares a server that holds many actions and activations with one that holds next to none, call by call in turn. A
// third, which is like the second, shows how far two equal servers seem apart.
func measureStored(ctx context.Context, b *bench) error {
	var servers []*server.Server
	defer func() {
		for _, s := range servers {
			stop(s)
		}
	}()
	actions, activations := b.count(storedActions), b.count(storedActivations)
	for _, f := range []struct {
		name                 string
		actions, activations int
	}{{"empty", unloaded, 0}, {"equal", unloaded, 0}, {"filled", actions, activations}} {
		s, err := b.filled(ctx, f.name, f.actions, f.activations)
		if err != nil {
			return err
		}
		servers = append(servers, s)
	}
	settle(ctx, 3*time.Second) // the last to be filled has tidied up
	b.row(harness.Row{Case: "full store", Metric: "actions", Unit: "1", Value: harness.Number(float64(actions))})
	b.row(harness.Row{Case: "full store", Metric: "activations", Unit: "1", Value: harness.Number(float64(activations))})
	c := &storedComparison{bench: b, servers: servers}
	for _, s := range servers {
		c.clients = append(c.clients, s.Client(1))
	}
	return c.measure(ctx)
}

// filled starts a server whose store holds so much.
func (b *bench) filled(ctx context.Context, name string, actions, activations int) (*server.Server, error) {
	o := server.Options{Binary: b.binary, Data: filepath.Join(b.folder, name)}
	s, err := server.Start(ctx, o) // it makes the folder and the tenant
	if err != nil {
		return nil, err
	}
	if err := s.Stop(); err != nil {
		return nil, err
	}
	fill := exec.CommandContext(ctx, b.fill, "--store", filepath.Join(o.Data, "store"),
		"--actions", strconv.Itoa(actions), "--activations", strconv.Itoa(activations))
	if said, err := fill.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("filling the store: %w: %s", err, said)
	}
	return server.Start(ctx, o)
}

// storedComparison holds an empty server, another one that is equal to it, and a filled one, and a client of each.
type storedComparison struct {
	*bench
	servers []*server.Server
	clients []*server.Client
}

// Indices of the servers.
const (
	empty = iota
	equal
	filled
)

func (c *storedComparison) measure(ctx context.Context) error {
	l := c.native()
	var subjects []subject
	for _, client := range c.clients {
		if err := l.put(ctx, client, l.slug(), 0); err != nil {
			return err
		}
		s, err := c.action(client, l.slug(), trivial)
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	for _, w := range []struct {
		name  string
		n     int
		pause time.Duration
	}{{"warm native call", 400, rest}, {"warm native call, back to back", 6000, 0}} {
		_, samples, err := c.interleave(ctx, c.count(w.n), w.pause, subjects...)
		if err != nil {
			return err
		}
		c.compareServers(w.name, samples)
	}
	if err := c.measureFirst(ctx); err != nil {
		return err
	}
	return c.measureFlood(ctx, subjects)
}

// measureFirst calls actions that no server has run yet, each of them once.
func (c *storedComparison) measureFirst(ctx context.Context) error {
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
// what the server itself used of the processors for them.
func (c *storedComparison) measureFlood(ctx context.Context, subjects []subject) error {
	const calls = 1000
	times, used := []*harness.Sample{{}, {}, {}}, []*harness.Sample{{}, {}, {}}
	for round := range 1 + rounds {
		for turn := range subjects {
			which := (round + turn) % len(subjects)
			pid, d := c.servers[which].PID(), c.lasting(time.Second)
			before := harness.ProcessorTime(pid)
			rate, err := flood(ctx, subjects[which], d)
			if err != nil {
				return err
			}
			if round == 0 { // until there are sandboxes enough
				continue
			}
			times[which].Round()
			times[which].AddMilliseconds(1000 * calls / rate)
			used[which].Round()
			used[which].AddMilliseconds(1000 * calls / rate * (harness.ProcessorTime(pid) - before).Seconds() / d.Seconds())
		}
	}
	c.compareServers("1,000 calls of 32 clients", times)
	c.compareServers("processor time of the server for 1,000 calls of 32 clients", used)
	return nil
}

// compareServers adds the rows of one measurement. The bound is on how much longer the filled server takes, round by round: the machine
// does not stay the same from the first round to the last.
func (c *storedComparison) compareServers(name string, samples []*harness.Sample) {
	name = "full store: " + name
	c.beside(name, samples[filled], samples[empty])
	lower, middle, upper := harness.Ratios(samples[filled], samples[empty])
	_, equals, _ := harness.Ratios(samples[equal], samples[empty])
	for _, r := range []struct {
		metric, bound string
		value         float64
	}{
		{"rounds' p50, times an empty server's: median", "<=1.05", middle},
		{"noise: its lower quartile", "", lower},
		{"noise: its upper quartile", "", upper},
		{"noise: the median of two empty servers", "", equals},
	} {
		c.row(harness.Row{Case: name, Metric: r.metric, Unit: "x", Value: harness.Number(r.value), Target: harness.Text(r.bound)})
	}
}
