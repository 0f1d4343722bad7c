package baseline

import (
	"context"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// measureFloor calls a Python action beside the floor: a plain server with the same function, in one process that stays.
func measureFloor(ctx context.Context, b *bench) error {
	floor, err := harness.StartFloor()
	if err != nil {
		return err
	}
	defer floor.Stop()
	l := b.python()
	if err := l.put(ctx, b.client, l.slug(), 0); err != nil {
		return err
	}
	action, err := b.action(b.client, l.slug(), trivial)
	if err != nil {
		return err
	}
	least, err := url("the floor", floor.URL, trivial)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		name  string
		n     int
		pause time.Duration
	}{{"warm Python call beside the floor", 400, rest}, {"warm Python call beside the floor, back to back", 2000, 0}} {
		_, samples, err := b.interleave(ctx, b.count(m.n), m.pause, action, least)
		if err != nil {
			return err
		}
		b.beside(m.name, samples[0], samples[1])
	}
	return nil
}
