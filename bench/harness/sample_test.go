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

func TestRatiosAreOfRoundsThatBothHave(t *testing.T) {
	var subject, baseline Sample
	for _, round := range [][2]float64{{2, 1}, {6, 2}, {4, 4}} {
		subject.Round()
		baseline.Round()
		subject.AddMilliseconds(round[0])
		baseline.AddMilliseconds(round[1])
	}
	subject.Round()
	subject.AddMilliseconds(100)
	if lower, middle, upper := Ratios(&subject, &baseline); lower != 1 || middle != 2 || upper != 3 {
		t.Errorf("got %v, %v and %v, not 1, 2 and 3", lower, middle, upper)
	}
}
