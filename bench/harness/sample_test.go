package harness

import (
	"testing"
	"time"
)

func TestQuantilesAreNearestRanks(t *testing.T) {
	var s Sample
	for i := 100; i >= 1; i-- {
		s.Add(time.Duration(i) * time.Millisecond)
	}
	if s.P50() != 50 || s.P99() != 99 || s.Quantile(1) != 100 || s.Quantile(0) != 1 {
		t.Errorf("p50 %v, p99 %v, max %v, min %v", s.P50(), s.P99(), s.Quantile(1), s.Quantile(0))
	}
}

func TestNoiseIsTheSpreadOfTheRoundsMedians(t *testing.T) {
	var s Sample
	for _, round := range [][]float64{{1, 2, 3}, {5, 6, 7}, {0, 1, 90}} {
		s.Round()
		for _, ms := range round {
			s.AddMilliseconds(ms)
		}
	}
	if low, high := s.Noise(); low != 1 || high != 6 {
		t.Errorf("noise %v to %v, not 1 to 6", low, high)
	}
}
