package telemetry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestScrape(t *testing.T) {
	m := New()
	queued := time.Now()
	m.Observe(&forerun.Activation{End: queued.Add(3 * time.Millisecond), Timeline: forerun.Timeline{Queued: queued}})
	m.Observe(&forerun.Activation{Status: forerun.DeveloperError, Cause: "x"})
	m.Observe(&forerun.Activation{Cause: "x", Timeline: forerun.Timeline{Held: time.Second}, Tally: &forerun.Tally{
		Early: 3, Used: 2, Squashed: 1, Depth: 2, Kinds: map[forerun.SquashKind]int{forerun.StaleRead: 1}, Held: time.Second,
	}})
	m.Counter("forerun_cold_starts_total", "Sandboxes started.", func() float64 { return 1 })
	m.Gauge("forerun_sandboxes", "Sandboxes that run.", func() float64 { return 7 })
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, kind := range forerun.SquashKinds() {
		if !strings.Contains(answer.Body.String(), "("+string(kind)+")") {
			t.Errorf("the help of forerun_squashes_total does not tell what %s is", kind)
		}
	}
	for _, line := range []string{
		`forerun_invocations_total{status="success"} 1`,
		`forerun_invocations_total{status="action_developer_error"} 0`,
		`forerun_activations_total{status="action_developer_error"} 1`,
		`forerun_invocation_seconds_bucket{le="0.005"} 1`,
		`forerun_invocation_seconds_bucket{le="0.002"} 0`,
		`forerun_cold_starts_total 1`,
		`forerun_sandboxes 7`,
		`forerun_predictions_total{outcome="right"} 2`,
		`forerun_predictions_total{outcome="wrong"} 1`,
		`forerun_squashes_total{cause="stale_read"} 1`,
		`forerun_squashes_total{cause="conflict"} 0`,
		`forerun_squashes_total{cause="time_limit"} 0`,
		`forerun_squashes_total{cause="made_way"} 0`,
		`forerun_held_seconds_total 2`,
		`# HELP forerun_held_seconds_total Time for which speculative activations waited for their turn with a request to the platform or to the outside; of squashed ones, to the platform.`,
		`forerun_speculation_depth_bucket{le="1"} 0`,
		`forerun_speculation_depth_bucket{le="2"} 1`,
	} {
		if !strings.Contains(answer.Body.String(), line+"\n") {
			t.Errorf("%q is missing", line)
		}
	}
}
