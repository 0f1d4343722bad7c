package worker

import (
	"context"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestExpectedWait(t *testing.T) {
	now := time.Now()
	busy := func(since time.Duration) *pooledSandbox {
		return &pooledSandbox{state: sandboxBusy, since: now.Add(-since)}
	}
	waiting := func(n int) (runs []*run) {
		for range n {
			runs = append(runs, &run{Run: &forerun.Run{}, asked: now})
		}
		return runs
	}
	ahead := func(waited time.Duration) *run {
		return &run{Run: &forerun.Run{Speculative: true}, promoted: context.Background(), queued: now.Add(-waited)}
	}
	parked := func(since time.Duration) *pooledSandbox {
		r := ahead(0)
		r.parkedAt = now.Add(-since)
		return &pooledSandbox{state: sandboxBusy, since: now.Add(-since), current: r}
	}
	runsAhead := func() *pooledSandbox { return &pooledSandbox{state: sandboxBusy, since: now, current: ahead(0)} }
	calls := func(n int) *pooledSandbox {
		return &pooledSandbox{state: sandboxBusy, since: now, current: &run{Run: &forerun.Run{}, calls: n}}
	}
	late := func(waited time.Duration) []*run { return []*run{{Run: &forerun.Run{}, asked: now.Add(-waited)}} }
	often := waits{n: 100, seconds: 100 * oftenWait.Seconds()}
	paid := growth{since: now.Add(-time.Second), looked: now, ended: 1}
	for name, c := range map[string]struct {
		p                                   pool
		saturated, crowded, pressed, packed bool
		want                                bool
	}{
		"nobody waits":           {p: pool{}, want: false},
		"no sandbox":             {p: pool{queue: waiting(1)}, saturated: true, want: true},
		"one starts for each":    {p: pool{queue: waiting(2), sandboxes: []*pooledSandbox{{}, {}}, starting: 2, service: time.Hour}, want: false},
		"short":                  {p: pool{queue: waiting(2), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond}, want: false},
		"longer":                 {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond}, want: true},
		"longer, no processors":  {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond}, saturated: true, want: false},
		"long, no processors":    {p: pool{queue: waiting(60), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond, growth: paid, cpu: time.Millisecond, calm: time.Second}, saturated: true, want: true},
		"long, it has them":      {p: pool{queue: waiting(60), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond, growth: paid, cpu: time.Hour, calm: time.Second}, saturated: true, want: false},
		"not long enough":        {p: pool{queue: waiting(40), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond, growth: paid}, saturated: true, want: false},
		"unknown":                {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{{}}, starting: 0}, want: false},
		"unknown, all run long":  {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(time.Second), busy(time.Minute)}}, want: true},
		"unknown, one runs long": {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(0), busy(time.Minute)}}, want: false},
		"ahead":                  {p: pool{queue: []*run{ahead(0)}, sandboxes: []*pooledSandbox{busy(time.Second)}}, want: true},
		"ahead, crowded":         {p: pool{queue: []*run{ahead(0)}, sandboxes: []*pooledSandbox{busy(time.Second)}}, crowded: true, want: false},
		"two of them, crowded":   {p: pool{queue: append(waiting(1), ahead(0), ahead(0)), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond}, crowded: true, want: false},
		"two of them":            {p: pool{queue: append(waiting(1), ahead(0), ahead(0)), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond}, want: true},
		"they have it":           {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{runsAhead()}}, want: true},
		"they have it, crowded":  {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{runsAhead()}}, crowded: true, want: false},
		"dear":                   {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(0), runsAhead()}, service: 20 * time.Millisecond, startTook: 50 * time.Millisecond}, want: false},
		"dear, for ahead":        {p: pool{queue: []*run{ahead(0)}, sandboxes: []*pooledSandbox{busy(20 * time.Millisecond)}, startTook: 50 * time.Millisecond}, want: false},
		"dear, they have it":     {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{runsAhead()}, startTook: 50 * time.Millisecond}, want: false},
		"dear, often":            {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(0), runsAhead()}, service: 20 * time.Millisecond, startTook: 50 * time.Millisecond, waits: waits{n: 10, seconds: 0.05, at: now}}, want: true},
		"dear, many":             {p: pool{queue: waiting(4), sandboxes: []*pooledSandbox{busy(0), runsAhead()}, service: 20 * time.Millisecond, startTook: 50 * time.Millisecond}, want: true},
		"dear, none ahead":       {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(20 * time.Millisecond)}, startTook: 50 * time.Millisecond}, want: true},
		"they have one":          {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(0), runsAhead()}, service: 20 * time.Millisecond}, want: true},
		"they have one, crowded": {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{busy(0), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, want: false},
		"they lack one, crowded": {p: pool{queue: append(waiting(1), ahead(0)), sandboxes: []*pooledSandbox{busy(0)}, service: 20 * time.Millisecond}, crowded: true, want: false},
		"many wait, crowded":     {p: pool{queue: waiting(11), sandboxes: []*pooledSandbox{busy(0), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, want: true},
		"some wait":              {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond}, want: true},
		"some wait, crowded":     {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, want: true},
		"some wait, pressed":     {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, pressed: true, want: false},
		"long, pressed":          {p: pool{queue: late(longWait), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, pressed: true, want: true},
		"often, pressed":         {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond, waits: often}, crowded: true, pressed: true, want: true},
		"often, packed":          {p: pool{queue: waiting(3), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond, waits: often}, crowded: true, pressed: true, packed: true, want: false},
		"many wait, packed":      {p: pool{queue: waiting(11), sandboxes: []*pooledSandbox{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, pressed: true, packed: true, want: true},
		"short, often, pressed":  {p: pool{queue: waiting(4), sandboxes: []*pooledSandbox{busy(0)}, service: 2 * time.Millisecond, waits: waits{n: 1, seconds: 0.008}}, crowded: true, pressed: true, want: true},
		"all call":               {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{calls(1), calls(2)}}, saturated: true, crowded: true, pressed: true, packed: true, want: true},
		"all call, one ahead":    {p: pool{queue: []*run{ahead(0)}, sandboxes: []*pooledSandbox{calls(1)}}, crowded: true, want: false},
		"one calls":              {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{calls(1), busy(0)}}, saturated: true, crowded: true, pressed: true, packed: true, want: false},
		"one works":              {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{calls(1), calls(0)}}, saturated: true, crowded: true, pressed: true, packed: true, want: false},
		"parked for long":        {p: pool{queue: waiting(1), sandboxes: []*pooledSandbox{parked(time.Second)}}, want: false},
		"kept, crowded":          {p: pool{queue: late(tickEvery), sandboxes: []*pooledSandbox{busy(time.Minute), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, want: true},
		"kept for long, crowded": {p: pool{queue: late(longWait), sandboxes: []*pooledSandbox{busy(time.Minute), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, pressed: true, packed: true, want: true},
		"for long, crowded":      {p: pool{queue: late(tickEvery), sandboxes: []*pooledSandbox{runsAhead()}}, crowded: true, want: true},
	} {
		if got := c.p.wants(now, pressure{crowded: c.crowded, pressed: c.pressed, packed: c.packed, saturated: c.saturated}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestMeanWait(t *testing.T) {
	var w waits
	at := time.Unix(1_000_000, 0)
	if w.note(time.Minute, at); w.mean() != time.Minute {
		t.Errorf("%v; want the first as it is", w.mean())
	}
	if w.note(0, at.Add(time.Minute)); w.mean() > time.Millisecond {
		t.Errorf("%v; want nothing of long ago in it", w.mean())
	}
	at = at.Add(2 * time.Minute)
	for range 20 { // two in each second, the second one has to wait
		at = at.Add(time.Second)
		w.note(0, at)
		w.note(100*time.Millisecond, at.Add(time.Millisecond))
	}
	if (w.mean() - 50*time.Millisecond).Abs() > 5*time.Millisecond {
		t.Errorf("%v; want 50 ms, nearly", w.mean())
	}
}

// TestCallersWait: a run is known to wait for those that it called, once it has, until they have ended, or are squashed.
func TestCallersWait(t *testing.T) {
	g, calls := newCallingRig(t, func(c *Config) { c.MaxSandboxes = 3 })
	outer, h := g.begin(caller("outer"), `{"path":"/outer"}`)
	calls.next()
	expect := func(what string, want int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if n := g.runs[outer.Activation].calls; n != want {
			t.Errorf("%s: it waits for %d", what, n)
		}
	}
	called := func(r *forerun.Run) { r.Caller = outer.Activation }
	squashed, _ := g.ahead(caller("inner"), `{"path":"/inner"}`, called)
	calls.next()
	expect("it has called", 1)
	g.Squash(squashed.Activation)
	calls.nextCut()
	expect("what it called is squashed", 0)
	expected, _ := g.ahead(caller("inner"), `{"path":"/inner"}`)
	calls.next()
	expect("it has not called what is expected", 0)
	g.Await(expected.Activation, outer.Activation)
	expect("it has called what was expected", 1)
	g.Squash(expected.Activation)
	calls.nextCut()
	expect("what was expected is squashed", 0)
	ended, early := g.ahead(caller("inner"), `{}`)
	g.wait(early)
	g.Await(ended.Activation, outer.Activation)
	expect("what was expected has ended before it called", 0)
	g.Squash(ended.Activation)
	promoted, inner := g.ahead(caller("inner"), `{}`, called)
	g.Promote(promoted.Activation)
	g.wait(inner)
	expect("what it called has ended", 0)
	calls.answer <- "go on"
	g.wait(h)
}
