package controller

import (
	"runtime"
	"testing"
	"time"
)

// processors are those of a machine, in a time of its own.
type processors struct {
	now      time.Time
	own, all time.Duration
	toll     toll
}

// loaded is what a machine has to do.
type loaded struct {
	plain  float64 // share of the processors that activations take where none runs ahead
	cost   float64 // times as much where they do
	gain   float64 // times as many activations, as their clients wait for each
	others float64 // share that others' programs take
}

const perSecond = 400 // activations

func newProcessors() *processors {
	p := &processors{now: time.Unix(1_000_000, 0), own: time.Minute, all: time.Hour}
	p.toll.spent = func() (own, all time.Duration, known bool) { return p.own, p.all, true }
	return p
}

// pass has the machine do something for a time, and returns the share of the invocations that ran ahead in the last part of it.
func (p *processors) pass(d time.Duration, l loaded) float64 {
	const step, last = 10 * time.Millisecond, 20 * time.Second
	began, ahead := 0., 0.
	for left := d; left > 0; left -= step {
		p.now = p.now.Add(step)
		done, share := perSecond*step.Seconds(), l.plain
		allowed := p.toll.allows(p.now)
		if allowed {
			done, share = done*l.gain, share*l.gain*l.cost
		}
		if left <= last {
			began++
			if allowed {
				ahead++
			}
		}
		for range int(done) {
			p.toll.ended()
		}
		whole := step.Seconds() * float64(runtime.GOMAXPROCS(0))
		share = min(share, 1-l.others)
		p.own += time.Duration(share * whole * float64(time.Second))
		p.all += time.Duration((share + l.others) * whole * float64(time.Second))
	}
	return ahead / began
}

func TestToll(t *testing.T) {
	const long = 2 * time.Minute
	for name, c := range map[string]struct {
		loaded
		most, least float64 // share that runs ahead
	}{
		"there is time for it":     {loaded{plain: 0.3, cost: 1.4, gain: 1}, 1, 1},
		"there is time, just":      {loaded{plain: 0.65, cost: 1.15, gain: 1}, 1, 0.9},
		"there is none":            {loaded{plain: 0.7, cost: 1.4, gain: 1}, 0.05, 0},
		"others have taken it":     {loaded{plain: 0.4, cost: 1.4, gain: 1, others: 0.4}, 0.05, 0},
		"it costs nothing":         {loaded{plain: 0.85, cost: 1, gain: 1}, 1, 0.9},
		"it saves time":            {loaded{plain: 0.9, cost: 0.7, gain: 1}, 1, 0.9},
		"clients wait for answers": {loaded{plain: 0.3, cost: 1.2, gain: 2.5}, 1, 0.9},
	} {
		if got := newProcessors().pass(long, c.loaded); got < c.least || got > c.most {
			t.Errorf("%s: %.2f of the invocations run ahead, want %v to %v", name, got, c.least, c.most)
		}
	}
}

func TestTollIsLifted(t *testing.T) {
	p := newProcessors()
	high, low := loaded{plain: 0.7, cost: 1.4, gain: 1}, loaded{plain: 0.3, cost: 1.4, gain: 1}
	p.pass(time.Minute, high)
	if cost, barred := p.toll.read(); !barred || cost < 1.35 || cost > 1.45 {
		t.Fatalf("the cost is %.2f, and it is barred: %v", cost, barred)
	}
	if got := p.pass(21*time.Second, low); got < 0.9 {
		t.Errorf("at lower load %.2f of the invocations run ahead", got)
	}
	p.pass(time.Minute, high)
	if got := p.pass(5*time.Minute, loaded{plain: 0.7, cost: 0.8, gain: 1}); got < 0.9 {
		t.Errorf("of another application, that it saves time, %.2f of the invocations run ahead", got)
	}
}

// What lies behind a pause, or is not measured, is not compared.
func TestTollUnknown(t *testing.T) {
	p := newProcessors()
	high := loaded{plain: 0.7, cost: 1.4, gain: 1}
	known := false
	p.toll.spent = func() (own, all time.Duration, _ bool) { return p.own, p.all, known }
	if got := p.pass(time.Minute, high); got != 1 {
		t.Errorf("where nothing is measured %.2f of the invocations run ahead", got)
	}
	known = true
	for range 60 {
		p.pass(900*time.Millisecond, high)
		p.now, p.own, p.all = p.now.Add(time.Minute), p.own+time.Minute, p.all+time.Minute
	}
	if cost, barred := p.toll.read(); barred || cost != 0 {
		t.Errorf("after pauses the cost is %.2f, and it is barred: %v", cost, barred)
	}
	if !new(toll).allows(p.now) {
		t.Error("without a meter nothing may run ahead")
	}
}
