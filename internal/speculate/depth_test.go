package speculate

import (
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestDepthUnder(t *testing.T) {
	busy := func(share float64) forerun.Load { return forerun.Load{Busy: share, Processors: 2} }
	for _, c := range []struct {
		load               forerun.Load
		most, others, want int
	}{
		{forerun.Load{}, 32, 100, 32},
		{busy(0.9), 32, 100, 32},
		{busy(0.91), 32, 0, 12},
		{busy(0.91), 32, 10, 2},
		{busy(0.91), 32, 13, 0},
		{busy(0.96), 32, 0, 4},
		{busy(0.96), 32, 3, 1},
		{busy(0.96), 32, 4, 0},
		{busy(1), 3, 0, 3},
		{forerun.Load{Busy: 0.1, Waiting: true, Processors: 2}, 12, 0, 0},
	} {
		if got := DepthUnder(c.load, c.most, c.others); got != c.want {
			t.Errorf("%+v: %d of %d beside %d, not %d", c.load, got, c.most, c.others, c.want)
		}
	}
}
