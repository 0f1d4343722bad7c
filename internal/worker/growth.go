package worker

import (
	"runtime"
	"time"
)

// A pool learns, while the processors are busy, whether more sandboxes help: functions that wait get more done
// with each one, functions that compute only take turns, and keep the processors from others.
const (
	growthLook      = 500 * time.Millisecond // for how long is counted before anything is said
	growthWorth     = 0.5                    // the part of what one more sandbox can bring that makes the next worth its start
	growthLeast     = 0.05                   // more than before is not told from none, if it is less
	growthProbe     = 5 * time.Second        // after this long one more is tried anyway: each time that it was no use, twice as long
	growthProbeLast = 20 * time.Second
	growthEnough    = 1.5 // times the processors: a pool that can keep that many busy has enough sandboxes
)

// growth is what a pool got done since it has its present number of sandboxes, or a queue. Guarded by Worker.mu.
type growth struct {
	since  time.Time     // when that began
	ended  int           // activations since
	before float64       // activations per second with one sandbox less; 0: not known
	looked time.Time     // when it was last asked whether more pay
	probe  time.Duration // after which it is tried anyway; 0: growthProbe
	tried  bool          // more were said to pay
}

// grew notes that a sandbox was started beside others, so many.
func (g *growth) grew(now time.Time, others int) {
	passed := now.Sub(g.since)
	if passed < growthLook {
		return
	}
	rate := g.rate(passed)
	switch {
	case !g.tried:
	case g.helped(rate, others):
		g.probe = 0
	default:
		g.probe = min(2*g.patience(), growthProbeLast)
	}
	g.before, g.tried = rate, false
	g.since, g.ended = now, 0
}

// pays reports whether the last of so many sandboxes made a difference, as far as is known, or it is time to try one more: also of
// enough, as activations may wait for one that waits.
func (g *growth) pays(now time.Time, sandboxes int, enough bool) bool {
	if now.Sub(g.looked) > growthLook { // no run waited meanwhile, or the processors were free
		g.since, g.ended = now, 0
		g.probe = 0
	}
	g.looked = now
	passed := now.Sub(g.since)
	if passed < growthLook {
		return false
	}
	g.tried = passed > g.patience() || !enough && g.helped(g.rate(passed), sandboxes)
	return g.tried
}

// helped reports whether the last of so many sandboxes made a difference.
func (g *growth) helped(rate float64, sandboxes int) bool {
	return rate > g.before*(1+max(growthLeast, growthWorth/float64(max(1, sandboxes-1))))
}

// patience is how long nothing is tried.
func (g *growth) patience() time.Duration { return max(g.probe, growthProbe) }

func (g *growth) rate(passed time.Duration) float64 { return float64(g.ended) / passed.Seconds() }

// enough reports whether a pool's sandboxes could keep all processors busy if they had them: then another is of no use.
func (p *pool) enough() bool {
	return p.calm > 0 && float64(len(p.sandboxes))*p.cpu.Seconds() > growthEnough*float64(runtime.GOMAXPROCS(0))*p.calm.Seconds()
}
