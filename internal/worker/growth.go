package worker

import "time"

// How a pool finds out, while the processors are busy, whether more sandboxes help: functions that wait get more done
// with each one, functions that compute only take turns.
const (
	growthWorth = 1.1             // times as much done as before makes the next sandbox worth its start
	growthProbe = 5 * time.Second // after this long it is tried anyway
)

// growth is what a pool got done since it has its present number of sandboxes. Guarded by Worker.mu.
type growth struct {
	since  time.Time // when it grew
	ended  int       // activations since then
	before float64   // activations per second before that
}

// grew notes that a sandbox was started.
func (g *growth) grew(now time.Time) {
	if passed := now.Sub(g.since); passed >= longWait {
		g.before = g.rate(passed)
		g.since, g.ended = now, 0
	}
}

// pays reports whether the last sandboxes made a difference, as far as is known.
func (g *growth) pays(now time.Time) bool {
	passed := now.Sub(g.since)
	return passed > growthProbe || passed >= longWait && g.rate(passed) > growthWorth*g.before
}

func (g *growth) rate(passed time.Duration) float64 { return float64(g.ended) / passed.Seconds() }
