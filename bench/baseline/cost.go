package baseline

import (
	"context"
	"strconv"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// spent is what the server, its helper and all that runs in sandboxes have used of the processors, and their page faults.
type spent struct {
	server, helper, sandboxes time.Duration
	faults                    int64
}

// spending reads it, to 10 ms. The helper is the server's child, and the sandboxes are the helper's.
func spending(server int) spent {
	s := spent{server: harness.ProcessorTime(server), faults: harness.TreeFaults(server)}
	for _, helper := range harness.Children(server) {
		s.helper += harness.ProcessorTime(helper)
	}
	s.sandboxes = harness.TreeTime(server) - s.server - s.helper
	return s
}

// measureCost tells what a call costs the machine, whoever pays for it. It depends little on how busy the machine is.
func measureCost(ctx context.Context, b *bench, l *language) error {
	if err := l.put(ctx, b.client, l.slug(), 0); err != nil {
		return err
	}
	s, err := b.action(b.client, l.slug(), trivial)
	if err != nil {
		return err
	}
	callers, err := connect(ctx, s)
	if err != nil {
		return err
	}
	defer disconnect(callers)
	call := func(n int) error {
		for range n {
			if err := callers[0].call(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	if err := call(100); err != nil {
		return err
	}
	settle(ctx, time.Second)
	n, before := b.count(5000), spending(b.server.PID())
	if err := call(n); err != nil {
		return err
	}
	settle(ctx, 200*time.Millisecond) // what the last call left to do
	after := spending(b.server.PID())
	each := func(d time.Duration) *float64 {
		return harness.Number(float64(d) / float64(time.Millisecond) / float64(n))
	}
	calls, err := b.systemCalls(ctx, b.count(1000), call)
	if err != nil {
		return err
	}
	name := "cost of a warm " + l.name + " call"
	for _, r := range []harness.Row{
		{Metric: "processor time of the server", Unit: "ms", Value: each(after.server - before.server), Target: harness.Text(l.server)},
		{Metric: "processor time of the helper", Unit: "ms", Value: each(after.helper - before.helper)},
		{Metric: "processor time in the sandbox", Unit: "ms", Value: each(after.sandboxes - before.sandboxes), Target: harness.Text(l.sandbox)},
		{Metric: "page faults", Value: harness.Number(float64(after.faults-before.faults) / float64(n))},
		{Metric: "system calls of the server", Value: calls},
	} {
		r.Case = name
		b.row(r)
	}
	return nil
}

// systemCalls is how many system calls the server makes for each of n calls. They are other calls than the ones whose cost is measured, as
// to count costs something. It is nil where they cannot be counted.
func (b *bench) systemCalls(ctx context.Context, n int, call func(n int) error) (*float64, error) {
	counter, err := harness.CountSystemCalls(ctx, strconv.Itoa(b.server.PID()))
	if err != nil {
		b.progress("no system calls are counted: %v", err)
		return nil, nil
	}
	settle(ctx, time.Second) // until it counts
	if err := call(n); err != nil {
		return nil, err
	}
	settle(ctx, 200*time.Millisecond)
	all, err := counter.End()
	if err != nil {
		b.progress("no system calls are counted: %v", err)
		return nil, nil
	}
	return harness.Number(float64(all) / float64(n)), nil
}
