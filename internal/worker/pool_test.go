package worker

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// caller is an action that calls the API with the path in its input, and returns the answer.
func caller(name string) *forerun.Action {
	a := action(client + "def main(args):\n  return {'answer': api(args['path'])} if 'path' in args else {}\n")
	a.Name.Entity = name
	return a
}

func TestManyAtATime(t *testing.T) {
	g := newRig(t, func(c *Config) { c.MaxSandboxes = 4 })
	a := action("def main(args):\n  print(args['n'])\n  return {'n': args['n']}\n")
	var all []*heard
	for n := range 32 {
		_, h := g.begin(a, fmt.Sprintf(`{"n":%d}`, n))
		all = append(all, h)
	}
	for n, h := range all {
		end := g.wait(h)
		if want := fmt.Sprintf(`{"n":%d}`, n); string(end.Result) != want || texts(end.Logs) != fmt.Sprintf("stdout: %d", n) {
			t.Errorf("%s %q; want %s", end.Result, end.Logs, want)
		}
	}
	if n := len(g.maker.started()); n > 4 {
		t.Errorf("%d sandboxes; at most 4 are allowed", n)
	}
}

func TestIdleSandboxesMakeRoom(t *testing.T) {
	g := newRig(t, single)
	for range 2 {
		for _, name := range []string{"a", "b"} {
			a := action("def main(args): return {'name': '" + name + "'}")
			if end := g.call(a, `{}`); string(end.Result) != `{"name":"`+name+`"}` {
				t.Errorf("%s", end.Result)
			}
		}
	}
	if s := g.Stats(); s.Evicted != 3 || s.ColdStarts != 4 {
		t.Errorf("%+v", s)
	}
}

func TestABusyActionDoesNotStarveAnother(t *testing.T) {
	g := newRig(t, single)
	calls := newCalls()
	g.ServeAPI(calls)
	var queue []*heard
	for range 3 {
		_, h := g.begin(caller("busy"), `{"path":"/busy"}`)
		queue = append(queue, h)
	}
	<-calls.arrived // the first runs, two wait
	_, other := g.begin(caller("other"), `{"path":"/other"}`)
	_, last := g.begin(caller("busy"), `{"path":"/last"}`)
	var order []string
	for range 4 {
		calls.answer <- "ok"
		order = append(order, <-calls.arrived)
	}
	calls.answer <- "ok"
	if got := strings.Join(order, " "); got != "/busy /busy /other /last" {
		t.Errorf("the order is %s", got)
	}
	for _, h := range append(queue, other, last) {
		if end := g.wait(h); end.Status != forerun.Success {
			t.Errorf("%s", end.Result)
		}
	}
}

func TestWaitingRunsGetMoreSandboxes(t *testing.T) {
	g := newRig(t, nil)
	calls := newCalls()
	g.ServeAPI(calls)
	var all []*heard
	for range 3 {
		_, h := g.begin(caller("a"), `{"path":"/"}`)
		all = append(all, h)
	}
	for range all {
		<-calls.arrived // all at a time, without an answer
	}
	for range all {
		calls.answer <- "ok"
	}
	for _, h := range all {
		g.wait(h)
	}
}

func TestSandboxesAgeOut(t *testing.T) {
	g := newRig(t, func(c *Config) { c.KeepAlive = time.Millisecond })
	g.call(action("def main(args): return {}"), `{}`)
	<-g.maker.started()[0].Done()
}

func TestSquash(t *testing.T) {
	g := newRig(t, single)
	calls := newCalls()
	g.ServeAPI(calls)
	starting, hs := g.begin(caller("a"), `{"path":"/never"}`)
	g.Squash(starting.Activation) // its sandbox is being started
	running, hr := g.begin(caller("a"), `{"path":"/running"}`)
	if path := <-calls.arrived; path != "/running" {
		t.Errorf("%s runs", path)
	}
	<-hr.started
	waiting, hw := g.begin(caller("a"), `{"path":"/never"}`)
	other, ho := g.begin(caller("b"), `{"path":"/never"}`)
	g.Squash(waiting.Activation)
	g.Squash(other.Activation)
	g.Squash(running.Activation)
	<-calls.cut
	if end := g.call(caller("a"), `{}`); end.Status != forerun.Success {
		t.Errorf("the next activation: %s", end.Result)
	}
	g.Squash(running.Activation)
	g.Promote(running.Activation)
	for _, h := range []*heard{hs, hr, hw, ho} {
		if len(h.started) > 0 || len(h.ended) > 0 {
			t.Error("a squashed activation went on telling")
		}
	}
	if s := g.Stats(); s.Squashed != 4 || s.Queued != 0 || len(g.runs) != 0 || len(g.hungry) != 0 {
		t.Errorf("%+v, %d runs", s, len(g.runs))
	}
}

func TestSandboxThatDies(t *testing.T) {
	g := newRig(t, single)
	calls := newCalls()
	g.ServeAPI(calls)
	_, h := g.begin(caller("a"), `{"path":"/"}`)
	<-calls.arrived
	p := g.maker.started()[0]
	p.die()
	<-calls.cut
	if end := g.wait(h); end.Status != forerun.DeveloperError || !strings.Contains(string(end.Result), "its sandbox ended") {
		t.Errorf("%v %s", end.Status, end.Result)
	}
	for range 2 { // dying while a run is in it, and while it is idle
		if end := g.call(caller("a"), `{}`); end.Status != forerun.Success {
			t.Errorf("%s", end.Result)
		}
		started := g.maker.started()
		started[len(started)-1].die()
	}
}

func TestSpareThatDies(t *testing.T) {
	g := newRig(t, single)
	a := action("import os\ndef main(args): return {'pid': os.getpid()}")
	g.call(a, `{}`)
	p := g.maker.started()[0]
	for len(p.pids()) < 2 {
	}
	if err := p.killAllBut(p.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
}

func TestOutOfMemory(t *testing.T) {
	g := newRig(t, single)
	a := action("import os\ndef main(args):\n  if args: os.kill(os.getpid(), 9)\n  return {}")
	g.call(a, `{}`)
	g.maker.started()[0].oomKills.Store(1)
	if end := g.call(a, `{"x":1}`); !strings.Contains(string(end.Result), "The action exhausted its memory and was aborted.") {
		t.Errorf("%s", end.Result)
	}
	if end := g.call(a, `{"x":1}`); !strings.Contains(string(end.Result), "killed by signal 9") {
		t.Errorf("%s", end.Result)
	}
}

func TestLogsOfLoadingAndDenials(t *testing.T) {
	g := newRig(t, single)
	calls := newCalls()
	g.ServeAPI(calls)
	a := caller("a")
	a.Exec.Code = "print('loading')\n" + a.Exec.Code
	_, h := g.begin(a, `{"path":"/"}`)
	<-calls.arrived
	g.maker.started()[0].refused <- "192.0.2.1:80 may not be reached"
	calls.answer <- "ok"
	if got := texts(g.wait(h).Logs); got != "stdout: loading\nstderr: forerun: 192.0.2.1:80 may not be reached" {
		t.Errorf("%q", got)
	}
	if end := g.call(a, `{}`); len(end.Logs) > 0 {
		t.Errorf("%q", end.Logs)
	}
}

func TestEnvironment(t *testing.T) {
	g := newRig(t, nil)
	a := action("import os\ndef main(args): return {k: v for k, v in os.environ.items() if '_OW_' in k or k == 'REDIS_URL'}")
	a.Name.Package = "pkg"
	r, h := g.begin(a, `{}`)
	end := g.wait(h)
	for key, want := range map[string]string{
		"__OW_API_HOST": "http://127.0.0.1:3233", "__OW_API_KEY": "uuid:secret", "__OW_NAMESPACE": "guest",
		"__OW_ACTION_NAME": "/guest/pkg/a", "__OW_ACTION_VERSION": "0.0.1", "__OW_ACTIVATION_ID": string(r.Activation),
		"__OW_TRANSACTION_ID": "tid", "REDIS_URL": "redis://127.0.0.1:6379/0", "__OW_DEADLINE": "1",
	} {
		if !strings.Contains(string(end.Result), fmt.Sprintf("%q:%q", key, want)[:len(key)+4]) {
			t.Errorf("%s is missing in %s", key, end.Result)
		}
	}
}

func TestAnotherCodeOrTenantGetsAnotherSandbox(t *testing.T) {
	g := newRig(t, nil)
	a := action("n = 0\ndef main(args):\n  return {'v': 1}")
	g.call(a, `{}`)
	b := *a
	b.Exec.Code = "def main(args): return {'v': 2}"
	if end := g.call(&b, `{}`); string(end.Result) != `{"v":2}` {
		t.Errorf("%s", end.Result)
	}
	h := newHeard()
	g.Run(&forerun.Run{Activation: forerun.NewActivationID(time.Now()), Action: a, Input: []byte(`{}`), Namespace: "other", Events: h})
	g.wait(h)
	if n := len(g.maker.started()); n != 3 {
		t.Errorf("%d sandboxes; want 3", n)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	g := newRig(t, single)
	calls := newCalls()
	g.ServeAPI(calls)
	_, running := g.begin(caller("a"), `{"path":"/"}`)
	<-calls.arrived
	_, waiting := g.begin(caller("a"), `{}`)
	_, hungry := g.begin(caller("b"), `{}`)
	done := make(chan error)
	go func() { done <- g.Close() }()
	for name, h := range map[string]*heard{"running": running, "waiting": waiting, "hungry": hungry} {
		if end := g.wait(h); end.Status != forerun.InternalError || !strings.Contains(string(end.Result), "shut down") {
			t.Errorf("%s: %v %s", name, end.Status, end.Result)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, part := range []string{"worker.(*box)", "worker.(*output)", "worker.(*doors)", "worker.(*apiServer)", "http.(*conn)"} {
		if stacks := goroutines(); strings.Contains(stacks, part) {
			t.Errorf("%s is left: %s", part, stacks)
		}
	}
	_, late := g.begin(caller("a"), `{}`)
	if end := g.wait(late); end.Status != forerun.InternalError {
		t.Errorf("after Close: %v", end.Status)
	}
}

// goroutines is what all goroutines do.
func goroutines() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func TestSandboxesThatCannotBeStarted(t *testing.T) {
	g := newRig(t, nil)
	g.maker.fail = errors.New("no")
	_, a := g.begin(action("x"), `{}`)
	_, b := g.begin(action("x"), `{}`)
	for _, h := range []*heard{a, b} {
		if end := g.wait(h); end.Status != forerun.InternalError {
			t.Errorf("%v", end.Status)
		}
	}
}

func TestExpectedWait(t *testing.T) {
	now := time.Now()
	busy := func(since time.Duration) *box { return &box{state: boxBusy, since: now.Add(-since)} }
	waiting := func(n int) (runs []*run) {
		for range n {
			runs = append(runs, &run{Run: &forerun.Run{}, asked: now})
		}
		return runs
	}
	ahead := func(waited time.Duration) *run {
		return &run{Run: &forerun.Run{Speculative: true}, promoted: make(chan struct{}), queued: now.Add(-waited)}
	}
	parked := func(since time.Duration) *box {
		r := ahead(0)
		r.parkedAt = now.Add(-since)
		return &box{state: boxBusy, since: now.Add(-since), current: r}
	}
	runsAhead := func() *box { return &box{state: boxBusy, since: now, current: ahead(0)} }
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
		"one starts for each":    {p: pool{queue: waiting(2), boxes: []*box{{}, {}}, starting: 2, service: time.Hour}, want: false},
		"short":                  {p: pool{queue: waiting(2), boxes: []*box{busy(0)}, service: 2 * time.Millisecond}, want: false},
		"longer":                 {p: pool{queue: waiting(3), boxes: []*box{busy(0)}, service: 2 * time.Millisecond}, want: true},
		"longer, no processors":  {p: pool{queue: waiting(3), boxes: []*box{busy(0)}, service: 2 * time.Millisecond}, saturated: true, want: false},
		"long, no processors":    {p: pool{queue: waiting(60), boxes: []*box{busy(0)}, service: 2 * time.Millisecond, growth: paid, cpu: time.Millisecond, calm: time.Second}, saturated: true, want: true},
		"long, it has them":      {p: pool{queue: waiting(60), boxes: []*box{busy(0)}, service: 2 * time.Millisecond, growth: paid, cpu: time.Hour, calm: time.Second}, saturated: true, want: false},
		"not long enough":        {p: pool{queue: waiting(40), boxes: []*box{busy(0)}, service: 2 * time.Millisecond, growth: paid}, saturated: true, want: false},
		"unknown":                {p: pool{queue: waiting(1), boxes: []*box{{}}, starting: 0}, want: false},
		"unknown, all run long":  {p: pool{queue: waiting(1), boxes: []*box{busy(time.Second), busy(time.Minute)}}, want: true},
		"unknown, one runs long": {p: pool{queue: waiting(1), boxes: []*box{busy(0), busy(time.Minute)}}, want: false},
		"ahead":                  {p: pool{queue: []*run{ahead(0)}, boxes: []*box{busy(time.Second)}}, want: true},
		"ahead, crowded":         {p: pool{queue: []*run{ahead(0)}, boxes: []*box{busy(time.Second)}}, crowded: true, want: false},
		"two of them, crowded":   {p: pool{queue: append(waiting(1), ahead(0), ahead(0)), boxes: []*box{busy(0)}, service: 2 * time.Millisecond}, crowded: true, want: false},
		"two of them":            {p: pool{queue: append(waiting(1), ahead(0), ahead(0)), boxes: []*box{busy(0)}, service: 2 * time.Millisecond}, want: true},
		"they have it":           {p: pool{queue: waiting(1), boxes: []*box{runsAhead()}}, want: true},
		"they have it, crowded":  {p: pool{queue: waiting(1), boxes: []*box{runsAhead()}}, crowded: true, want: false},
		"they have one":          {p: pool{queue: waiting(1), boxes: []*box{busy(0), runsAhead()}, service: 20 * time.Millisecond}, want: true},
		"they have one, crowded": {p: pool{queue: waiting(1), boxes: []*box{busy(0), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, want: false},
		"they lack one, crowded": {p: pool{queue: append(waiting(1), ahead(0)), boxes: []*box{busy(0)}, service: 20 * time.Millisecond}, crowded: true, want: false},
		"many wait, crowded":     {p: pool{queue: waiting(11), boxes: []*box{busy(0), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, want: true},
		"some wait":              {p: pool{queue: waiting(3), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond}, want: true},
		"some wait, crowded":     {p: pool{queue: waiting(3), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, want: true},
		"some wait, pressed":     {p: pool{queue: waiting(3), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, pressed: true, want: false},
		"long, pressed":          {p: pool{queue: late(longWait), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, pressed: true, want: true},
		"often, pressed":         {p: pool{queue: waiting(3), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond, waits: often}, crowded: true, pressed: true, want: true},
		"often, packed":          {p: pool{queue: waiting(3), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond, waits: often}, crowded: true, pressed: true, packed: true, want: false},
		"many wait, packed":      {p: pool{queue: waiting(11), boxes: []*box{busy(0), busy(0)}, service: 20 * time.Millisecond}, crowded: true, pressed: true, packed: true, want: true},
		"short, often, pressed":  {p: pool{queue: waiting(4), boxes: []*box{busy(0)}, service: 2 * time.Millisecond, waits: waits{n: 1, seconds: 0.008}}, crowded: true, pressed: true, want: true},
		"parked for long":        {p: pool{queue: waiting(1), boxes: []*box{parked(time.Second)}}, want: false},
		"kept, crowded":          {p: pool{queue: late(tickEvery), boxes: []*box{busy(time.Minute), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, want: true},
		"kept for long, crowded": {p: pool{queue: late(longWait), boxes: []*box{busy(time.Minute), runsAhead()}, service: 20 * time.Millisecond}, crowded: true, pressed: true, packed: true, want: true},
		"for long, crowded":      {p: pool{queue: late(tickEvery), boxes: []*box{runsAhead()}}, crowded: true, want: true},
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

// A queue is looked at every tick while somebody waits.
func TestGrowthPaysWhereFunctionsWait(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var g growth
	boxes, owed, enough := 0, 0., false
	start := func() {
		g.grew(now, boxes)
		boxes++
	}
	// For so long a pool that has a queue gets so many done in a second; started says after how long it got another sandbox, if it
	// did.
	during := func(d time.Duration, perSecond float64) (started time.Duration) {
		for passed := time.Duration(0); passed <= d; passed += tickEvery {
			if g.pays(now, boxes, enough) {
				start()
				return passed
			}
			now = now.Add(tickEvery)
			for owed += perSecond * tickEvery.Seconds(); owed >= 1; owed-- {
				g.ended++
			}
		}
		return -1
	}
	start()
	for _, step := range []struct {
		about     string
		perSecond float64
		want      time.Duration
	}{
		{"the first queue", 20, growthLook},
		{"twice as many", 40, growthLook},
		{"half as many more", 60, growthLook},
		{"no more", 60, growthProbe},
		{"a probe that was no use", 60, 2 * growthProbe},
		{"another", 60, growthProbeLast},
		{"and another", 60, growthProbeLast},
		{"a probe that was of use", 100, growthLook},
		{"none are done", 0, growthProbe},
	} {
		if got := during(3*growthProbeLast, step.perSecond); (got - step.want).Abs() > tickEvery {
			t.Errorf("%s: after %v, want %v", step.about, got, step.want)
		}
	}
	now, enough = now.Add(time.Hour), true
	if got := during(3*growthProbeLast, 800); (got - growthProbe).Abs() > tickEvery {
		t.Errorf("more than twice as many, of enough: after %v, want %v", got, growthProbe)
	}
	now, enough = now.Add(time.Hour), false // without a queue
	if got := during(growthLook, 4000); (got - growthLook).Abs() > tickEvery {
		t.Errorf("four times as many, an hour later: after %v, want %v: what was counted before says nothing of now", got, growthLook)
	}
}

// What starts while the processors are free says nothing of whether it helps where they are not.
func TestGrowthOnFreeProcessors(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var g growth
	for boxes := range 40 {
		now = now.Add(time.Minute)
		g.grew(now, boxes)
	}
	if g.patience() != growthProbe {
		t.Errorf("it is tried after %v, want %v", g.patience(), growthProbe)
	}
}

func TestLoad(t *testing.T) {
	var busy, total uint64
	l := newLoad(func() (uint64, uint64, bool) { return busy, total, true })
	at := time.Unix(0, 0)
	for i, step := range []struct {
		after       time.Duration
		busy, total uint64
		want        bool
	}{
		{time.Hour, 100, 100, false}, // nothing to compare with
		{50 * time.Millisecond, 5, 10, false},
		{50 * time.Millisecond, 10, 10, false},
		{50 * time.Millisecond, 8, 10, true},
		{50 * time.Millisecond, 9, 10, false},
		{50 * time.Millisecond, 9, 10, true},
		{time.Second, 10, 10, false}, // too long ago
		{50 * time.Millisecond, 10, 10, false},
		{50 * time.Millisecond, 10, 10, true},
	} {
		at, busy, total = at.Add(step.after), busy+step.busy, total+step.total
		if l.sample(at); l.saturated(at, 0) != step.want {
			t.Errorf("step %d: %v", i, !step.want)
		}
	}
	for range 80 {
		at, busy, total = at.Add(50*time.Millisecond), busy+9, total+10
		l.sample(at)
	}
	for range 2 {
		at, total = at.Add(50*time.Millisecond), total+10
		l.sample(at)
	}
	if got := l.pressure(at, 0); got != (pressure{crowded: true, pressed: true, packed: true}) {
		t.Errorf("%+v; want that nearly all was in use until a moment ago", got)
	}
}

func TestCrowded(t *testing.T) {
	var busy, total uint64
	l := newLoad(func() (uint64, uint64, bool) { return busy, total, true })
	at := time.Unix(0, 0)
	for _, more := range []uint64{0, 5, 5, 0} { // of 20
		at, busy, total = at.Add(50*time.Millisecond), busy+more, total+20
		l.sample(at)
	}
	if l.crowded(at) {
		t.Error("an eighth is in use")
	}
	at, busy, total = at.Add(50*time.Millisecond), busy+21, total+20
	if l.sample(at); !l.crowded(at) {
		t.Error("more than half is in use")
	}
	for range 60 {
		at, busy, total = at.Add(50*time.Millisecond), busy+20, total+20
		l.sample(at)
	}
	for range 2 {
		at, total = at.Add(50*time.Millisecond), total+20
		l.sample(at)
	}
	if !l.crowded(at) {
		t.Error("more than half was in use until a moment ago")
	}
	for range 60 {
		at, total = at.Add(50*time.Millisecond), total+20
		l.sample(at)
	}
	if l.crowded(at) {
		t.Error("nothing was in use of late")
	}
	if l.crowded(at.Add(time.Minute)) {
		t.Error("what is not known is taken for no")
	}
}

func TestLoadThatNobodyMeasured(t *testing.T) {
	l := newLoad(func() (uint64, uint64, bool) { return 0, 0, true })
	processors := runtime.GOMAXPROCS(0)
	for _, at := range []time.Time{time.Unix(0, 0), time.Unix(1000, 0)} {
		if l.saturated(at, processors) || !l.saturated(at, processors+1) {
			t.Error("as many as there are processors do not saturate them, one more does")
		}
		l.sample(at)
	}
}

func TestParseStat(t *testing.T) {
	if busy, total, ok := parseStat([]byte("cpu  10 1 5 100 20 2 3 4 0 0\ncpu0 1")); busy != 25 || total != 145 || !ok {
		t.Errorf("%d %d %v", busy, total, ok)
	}
	for _, text := range []string{"", "cpu  1 2 3", "intr 1 2 3 4 5 6 7 8 9\n", "cpu a b c d e f g h\n"} {
		if _, _, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q was read", text)
		}
	}
	if _, total, ok := readProcStat(); !ok || total == 0 {
		t.Error("this machine's /proc/stat cannot be read")
	}
}
