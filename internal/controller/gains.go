package controller

import (
	"math"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// The bounds by which an action's gain from speculation is judged.
const (
	gainLeast   = 150    // answers of each kind, from which it is known
	gainFew     = 5      // from which it is, if it is large beyond doubt
	gainDoubt   = 3      // standard errors
	gainKept    = 1500   // of a kind, before all older ones count half
	gainVain    = 0.95   // times what an answer takes else: no gain
	gainAgain   = 0.9    // down from which it is one again
	gainLarge   = 0.8    // of all: it would be a pity to do without for a trial
	gainNone    = 1.1    // or to speculate for one
	gainActions = 10_000 // that are known at once
)

// gains compares, for each action, the duration of invocations on busy processors in periods with speculation and in
// periods without. An action that gains nothing does not speculate then (C5).
type gains struct {
	mu      sync.RWMutex // guards the rest
	actions map[asked]*gain
	trial   int // that the answers are of which come now
	era     int // times that answers were forgotten
}

// asked is what invocations have in common that is judged together.
type asked struct {
	namespace string
	code      forerun.Digest
	part      bool // of the action
	mode      speculate.Mode
}

// gain is what is known of one of them.
type gain struct {
	kinds
	now  kinds // of the trial that goes on
	last int   // trial that it had an answer in
	vain bool
}

// kinds are the answers of invocations that could speculate, and of those that could not.
type kinds struct{ ahead, plain answers }

// answers are how many there were, the seconds that they took, and the sum of these squared.
type answers struct{ n, seconds, squares float64 }

func (a answers) mean() float64 { return a.seconds / a.n }

// doubt is how far the mean may be from what it would be of more of them.
func (a answers) doubt() float64 {
	return gainDoubt * math.Sqrt(max(0, a.squares/a.n-a.mean()*a.mean())/a.n)
}

func (a answers) plus(o answers) answers {
	return answers{a.n + o.n, a.seconds + o.seconds, a.squares + o.squares}
}

func (a answers) half() answers { return answers{a.n / 2, a.seconds / 2, a.squares / 2} }

// add adds the answers of a trial. Older ones count less.
func (k *kinds) add(o kinds) {
	if max(k.ahead.n, k.plain.n) >= gainKept {
		k.ahead, k.plain = k.ahead.half(), k.plain.half()
	}
	k.ahead, k.plain = k.ahead.plus(o.ahead), k.plain.plus(o.plain)
}

// note takes an answer into account, and reports whether it is the first.
func (g *gains) note(p permit, took time.Duration) (first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.era != g.era {
		return false
	}
	known := g.actions[p.what]
	if first = known == nil; first {
		known = g.add(p.what)
	}
	of := &known.now.plain
	if p.ahead {
		of = &known.now.ahead
	}
	s := took.Seconds()
	*of = of.plus(answers{1, s, s * s})
	known.last = g.trial
	return first
}

// add makes place for one more. Any of the others goes for it if there are too many.
func (g *gains) add(what asked) *gain {
	if g.actions == nil {
		g.actions = make(map[asked]*gain)
	}
	for other := range g.actions {
		if len(g.actions) < gainActions {
			break
		}
		delete(g.actions, other)
	}
	g.actions[what] = new(gain)
	return g.actions[what]
}

// drop forgets the answers of a trial that teaches nothing, those that are still to come included: they are of an era that is over.
func (g *gains) drop() (era int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.actions {
		known.now = kinds{}
	}
	g.era++
	return g.era
}

// keep keeps the answers of a trial for those that come.
func (g *gains) keep() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.actions {
		known.keep()
	}
}

func (g *gain) keep() {
	if g.now != (kinds{}) {
		g.add(g.now)
		g.now = kinds{}
	}
}

// judge judges those that had answers in the trial that has ended, and begins the next.
func (g *gains) judge() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.actions {
		known.keep()
		if known.last != g.trial || !known.isKnown() {
			continue
		}
		bar := gainVain
		if known.vain {
			bar = gainAgain
		}
		known.vain = known.ahead.mean() > bar*known.plain.mean()
	}
	g.trial++
}

func (g *gain) isKnown() bool { return g.ahead.n >= gainLeast && g.plain.n >= gainLeast }

// isLarge reports whether it gains much, beyond doubt.
func (g *gain) isLarge() bool {
	few := g.ahead.n < gainFew || g.plain.n < gainFew
	return !few && isMuch(g.ahead.mean()+g.ahead.doubt(), g.plain.mean()-g.plain.doubt())
}

// large reports whether an action's invocations certainly gain much from speculation.
func (g *gains) large(what asked) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	known := g.actions[what]
	return known != nil && known.isLarge()
}

// vain reports whether speculation gains nothing.
func (g *gains) vain(what asked) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	known := g.actions[what]
	return known != nil && known.vain
}

// vanities is how many gain nothing.
func (g *gains) vanities() (n int) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, known := range g.actions {
		if known.vain {
			n++
		}
	}
	return n
}

// clear reports whether all together gain or lose so much that a trial costs more than it can teach.
func (g *gains) clear() bool {
	ahead, plain, whole := g.means()
	return whole && (isMuch(ahead, plain) || ahead > gainNone*plain)
}

// much reports whether they gain so much.
func (g *gains) much() bool {
	ahead, plain, whole := g.means()
	return whole && isMuch(ahead, plain)
}

func isMuch(ahead, plain float64) bool { return ahead < gainLarge*plain }

// means are the mean answer times in seconds with and without speculation. They cover the actions of the last trials
// with known times; 0: there are none. whole reports whether all of these actions have known times.
func (g *gains) means() (ahead, plain float64, whole bool) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	n, whole := 0., true
	for _, known := range g.actions {
		switch {
		case g.trial-known.last > trialsKept:
		case known.isKnown() || known.isLarge():
			n += known.ahead.n
			ahead += known.ahead.seconds
			plain += known.ahead.n * known.plain.mean()
		default:
			whole = false
		}
	}
	n = max(n, 1)
	return ahead / n, plain / n, whole
}

// forget forgets a namespace.
func (g *gains) forget(namespace string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for what := range g.actions {
		if what.namespace == namespace {
			delete(g.actions, what)
		}
	}
}
