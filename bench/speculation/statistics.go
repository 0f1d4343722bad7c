package speculation

import (
	"math"
	"math/rand/v2"
	"slices"

	"forerun.dev/forerun/bench/harness"
)

const (
	resamples  = 2000
	leastBlock = 8
)

// speedup is how many times sooner the subject's answers came, in the mean, with its interval.
type speedup struct {
	mean         float64
	lower, upper float64 // of 95%
}

// compare takes answers to the same requests at the same moments: the i-th of one to the i-th of the other. The interval is that of a
// bootstrap over blocks of so many neighbours, at least leastBlock: those of a round, as how fast the machine was then they have all met.
func compare(baseline, subject []float64, block int) speedup {
	n := min(len(baseline), len(subject))
	if n == 0 {
		return speedup{math.NaN(), math.NaN(), math.NaN()}
	}
	block = max(leastBlock, block)
	random := rand.New(rand.NewPCG(uint64(n), 0xb007))
	quotients := make([]float64, resamples)
	for i := range quotients {
		var a, b float64
		for drawn := 0; drawn < n; drawn += block {
			from := random.IntN(n)
			for k := range block {
				at := (from + k) % n
				a, b = a+baseline[at], b+subject[at]
			}
		}
		quotients[i] = a / b
	}
	slices.Sort(quotients)
	return speedup{mean(baseline) / mean(subject), quotients[resamples*25/1000], quotients[resamples*975/1000]}
}

func (s speedup) interval() []float64 {
	lower, upper := harness.Number(s.lower), harness.Number(s.upper)
	if lower == nil || upper == nil {
		return nil
	}
	return []float64{*lower, *upper}
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

// quantile is the value that the share q does not exceed.
func quantile(all []float64, q float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
