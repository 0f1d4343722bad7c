package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"forerun.dev/forerun/internal/forerun"
)

// speculation are the meters of what ran ahead.
type speculation struct {
	predictions *prometheus.CounterVec
	squashes    *prometheus.CounterVec
	held        prometheus.Counter
	depth       prometheus.Histogram
}

// The outcomes of predictions.
const (
	right   = "right"   // what ran ahead of its turn was of use
	wrong   = "wrong"   // it was squashed
	skipped = "skipped" // nothing ran, since the output was known
)

func newSpeculation(registry *prometheus.Registry) speculation {
	s := speculation{
		predictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forerun_predictions_total", Help: "Activations that were speculative or were not executed at all, by outcome.",
		}, []string{"outcome"}),
		squashes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forerun_squashes_total", Help: "Speculative activations that were squashed, by cause: the step before gave something else (prediction), the caller did not call (call), " +
				"what was read was written before its turn (stale_read) or by others (conflict), an action was updated (update), it failed (failure), it was speculative for half of its time limit (time_limit), " +
				"it made way for others (made_way), or the invocation was given up (cancelled).",
		}, []string{"cause"}),
		held: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forerun_held_seconds_total", Help: "Time for which speculative activations waited for their turn with a request to the platform or to the outside; of squashed ones, to the platform.",
		}),
		depth: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forerun_speculation_depth", Help: "The most activations of an invocation that were speculative at one time.",
			Buckets: []float64{0, 1, 2, 4, 8, 16, 32, 64},
		}),
	}
	registry.MustRegister(s.predictions, s.squashes, s.held, s.depth)
	for _, outcome := range []string{right, wrong, skipped} { // so that rates begin at zero
		s.predictions.WithLabelValues(outcome)
	}
	for _, kind := range forerun.SquashKinds() {
		s.squashes.WithLabelValues(string(kind))
	}
	return s
}

// count counts what ran ahead in an invocation.
func (s *speculation) count(t *forerun.Tally) {
	s.predictions.WithLabelValues(right).Add(float64(t.Used))
	s.predictions.WithLabelValues(wrong).Add(float64(t.Squashed))
	s.predictions.WithLabelValues(skipped).Add(float64(t.Skipped))
	s.depth.Observe(float64(t.Depth))
	s.held.Add(t.Held.Seconds())
	for kind, n := range t.Kinds {
		s.squashes.WithLabelValues(string(kind)).Add(float64(n))
	}
}
