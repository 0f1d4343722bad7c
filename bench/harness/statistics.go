package harness

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	resamples  = 2000
	leastBlock = 8
)

// Quotient is a statistic of one sample divided by the same statistic of another, with its interval. Unknown values are NaN.
type Quotient struct {
	Value        float64
	Lower, Upper float64 // of 95%
}

// Compare divides a statistic of one sample by the same of another. The i-th values of both answer the same request at the same moment.
// The interval is by a bootstrap over blocks of neighbours, at least leastBlock of them. A block is a round, in which the machine was
// equally fast for all.
func Compare(statistic func([]float64) float64, over, under []float64, block int) Quotient {
	n := min(len(over), len(under))
	if n == 0 {
		return Quotient{math.NaN(), math.NaN(), math.NaN()}
	}
	block = max(leastBlock, block)
	random := rand.New(rand.NewPCG(uint64(n), 0xb007))
	quotients := make([]float64, resamples)
	var a, b []float64
	for i := range quotients {
		a, b = a[:0], b[:0]
		for drawn := 0; drawn < n; drawn += block {
			from := random.IntN(n)
			for k := range block {
				at := (from + k) % n
				a, b = append(a, over[at]), append(b, under[at])
			}
		}
		quotients[i] = statistic(a) / statistic(b)
	}
	slices.Sort(quotients)
	return Quotient{statistic(over) / statistic(under), quotients[resamples*25/1000], quotients[resamples*975/1000]}
}

// Interval is the interval as a Row has it; nil if it cannot be told.
func (q Quotient) Interval() []float64 {
	lower, upper := Number(q.Lower), Number(q.Upper)
	if lower == nil || upper == nil {
		return nil
	}
	return []float64{*lower, *upper}
}

// Mean is the mean; NaN of nothing.
func Mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

// Quantile is the value that the share q does not exceed; NaN of nothing.
func Quantile(all []float64, q float64) float64 {
	return quantile(slices.Sorted(slices.Values(all)), q)
}

// P99 is the value that 99 of 100 do not exceed.
func P99(all []float64) float64 { return Quantile(all, 0.99) }

// Arrivals draws when requests are due in a Poisson process, from its beginning: rate is a second's.
func Arrivals(seed uint64, rate float64, d time.Duration) (due []time.Duration) {
	random := rand.New(rand.NewPCG(seed, 0xa1))
	for at := 0.0; ; {
		at += random.ExpFloat64() / rate
		if at >= d.Seconds() {
			return due
		}
		due = append(due, time.Duration(at*float64(time.Second)))
	}
}
