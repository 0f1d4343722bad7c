// Package telemetry counts what the server does, in the form that Prometheus
// reads. It keeps a registry of its own: nothing here is shared by the process.
package telemetry

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"forerun.dev/forerun/internal/forerun"
)

// Metrics are the meters of one server. Its methods may be called concurrently.
type Metrics struct {
	registry    *prometheus.Registry
	invocations *prometheus.CounterVec
	latency     prometheus.Histogram
	activations *prometheus.CounterVec
	speculation
	cache
}

// New returns meters at zero.
func New() *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		invocations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forerun_invocations_total", Help: "Invocations by clients that have ended, by status.",
		}, []string{"status"}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "forerun_invocation_seconds", Help: "Time from the request for an invocation to its end.",
			Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30, 60, 300},
		}),
		activations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "forerun_activations_total", Help: "Activations that have ended, of invocations and what they ran, by status.",
		}, []string{"status"}),
	}
	m.speculation = newSpeculation(m.registry)
	m.cache = newCache(m.registry)
	m.registry.MustRegister(m.invocations, m.latency, m.activations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for status := forerun.Success; status <= forerun.InternalError; status++ { // so that rates begin at zero
		m.invocations.WithLabelValues(label(status))
		m.activations.WithLabelValues(label(status))
	}
	return m
}

// Observe counts an activation that has ended.
func (m *Metrics) Observe(a *forerun.Activation) {
	m.activations.WithLabelValues(label(a.Status)).Inc()
	if a.Cause == "" {
		m.invocations.WithLabelValues(label(a.Status)).Inc()
		m.latency.Observe(a.End.Sub(a.Timeline.Queued).Seconds())
	}
	m.cache.count(a.Cached)
	m.held.Add(a.Timeline.Held.Seconds())
	if a.Tally != nil {
		m.speculation.count(a.Tally)
	}
}

// label is a status in the form of a label, "application_error".
func label(s forerun.Status) string { return strings.ReplaceAll(s.String(), " ", "_") }

// Gauge shows what read returns at each scrape.
func (m *Metrics) Gauge(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter shows what read returns at each scrape: a number that only grows.
func (m *Metrics) Counter(name, help string, read func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, read))
}

// Counters is Counter for each value of a label.
func (m *Metrics) Counters(name, help, label string, read map[string]func() float64) {
	for value, f := range read {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}}, f))
	}
}

// Handler answers a scrape.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
