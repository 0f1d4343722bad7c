package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// calmCallers deploys a function that does nothing for a tenant, and connects callers of it.
func (b *bench) calmCallers(ctx context.Context, tenant string) ([]*caller, error) {
	client, err := harness.NewTenant(ctx, b.server, b.client, tenant)
	if err != nil {
		return nil, err
	}
	if err := b.python().put(ctx, client, "calm", 0); err != nil {
		return nil, err
	}
	calm, err := b.action(client, "calm", trivial)
	if err != nil {
		return nil, err
	}
	return connect(ctx, calm)
}

// measureFairness calls a function of one tenant, in rounds with and without 32 clients of another tenant who call one that
// computes as fast as they are answered.
func measureFairness(ctx context.Context, b *bench) error {
	if err := b.client.PutPython(ctx, "flood", "def main(args):\n    sum(range(300_000))\n    return args\n"); err != nil {
		return err
	}
	flooding, err := b.action(b.client, "flood", trivial)
	if err != nil {
		return err
	}
	callers, err := b.calmCallers(ctx, "other")
	if err != nil {
		return err
	}
	defer disconnect(callers)
	var alone, beside, warm quietly
	var rates harness.Sample
	round := b.lasting(4 * time.Second)
	for range 5 {
		if err := callers[0].during(ctx, round, &alone); err != nil {
			return err
		}
		flooded := make(chan error, 1)
		go func() {
			_, rate, err := flood(ctx, flooding, round+time.Second)
			rates.AddMilliseconds(rate)
			flooded <- err
		}()
		err := callers[0].during(ctx, time.Second/2, &warm) // until the flood has its sandboxes
		if err == nil {
			err = callers[0].during(ctx, round, &beside)
		}
		if err := errors.Join(<-flooded, err); err != nil {
			return err
		}
	}
	const name = "a call beside another tenant's flood"
	if beside.quiet.Count() == 0 || alone.quiet.Count() == 0 {
		return errors.New("other programs keep the machine busy: no call went undisturbed")
	}
	b.beside(name, &beside.quiet, &alone.quiet)
	for _, r := range []struct {
		metric, unit, bound string
		value               float64
	}{
		{"p99 in terms of that without", "x", "<=2", beside.quiet.P99() / alone.quiet.P99()},
		{"the same, calls that were disturbed included", "x", "", beside.all.P99() / alone.all.P99()},
		{"calls disturbed by other programs, beside it", "%", "", beside.disturbed()},
		{"calls disturbed by other programs, alone", "%", "", alone.disturbed()},
		{"calls of the flood, median of five rounds", "1/s", "", rates.P50()},
	} {
		b.row(harness.Row{Case: name, Metric: r.metric, Unit: r.unit, Value: harness.Number(r.value), Target: harness.Text(r.bound)})
	}
	return nil
}

// quietly is the times of calls: of all, and of those that no other program took much of a processor from. On a machine of which
// nothing is idle such a program is one more flood, and none that the server could keep in its place.
type quietly struct{ all, quiet harness.Sample }

// disturbance is the share of a call's time from which the processor time of other programs meanwhile is too much.
const disturbance = 0.25

func (q *quietly) call(ctx context.Context, c *caller, foreign *harness.Foreign) error {
	before := foreign.Read()
	took, err := c.conn.Call(ctx)
	if err != nil {
		return fmt.Errorf("a call of %s: %w", c.name, err)
	}
	q.all.Add(took)
	if foreign.Read().Since(before) < time.Duration(disturbance*float64(took)) {
		q.quiet.Add(took)
	}
	return nil
}

// disturbed is the percentage of calls that were.
func (q *quietly) disturbed() float64 {
	return 100 * (1 - float64(q.quiet.Count())/float64(q.all.Count()))
}
