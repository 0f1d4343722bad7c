package controller

import (
	"context"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// learn has a trial in which n answers of each kind come, and those that run ahead take so many times as long.
func (g *gains) learn(what asked, n int, takes float64) {
	for range n {
		g.note(permit{what: what, era: g.era}, time.Second)
		g.note(permit{what: what, ahead: true, era: g.era}, time.Duration(takes*float64(time.Second)))
	}
	g.judge()
}

func TestGains(t *testing.T) {
	var g gains
	slow, fast := asked{namespace: "ns", mode: speculate.All}, asked{namespace: "ns", mode: speculate.Branches}
	g.learn(slow, gainLeast-1, 2)
	if g.vain(slow) || g.clear() {
		t.Error("judged by too few answers")
	}
	late := permit{what: slow, ahead: true}
	g.note(late, time.Hour)
	g.drop()
	g.note(late, time.Hour)
	g.learn(slow, 1, 2)
	if mean := g.actions[slow].ahead.mean(); mean != 2 {
		t.Errorf("with an answer of a trial that teaches nothing, the others take %v s instead of 2", mean)
	}
	g.learn(fast, gainLeast, 0.5)
	if !g.vain(slow) || g.vain(fast) || g.vanities() != 1 {
		t.Errorf("of one that loses and one that gains, %v and %v are vain", g.vain(slow), g.vain(fast))
	}
	g.learn(slow, gainKept, 0.92)
	if !g.vain(slow) {
		t.Error("a little sooner makes an action run ahead again")
	}
	for range 5 {
		g.learn(slow, gainKept, 0.8)
	}
	if g.vain(slow) {
		t.Error("sooner by far, an action does not run ahead again")
	}
	other := asked{namespace: "other"}
	g.learn(other, gainLeast, 2)
	g.forget("ns")
	if g.actions[slow] != nil || g.actions[fast] != nil || !g.vain(other) {
		t.Error("a namespace is not forgotten, or another one is")
	}
	for n := range gainActions {
		g.note(permit{what: asked{code: forerun.Digest{byte(n), byte(n >> 8), byte(n >> 16)}}, era: g.era}, time.Second)
	}
	if len(g.actions) != gainActions {
		t.Errorf("%d are known, not %d", len(g.actions), gainActions)
	}
}

func TestGainsAreClear(t *testing.T) {
	for takes, want := range map[float64]bool{0.7: true, 0.9: false, 1: false, 1.05: false, 1.2: true} {
		var g gains
		g.learn(asked{}, gainLeast, takes)
		if g.clear() != want {
			t.Errorf("%.2f times as long: clear is %v", takes, !want)
		}
		for range trialsKept + 1 {
			g.judge()
		}
		if g.clear() {
			t.Errorf("%.2f times as long: clear although it has not come for long", takes)
		}
	}
}

// TestFewAnswers: a gain is known from few answers if it is large beyond doubt, and nobody comes of whom nothing is known.
func TestFewAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		n      int
		spread float64 // of the answers ahead, of which some take nearly nothing and some so many times the mean
		takes  float64
		want   bool
	}{
		"large":            {gainFew, 1, 0.5, true},
		"of too few":       {gainFew - 1, 1, 0.5, false},
		"not large":        {gainLeast - 1, 1, 0.85, false},
		"it may be less":   {gainFew, 2, 0.5, false},
		"it is a loss":     {gainLeast - 1, 1, 1.5, false},
		"it is not, of 40": {40, 2, 0.4, true},
	} {
		var g gains
		for i := range c.n {
			g.note(permit{}, time.Second)
			took := c.takes
			if c.spread > 1 {
				took *= c.spread * float64(i%2)
			}
			g.note(permit{ahead: true}, time.Duration(took*float64(time.Second)))
		}
		g.judge()
		if got := g.clear(); got != c.want || g.much() != c.want {
			t.Errorf("%s: clear is %v, much is %v", name, got, g.much())
		}
		g.note(permit{what: asked{part: true}}, time.Second)
		g.judge()
		if g.clear() {
			t.Errorf("%s: clear although of another action nothing is known", name)
		}
	}
}

// TestVainInvocations: an action without gain is speculative in trials only while the processors are busy, and its answers teach then.
func TestVainInvocations(t *testing.T) {
	town := newAheadTown(t)
	town.toll.spent = func() (forerun.Spent, bool) { return forerun.Spent{}, true }
	town.function("a", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"a": 1}, nil })
	town.function("b", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"b": 1}, nil })
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	early := func(during phase) int {
		town.toll.mu.Lock()
		town.toll.since = time.Now().Add(time.Hour) // this stretch does not end
		town.toll.last.Store(time.Now().UnixNano())
		town.toll.phase.Store(&during)
		town.toll.mu.Unlock()
		_, tally := town.invokeAhead(seq, `{}`)
		return tally.Early
	}
	early(phase{})
	if len(town.toll.gains.actions) != 0 {
		t.Error("an answer teaches although there is no trial")
	}
	trial := phase{trial: true, settled: true, loaded: true}
	if early(trial) != 1 || len(town.toll.gains.actions) != 1 {
		t.Fatalf("in a trial %d actions are judged", len(town.toll.gains.actions))
	}
	for what, known := range town.toll.gains.actions {
		if what.namespace != "ns" || what.mode != speculate.All || known.now.ahead.n != 1 || known.now.plain.n != 0 {
			t.Errorf("of %+v is known: %+v", what, known)
		}
		known.vain = true
	}
	for during, want := range map[phase]int{{loaded: true}: 0, {}: 1, trial: 1, {plain: true}: 0} {
		if got := early(during); got != want {
			t.Errorf("%d run ahead of one that gains nothing in %+v", got, during)
		}
	}
	town.EndNamespace(context.Background(), "ns", "it is deleted")
	if len(town.toll.gains.actions) != 0 {
		t.Error("a namespace that is deleted is not forgotten")
	}
}
