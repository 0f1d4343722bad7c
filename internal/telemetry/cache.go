package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"forerun.dev/forerun/internal/forerun"
)

// cache are the meters of known results.
type cache struct {
	requests *prometheus.CounterVec
	saved    prometheus.Counter
}

func newCache(registry *prometheus.Registry) cache {
	c := cache{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forerun_cache_requests_total", Help: "Activations of annotated actions that have ended, by which way they went.",
		}, []string{"outcome"}),
		saved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "forerun_cache_saved_seconds_total", Help: "Time that executions took whose results were given again, each time that they were.",
		}),
	}
	registry.MustRegister(c.requests, c.saved)
	for _, outcome := range forerun.CacheOutcomes() { // so that rates begin at zero
		c.requests.WithLabelValues(string(outcome))
	}
	return c
}

// count counts which way an activation went, if its action is annotated.
func (c *cache) count(cached *forerun.Cached) {
	if cached != nil {
		c.requests.WithLabelValues(string(cached.Outcome)).Inc()
		c.saved.Add(cached.Saved.Seconds())
	}
}
