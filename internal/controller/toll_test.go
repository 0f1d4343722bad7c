package controller

import (
	"cmp"
	"math"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// processors are those of a machine, in a time of its own.
type processors struct {
	now     time.Time
	spent   forerun.Spent
	toll    toll
	late    []time.Time // when activations end that were executed
	pending float64     // seconds of work that nobody has had time for
	asked   map[asked]*held
}

// held are invocations of an action, and those of them that may not run ahead.
type held struct{ all, back float64 }

// loaded is what a machine has to do: invocations of one activation each.
type loaded struct {
	plain  float64       // share of the processors that activations take where none runs ahead
	cost   float64       // times as much where they do
	gain   float64       // times as many invocations, as their clients wait for each
	others float64       // share that others' programs take
	lasts  time.Duration // how much later an activation ends that does not run ahead
	every  time.Duration // between invocations
	answer time.Duration // takes so long where they do not; 0: much longer than it takes of a processor
	takes  float64       // times that where they do; 0: half
	begins time.Duration // between two sandboxes that begin; 0: none does
	mixed  bool          // every other invocation is of an action whose answers come no sooner
}

var vainAction = asked{part: true} // of those that are mixed

func newProcessors() *processors {
	p := &processors{now: time.Unix(1_000_000, 0), asked: map[asked]*held{{}: {}, vainAction: {}}, spent: forerun.Spent{Own: time.Minute, All: time.Hour, Whole: time.Hour}}
	p.toll.spent, p.toll.processors = func() (forerun.Spent, bool) { return p.spent, true }, 4
	return p
}

// pass has the machine do something for a time, and returns the share of the invocations that ran ahead in the second half.
func (p *processors) pass(d time.Duration, l loaded) float64 {
	const number = 4 // of processors
	if l.every == 0 {
		l.every = 5 * time.Millisecond
	}
	if l.takes == 0 {
		l.takes = 0.5
	}
	began, ahead := 0., 0.
	for end, half := p.now.Add(d), p.now.Add(d/2); p.now.Before(end); {
		p.now = p.now.Add(l.every)
		whole := l.every.Seconds() * number
		invocations, share, lasts := 1., l.plain, l.lasts
		answer := cmp.Or(l.answer, 50*time.Millisecond)
		what, takes := asked{}, l.takes
		if l.mixed && p.asked[asked{}].all > p.asked[vainAction].all {
			what, takes = vainAction, 1
		}
		may := p.toll.ask(p.now, what)
		p.asked[what].all++
		if !may.ahead {
			p.asked[what].back++
		}
		if may.ahead {
			answer = time.Duration(takes * float64(answer))
			invocations, share, lasts = l.gain, l.plain*l.cost*l.gain, 0
			if p.now.After(half) {
				ahead++
			}
		}
		if p.now.After(half) {
			began++
		}
		p.toll.answered(may, forerun.Success, p.now.Add(answer))
		p.toll.begun.Add(int64(100*invocations) - 1)
		if !may.ahead {
			p.toll.back.Add(99)
		}
		for range int(4 * invocations) {
			p.late = append(p.late, p.now.Add(lasts))
		}
		p.end()
		p.pending += share * whole
		worked := min(p.pending, (1-l.others)*whole)
		p.pending -= worked
		p.spent.Own += time.Duration(worked * float64(time.Second))
		p.spent.All += time.Duration((worked + l.others*whole) * float64(time.Second))
		p.spent.Whole += time.Duration(whole * float64(time.Second))
		if l.begins > 0 {
			p.spent.Sandboxes = int(time.Duration(p.now.UnixNano()) / l.begins)
		}
	}
	return ahead / began
}

func (p *processors) end() {
	still := p.late[:0]
	for _, at := range p.late {
		if at.After(p.now) {
			still = append(still, at)
		} else {
			p.toll.ended()
		}
	}
	p.late = still
}

func TestToll(t *testing.T) {
	const short, little = 120 * time.Millisecond, 0.9
	for name, c := range map[string]struct {
		loaded
		least, most float64 // share that runs ahead
	}{
		"there is time for it":         {loaded{plain: 0.3, cost: 1.4, gain: 1}, 1, 1},
		"there is time, just":          {loaded{plain: 0.65, cost: 1.15, gain: 1, lasts: short}, 0.85, 1},
		"there is none":                {loaded{plain: 0.7, cost: 1.4, gain: 1, lasts: short, takes: little}, 0, 0.05},
		"none, whatever it brings":     {loaded{plain: 0.7, cost: 1.4, gain: 1, lasts: short, takes: 0.4}, 0, 0.05},
		"little, and it brings much":   {loaded{plain: 0.7, cost: 1.2, gain: 1, lasts: short, takes: 0.6}, 0.85, 1},
		"little, for little":           {loaded{plain: 0.7, cost: 1.2, gain: 1, lasts: short, takes: little}, 0, 0.05},
		"others have taken it":         {loaded{plain: 0.4, cost: 1.4, gain: 1, others: 0.4, lasts: short}, 0, 0.05},
		"it costs nothing":             {loaded{plain: 0.85, cost: 1, gain: 1, lasts: short}, 0.85, 1},
		"it saves time":                {loaded{plain: 0.9, cost: 0.7, gain: 1, lasts: short}, 0.85, 1},
		"clients wait for answers":     {loaded{plain: 0.3, cost: 1.2, gain: 2.5, lasts: short}, 0.85, 1},
		"one comes every ten seconds":  {loaded{plain: 0.9, cost: 1.4, gain: 1, every: 10 * time.Second}, 1, 1},
		"answers come no sooner":       {loaded{plain: 0.5, cost: 1.2, gain: 1, takes: 1.05}, 0, 0.05},
		"they come much later, of few": {loaded{plain: 0.5, cost: 1.2, gain: 1, takes: 1.3, every: 50 * time.Millisecond}, 0, 0.05},
		"no sooner, on the verge":      {loaded{plain: 0.33, cost: 1.45, gain: 1, takes: 1.05}, 0, 0.1},
		"a little sooner":              {loaded{plain: 0.5, cost: 1.2, gain: 1, takes: 0.9}, 0.9, 1},
		"no sooner, but there is time": {loaded{plain: 0.2, cost: 1.2, gain: 1, takes: 1.05}, 1, 1},
		"few come":                     {loaded{plain: 0.65, cost: 1.4, gain: 1, every: 700 * time.Millisecond, takes: little}, 0, 0.3},
		"few come, and it brings much": {loaded{plain: 0.65, cost: 1.4, gain: 1, every: 700 * time.Millisecond}, 0.85, 1},
	} {
		if got := newProcessors().pass(10*time.Minute, c.loaded); got < c.least || got > c.most {
			t.Errorf("%s: %.2f of the invocations run ahead, want %v to %v", name, got, c.least, c.most)
		}
	}
}

// TestTollSpares: an action with a sure and large gain is soon not held back any more, whatever is still to be learnt of others; unless there is hardly
// time for it.
func TestTollSpares(t *testing.T) {
	much := loaded{plain: 0.5, cost: 1.1, gain: 1, takes: 0.15, answer: 370 * time.Millisecond, every: 50 * time.Millisecond, lasts: 200 * time.Millisecond}
	tight, mixed, none := much, much, much
	tight.plain, mixed.mixed, none.takes = 0.75, true, 1
	for name, c := range map[string]struct {
		loaded
		most, vain float64 // shares that are held back in the first 20 s: the most of those that gain, the least of those that do not
		kept       int     // trials that told the cost, at least
	}{
		"it gains much":          {much, 0.05, 0, 1},
		"and others nothing":     {mixed, 0.1, 0.15, 1},
		"and there is no time":   {tight, 0.15, 0, trialsLeast},
		"it may gain or may not": {none, 1, 0, trialsLeast},
	} {
		p := newProcessors()
		p.pass(20*time.Second, c.loaded)
		gains, vain := p.asked[asked{}], p.asked[vainAction]
		if got := gains.back / gains.all; got > c.most {
			t.Errorf("%s: %.2f are held back, want at most %v", name, got, c.most)
		}
		if got := vain.back / max(1, vain.all); got < c.vain {
			t.Errorf("%s: of the others %.2f are held back, want at least %v", name, got, c.vain)
		}
		if len(p.toll.kept) < c.kept {
			t.Errorf("%s: %d trials told the cost, want %d", name, len(p.toll.kept), c.kept)
		}
	}
}

// TestTollInDoubt: the cost that trials show may be wrong by as much as they differ, and by more if they are few.
func TestTollInDoubt(t *testing.T) {
	of := func(costs ...float64) (mean, most float64) {
		var toll toll
		for _, cost := range costs {
			toll.kept = append(toll.kept, trial{ahead: half{own: cost, done: 1}, plain: half{own: 1, done: 1}})
		}
		return toll.cost()
	}
	if mean, most := of(1.2, 1.2, 1.2); math.Abs(mean-1.2) > 1e-6 || math.Abs(most-1.2) > 1e-6 {
		t.Errorf("where all trials tell the same it is %v, at most %v", mean, most)
	}
	mean, few := of(1, 1.2, 1.1)
	_, many := of(1, 1.2, 1.1, 1, 1.2, 1.1)
	if mean < 1.09 || mean > 1.11 || few < 1.15 || many < 1.12 || many >= few {
		t.Errorf("it is %v, at most %v, and of twice as many trials %v", mean, few, many)
	}
	if mean, most := of(0.8, 1, 0.9); mean != most || mean > 0.91 {
		t.Errorf("where it saves some it is %v, at most %v", mean, most)
	}
	if _, most := of(1, 2); most != 0 {
		t.Errorf("of two trials it is %v", most)
	}
}

func TestCostIsKnown(t *testing.T) {
	enough := make([]trial, trialsLeast)
	for name, c := range map[string]struct {
		toll *toll
		want bool
	}{
		"there is time":           {&toll{fresh: 1, busy: 0.5}, true},
		"there is hardly any":     {&toll{fresh: 1, busy: 0.9}, false},
		"hardly any, as is known": {&toll{fresh: 1, busy: 0.9, kept: enough}, true},
		"there is none":           {&toll{fresh: 1, busy: 0.9, kept: enough, barred: true}, false},
		"it was long ago":         {&toll{busy: 0.9, kept: enough}, false},
		"nothing was tried":       {&toll{busy: 0.5}, false},
	} {
		if c.toll.isCostKnown() != c.want {
			t.Errorf("%s: known is %v", name, !c.want)
		}
	}
}

// TestUpset: trials in which sandboxes begin are made again, unless that does not end.
func TestUpset(t *testing.T) {
	later := loaded{plain: 0.5, cost: 1.2, gain: 1, takes: 0.7}
	for name, c := range map[string]struct {
		begins      time.Duration
		d           time.Duration
		then        loaded
		least, most float64
	}{
		"they begin for a while":      {500 * time.Millisecond, 8 * time.Second, later, 0.8, 1},
		"they begin all the time":     {500 * time.Millisecond, 10 * time.Minute, later, 0, 0.05},
		"none begins":                 {0, 10 * time.Minute, later, 0, 0.05},
		"for a while, and no time is": {500 * time.Millisecond, 8 * time.Second, loaded{plain: 0.7, cost: 1.4, gain: 1}, 0, 0.05},
	} {
		p := newProcessors()
		p.pass(c.d, loaded{plain: 0.5, cost: 1.2, gain: 1, takes: 3, begins: c.begins})
		if got := p.pass(time.Minute, c.then); got < c.least || got > c.most {
			t.Errorf("%s: %.2f of the invocations run ahead afterwards, want %v to %v", name, got, c.least, c.most)
		}
	}
}

func TestTollIsLifted(t *testing.T) {
	high, low := loaded{plain: 0.7, cost: 1.4, gain: 1}, loaded{plain: 0.3, cost: 1.4, gain: 1}
	for name, c := range map[string]struct {
		then loaded
		d    time.Duration
	}{
		"an application that is faster":  {loaded{plain: 0.7, cost: 0.8, gain: 1, takes: 0.8}, 10 * time.Minute},
		"there is less to do":            {low, 20 * time.Second},
		"there is hardly anything to do": {loaded{plain: 0.1, cost: 1.4, gain: 1}, 2500 * time.Millisecond},
		"an application that saves time": {loaded{plain: 0.7, cost: 0.8, gain: 1}, 10 * time.Minute},
		"hardly anybody comes":           {loaded{plain: 0.01, cost: 1.4, gain: 1, every: 5 * time.Second}, time.Minute},
	} {
		p := newProcessors()
		p.pass(time.Minute, high)
		if cost, barred, _ := p.toll.read(); !barred || cost < 1.3 || cost > 1.5 {
			t.Fatalf("the cost is %.2f, and it is barred: %v", cost, barred)
		}
		if got := p.pass(c.d, c.then); got < 0.9 {
			t.Errorf("%s: %.2f of the invocations run ahead", name, got)
		}
	}
}

// TestTollExpects: results from a time with less busy processors count for as much as they are worth now.
func TestTollExpects(t *testing.T) {
	const busy = 300 * time.Microsecond // of which half is work
	for name, c := range map[string]struct {
		answer      time.Duration
		takes       float64
		least, most float64
	}{
		"much sooner":                  {busy, 0.4, 0.9, 1},
		"sooner, but not now":          {busy, 0.75, 0, 0.1},
		"sooner, and nearly all waits": {0, 0.75, 0.9, 1},
	} {
		p := newProcessors()
		learnt := loaded{plain: 0.45, cost: 1.2, gain: 1, answer: c.answer, takes: c.takes}
		p.pass(5*time.Minute, learnt) // until it is known what that costs
		now := learnt
		now.plain = 0.69
		if got := p.pass(20*time.Second, now); got < c.least || got > c.most {
			t.Errorf("%s: %.2f of the invocations run ahead, want %v to %v", name, got, c.least, c.most)
		}
	}
}

// TestTollOfAnotherLoad: that clients waited for answers before, and asked for more if those came sooner, does not count for long where
// they do not.
func TestTollOfAnotherLoad(t *testing.T) {
	waiting := loaded{plain: 0.3, cost: 1.2, gain: 2.5, lasts: 120 * time.Millisecond}
	for name, c := range map[string]struct {
		then        loaded
		least, most float64
	}{
		"as many come at any rate": {loaded{plain: 0.8, cost: 1.2, gain: 1, lasts: 120 * time.Millisecond}, 0, 0.1},
		"they still wait":          {waiting, 0.85, 1},
	} {
		p := newProcessors()
		p.pass(10*time.Minute, waiting)
		if got := p.pass(30*time.Second, c.then); got < c.least || got > c.most {
			t.Errorf("%s: %.2f of the invocations run ahead, want %v to %v", name, got, c.least, c.most)
		}
	}
}

// TestTollAfterSilence: where the processors are busy with what may not run ahead, nobody runs ahead who would be too much for them,
// until less comes. Nor does who might not just before, if they are busy at all.
func TestTollAfterSilence(t *testing.T) {
	before := loaded{plain: 0.5, cost: 1.4, gain: 1, takes: 0.9}
	less, much := before, before
	less.plain, much.plain = 0.3, 0.65
	for name, c := range map[string]struct {
		before loaded
		own    float64
		first  bool
		then   loaded
		want   float64 // share that runs ahead after a few seconds
	}{
		"they are busy":                {before, 0.65, false, much, 0},
		"they are, for that moment":    {before, 0.65, false, before, 1},
		"they are not":                 {before, 0.1, true, before, 1},
		"they were, and go on":         {much, 0.5, false, much, 0},
		"they were, and less comes":    {much, 0.5, false, less, 1},
		"they were, and there is time": {much, 0.1, true, less, 1},
	} {
		p := newProcessors()
		p.pass(10*time.Minute, c.before)
		const pause, whole = 5 * time.Second, 20 * time.Second
		p.now = p.now.Add(pause)
		p.spent.Whole += whole
		p.spent.Own += time.Duration(c.own * float64(whole))
		p.spent.All += time.Duration(c.own * float64(whole))
		if got := p.toll.ask(p.now, asked{}).ahead; got != c.first {
			t.Errorf("%s: the first may run ahead: %v", name, got)
		}
		if got := p.pass(3*time.Second, c.then); got < c.want-0.1 || got > c.want+0.1 {
			t.Errorf("%s: %.2f run ahead then, not %.0f", name, got, c.want)
		}
	}
}

func TestTollUnknown(t *testing.T) {
	p, high := newProcessors(), loaded{plain: 0.7, cost: 1.4, gain: 1}
	p.pass(time.Minute, high)
	p.toll.spent = func() (forerun.Spent, bool) { return forerun.Spent{}, false }
	if got := p.pass(time.Minute, high); got != 1 {
		t.Errorf("where nothing is measured any more %.2f of the invocations run ahead", got)
	}
	if _, barred, _ := p.toll.read(); barred {
		t.Error("where nothing is measured it is barred")
	}
	if !new(toll).ask(p.now, asked{}).ahead {
		t.Error("without a meter nothing may run ahead")
	}
}
