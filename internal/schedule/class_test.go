package schedule

import (
	"math"
	"testing"
)

func TestClassOf(t *testing.T) {
	for _, c := range []struct {
		processors float64
		want       Class // 0: refused
	}{
		{0.0625, 1},
		{0.1, 2},
		{0.25, 4},
		{0.3, 8},
		{0.5, 8},
		{1, 16},
		{1.01, 32},
		{2, 32},
		{2.5, 48},
		{1024, 16384},
		{0, 0},
		{-1, 0},
		{0.01, 0},
		{1e9, 0},
		{math.NaN(), 0},
		{math.Inf(1), 0},
		{math.Inf(-1), 0},
	} {
		got, err := ClassOf(c.processors)
		if (err != nil) != (c.want == 0) || got != c.want {
			t.Errorf("%v processors: class %d, %v; want %d", c.processors, got, err, c.want)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for _, p := range Policies() {
		if got, err := ParsePolicy(string(p)); got != p || err != nil {
			t.Errorf("%s: %s, %v", p, got, err)
		}
	}
	if _, err := ParsePolicy("fifo"); err == nil {
		t.Error("fifo is a policy")
	}
}
