package controller

import (
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestDepthUnder(t *testing.T) {
	for _, c := range []struct {
		load       forerun.Load
		most, want int
	}{
		{forerun.Load{}, 12, 12},
		{forerun.Load{Busy: 0.6}, 12, 12},
		{forerun.Load{Busy: 0.61}, 12, 6},
		{forerun.Load{Busy: 0.71}, 12, 5},
		{forerun.Load{Busy: 0.81}, 12, 4},
		{forerun.Load{Busy: 1}, 3, 3},
		{forerun.Load{Busy: 0.1, Waiting: true}, 12, 0},
	} {
		if got := depthUnder(c.load, c.most); got != c.want {
			t.Errorf("%+v: %d of %d, not %d", c.load, got, c.most, c.want)
		}
	}
}
