package speculate

import (
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestBoundUnder(t *testing.T) {
	busy := func(share float64) forerun.Load { return forerun.Load{Busy: share, Processors: 2} }
	for _, c := range []struct {
		load forerun.Load
		want int
	}{
		{forerun.Load{}, unbounded},
		{busy(0.9), unbounded},
		{busy(0.91), 12},
		{busy(0.96), 4},
		{forerun.Load{Busy: 0.1, Waiting: true, Processors: 2}, 0},
	} {
		if got := BoundUnder(c.load); got != c.want {
			t.Errorf("%+v: %d, not %d", c.load, got, c.want)
		}
	}
}
