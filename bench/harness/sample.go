package harness

import (
	"math"
	"slices"
	"time"
)

// Sample is a set of measured times, in the rounds in which they were measured.
type Sample struct{ rounds [][]float64 }

// Add adds one time to the last round.
func (s *Sample) Add(d time.Duration) { s.AddMilliseconds(float64(d) / float64(time.Millisecond)) }

// AddMilliseconds adds one time to the last round.
func (s *Sample) AddMilliseconds(ms float64) {
	if len(s.rounds) == 0 {
		s.Round()
	}
	last := len(s.rounds) - 1
	s.rounds[last] = append(s.rounds[last], ms)
}

// Round begins a new round.
func (s *Sample) Round() { s.rounds = append(s.rounds, nil) }

// All returns every time in milliseconds, sorted.
func (s *Sample) All() []float64 {
	all := slices.Concat(s.rounds...)
	slices.Sort(all)
	return all
}

// Count is the number of times measured.
func (s *Sample) Count() int { return len(s.All()) }

// Quantile is the time in milliseconds that the share q of all does not exceed.
func (s *Sample) Quantile(q float64) float64 { return quantile(s.All(), q) }

// P50 is the median in milliseconds.
func (s *Sample) P50() float64 { return s.Quantile(0.5) }

// P99 is the time in milliseconds that 99 of 100 do not exceed.
func (s *Sample) P99() float64 { return s.Quantile(0.99) }

// Noise is how far the medians of the rounds lie apart: the lowest and the highest.
func (s *Sample) Noise() (low, high float64) {
	low, high = math.NaN(), math.NaN()
	for _, round := range s.rounds {
		if len(round) == 0 {
			continue
		}
		m := median(round)
		if math.IsNaN(low) || m < low {
			low = m
		}
		if math.IsNaN(high) || m > high {
			high = m
		}
	}
	return low, high
}

// quantile takes the nearest rank.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}

// Ratios are quartiles of the quotients of the rounds' medians of two samples that were interleaved.
func Ratios(subject, baseline *Sample) (lower, middle, upper float64) {
	var all []float64
	for i, round := range subject.rounds {
		if i < len(baseline.rounds) && len(round) > 0 && len(baseline.rounds[i]) > 0 {
			all = append(all, median(round)/median(baseline.rounds[i]))
		}
	}
	slices.Sort(all)
	return quantile(all, 0.25), quantile(all, 0.5), quantile(all, 0.75)
}

func median(round []float64) float64 { return quantile(slices.Sorted(slices.Values(round)), 0.5) }
