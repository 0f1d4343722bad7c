package controller

import (
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// How it is judged whether an action's invocations gain by running ahead.
const (
	gainLeast   = 150    // answers of each kind, from which it is known
	gainKept    = 1500   // of a kind, before all older ones count half
	gainVain    = 0.95   // times what an answer takes else: no gain
	gainAgain   = 0.9    // down from which it is one again
	gainLarge   = 0.8    // of all: it would be a pity to do without for a trial
	gainNone    = 1.1    // or to run ahead for one
	gainActions = 10_000 // that are known at once
)

// gains compares, action by action, how long invocations take while the processors are busy, in times in which all run ahead and
// in times in which none does. Those that gain nothing need not run ahead then (C5).
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

// kinds are answers of invocations that could run ahead, and of those that could not.
type kinds struct{ ahead, plain answers }

// answers are how many there were, and the seconds that they took.
type answers struct{ n, seconds float64 }

func (a answers) mean() float64 { return a.seconds / a.n }

func (a answers) plus(o answers) answers { return answers{a.n + o.n, a.seconds + o.seconds} }

func (a answers) half() answers { return answers{a.n / 2, a.seconds / 2} }

// add adds those of a trial. Old ones count less.
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
	of.n, of.seconds = of.n+1, of.seconds+took.Seconds()
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

// vain reports whether running ahead gains nothing.
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
	times := g.all()
	return times > 0 && times < gainLarge || times > gainNone
}

// all is how many times as long answers take where all run ahead; 0: not known.
func (g *gains) all() float64 {
	ahead, plain := g.means()
	return ahead / max(plain, 1e-9)
}

// means are the seconds that an answer takes where all run ahead, and else, of all actions together that came in the last trials; 0:
// not known.
func (g *gains) means() (ahead, plain float64) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	var n float64
	for _, known := range g.actions {
		if g.trial-known.last <= trialsKept && known.isKnown() {
			n += known.ahead.n
			ahead += known.ahead.seconds
			plain += known.ahead.n * known.plain.mean()
		}
	}
	n = max(n, 1)
	return ahead / n, plain / n
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
