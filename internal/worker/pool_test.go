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
	g, calls := newCallingRig(t, single)
	var queue []*heard
	for range 3 {
		_, h := g.begin(caller("busy"), `{"path":"/busy"}`)
		queue = append(queue, h)
	}
	calls.next() // the first runs, two wait
	_, other := g.begin(caller("other"), `{"path":"/other"}`)
	_, last := g.begin(caller("busy"), `{"path":"/last"}`)
	var order []string
	for range 4 {
		calls.answer <- "ok"
		order = append(order, calls.next())
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
	g, calls := newCallingRig(t, nil)
	var all []*heard
	for range 3 {
		_, h := g.begin(caller("a"), `{"path":"/"}`)
		all = append(all, h)
	}
	for range all {
		calls.next() // all at a time, without an answer
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
	await(t, g.maker.started()[0].Done(), "it stays")
}

func TestSquash(t *testing.T) {
	g, calls := newCallingRig(t, single)
	starting, hs := g.begin(caller("a"), `{"path":"/never"}`)
	g.Squash(starting.Activation) // its sandbox is being started
	running, hr := g.begin(caller("a"), `{"path":"/running"}`)
	if path := calls.next(); path != "/running" {
		t.Errorf("%s runs", path)
	}
	g.begun(hr)
	waiting, hw := g.begin(caller("a"), `{"path":"/never"}`)
	other, ho := g.begin(caller("b"), `{"path":"/never"}`)
	g.Squash(waiting.Activation)
	g.Squash(other.Activation)
	g.Squash(running.Activation)
	calls.nextCut()
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
	g, calls := newCallingRig(t, single)
	_, h := g.begin(caller("a"), `{"path":"/"}`)
	calls.next()
	p := g.maker.started()[0]
	p.die()
	calls.nextCut()
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
	until(t, func() bool { return len(p.pids()) >= 2 }, "no spare is made")
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
	clean := func() { g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 }) }
	g.call(a, `{}`)
	clean()
	g.maker.started()[0].oomKills.Store(1)
	if end := g.call(a, `{"x":1}`); !strings.Contains(string(end.Result), "The action exhausted its memory and was aborted.") {
		t.Errorf("%s", end.Result)
	}
	if end := g.call(a, `{"x":1}`); !strings.Contains(string(end.Result), "killed by signal 9") {
		t.Errorf("%s", end.Result)
	}
	clean()
	g.maker.started()[0].oomKills.Store(2)
	g.call(a, `{}`) // it answers although a child of it was killed
	if end := g.call(a, `{"x":1}`); !strings.Contains(string(end.Result), "killed by signal 9") {
		t.Errorf("after one whose child was killed: %s", end.Result)
	}
}

func TestLogsOfLoadingAndDenials(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	a.Exec.Code = "print('loading')\n" + a.Exec.Code
	_, h := g.begin(a, `{"path":"/"}`)
	calls.next()
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
	g, calls := newCallingRig(t, single)
	_, running := g.begin(caller("a"), `{"path":"/"}`)
	calls.next()
	_, waiting := g.begin(caller("a"), `{}`)
	_, hungry := g.begin(caller("b"), `{}`)
	done := make(chan error)
	go func() { done <- g.Close() }()
	for name, h := range map[string]*heard{"running": running, "waiting": waiting, "hungry": hungry} {
		if end := g.wait(h); end.Status != forerun.InternalError || !strings.Contains(string(end.Result), "shut down") {
			t.Errorf("%s: %v %s", name, end.Status, end.Result)
		}
	}
	if err := await(t, done, "Close does not return"); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"worker.(*pooledSandbox)", "worker.(*output)", "worker.(*doors)", "worker.(*apiServer)", "http.(*conn)"} {
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

// A queue is looked at every tick while somebody waits.
func TestGrowthPaysWhereFunctionsWait(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var g growth
	sandboxes, owed, enough := 0, 0., false
	start := func() {
		g.grew(now, sandboxes)
		sandboxes++
	}
	// For so long a pool that has a queue gets so many done in a second; started says after how long it got another sandbox, if it
	// did.
	during := func(d time.Duration, perSecond float64) (started time.Duration) {
		for passed := time.Duration(0); passed <= d; passed += tickEvery {
			if g.pays(now, sandboxes, enough) {
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

// TestGrowthOnFreeProcessors: sandboxes that start on free processors do not teach whether more of them help on busy ones.
func TestGrowthOnFreeProcessors(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var g growth
	for sandboxes := range 40 {
		now = now.Add(time.Minute)
		g.grew(now, sandboxes)
	}
	if g.patience() != growthProbe {
		t.Errorf("it is tried after %v, want %v", g.patience(), growthProbe)
	}
}

// TestSquashedAsItsQueueFails: a run that was taken out of a queue to be failed is not counted again if it is squashed before that.
func TestSquashedAsItsQueueFails(t *testing.T) {
	s := newShop(t, 100)
	p := s.poolOf(&forerun.Run{Action: action("a"), Namespace: "guest"}, &language{})
	r := &run{Run: &forerun.Run{Activation: "one"}, pool: p}
	s.runs[r.Activation] = r
	s.push(p, r)
	s.empty(p)
	s.Squash(r.Activation)
	if p.tenant.queued != 0 {
		t.Errorf("%d wait", p.tenant.queued)
	}
}
