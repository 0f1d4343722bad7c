package speculation

import (
	"context"
	"math"
	"time"

	"forerun.dev/forerun/bench/harness"
)

// served is what a number of requests under way brings.
type served struct {
	inFlight int
	rate     map[string]float64 // answers in a second, by mode
	ms       map[string]float64 // mean answer
}

// calming is how long one request at a time is sent before: what the server has found out under the loads before does not count for long.
const calming = 10 * time.Second

// throughput keeps a number of requests under way in each mode, in turn, for several numbers.
func (b *bench) throughput(ctx context.Context, on *started) (all []served, err error) {
	if _, err := on.flood(ctx, 1, 0, "all", b.lasting(calming)); err != nil {
		return nil, err
	}
	for i, n := range []int{1, 2, 4, 8, 16} {
		s := served{inFlight: n, rate: make(map[string]float64), ms: make(map[string]float64)}
		answers := make(map[string]*answered)
		for round := range 2 {
			for k := range 2 {
				mode := []string{"off", "all"}[(k+round)%2]
				a, err := on.flood(ctx, n, uint64(10*i+round), mode, b.lasting(2*time.Second))
				if err != nil {
					return nil, err
				}
				if total := answers[mode]; total != nil {
					a.ms = append(a.ms, total.ms...)
				}
				answers[mode] = a
			}
		}
		for mode, a := range answers {
			s.rate[mode], s.ms[mode] = a.perSecond(), harness.Mean(a.ms)
		}
		b.progress("%s, %d under way: %.1f/s in %.1f ms -> %.1f/s in %.1f ms", on.slug, n, s.rate["off"], s.ms["off"], s.rate["all"], s.ms["all"])
		all = append(all, s)
	}
	return all, nil
}

// effective is the most answers in a second of a mode whose mean is within the objective: twice what the baseline takes for one
// request alone, for every mode.
func (m *measured) effective(mode string) float64 {
	best := math.NaN()
	for _, s := range m.served {
		if s.ms[mode] <= 2*m.alone && !(s.rate[mode] <= best) {
			best = s.rate[mode]
		}
	}
	return best
}
