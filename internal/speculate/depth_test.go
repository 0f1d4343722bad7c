package speculate

import (
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestDepthUnder(t *testing.T) {
	for _, c := range []struct {
		load       forerun.Load
		most, want int
	}{
		{forerun.Load{}, 32, 32},
		{forerun.Load{Busy: 0.9}, 32, 32},
		{forerun.Load{Busy: 0.91}, 32, 12},
		{forerun.Load{Busy: 0.96}, 32, 4},
		{forerun.Load{Busy: 1}, 3, 3},
		{forerun.Load{Busy: 0.1, Waiting: true}, 12, 0},
	} {
		if got := DepthUnder(c.load, c.most); got != c.want {
			t.Errorf("%+v: %d of %d, not %d", c.load, got, c.most, c.want)
		}
	}
}
