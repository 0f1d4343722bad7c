package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/resp"
)

// rig is a worker under test with what it is made of.
type rig struct {
	*Worker
	maker *processes
	t     testing.TB
}

// discover looks for languages once for all tests.
var discover = sync.OnceValue(func() *Languages {
	program, _ := os.Executable() // without it there are no languages with a launcher
	return Discover(context.Background(), Sources{Program: program})
})

// newRig makes a worker over plain processes. Close is called, and must return, at the test's end.
func newRig(t *testing.T, change func(*Config)) *rig {
	t.TempDir() // what sandboxes are in is removed after them
	maker := &processes{t: t}
	config := Config{
		Maker: maker, Languages: discover(), MemoryMiB: 16 << 10,
		Hub: new(resp.Hub), Log: slog.New(slog.DiscardHandler),
	}
	if config.Languages.Check("python:3") != nil {
		t.Skip("this machine has no Python")
	}
	if change != nil {
		change(&config)
	}
	w := New(config)
	w.load.read = idle
	w.grace = time.Hour // a test fails where something waits for that
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if u := w.turns.use(); u.Used != 0 || u.Known != 0 || u.Waiting != 0 {
			t.Errorf("nothing runs, and %+v are in use", u)
		}
		for _, p := range maker.started() {
			if pids := p.pids(); len(pids) > 0 {
				t.Errorf("processes %v are left", pids)
			}
		}
	})
	return &rig{w, maker, t}
}

// idle has a machine's processors be free: other tests' load is not the worker's own.
func idle() (busy, total uint64, ok bool) { return 0, 0, true }

// heard is what a run's events said.
type heard struct {
	started chan time.Duration // the init time
	ended   chan forerun.RunEnd
	wanted  chan forerun.SquashKind
}

func newHeard() *heard {
	return &heard{started: make(chan time.Duration, 1), ended: make(chan forerun.RunEnd, 1), wanted: make(chan forerun.SquashKind, 1)}
}

func (h *heard) Started(_ forerun.ActivationID, _ time.Time, initTime time.Duration) {
	h.started <- initTime
}

func (h *heard) Wanted(_ forerun.ActivationID, kind forerun.SquashKind, _ *forerun.Reason) {
	h.wanted <- kind
}
func (h *heard) Ended(_ forerun.ActivationID, end forerun.RunEnd) { h.ended <- end }

// action makes an action of Python source.
func action(source string) *forerun.Action {
	return &forerun.Action{
		Name: forerun.Name{Namespace: "guest", Entity: "a"}, Version: "0.0.1",
		Exec: forerun.Exec{Kind: "python:3", Code: source}, Limits: forerun.DefaultLimits(),
	}
}

// begin asks for a run and returns what will be heard of it.
func (g *rig) begin(a *forerun.Action, input string) (*forerun.Run, *heard) {
	h := newHeard()
	r := &forerun.Run{
		Activation: forerun.NewActivationID(time.Now()), Action: a, Input: json.RawMessage(input), Namespace: "guest",
		Token: "uuid:secret", Transaction: "tid", Events: h,
	}
	g.Run(r)
	return r, h
}

// sandboxes are those in a state that have code.
func (g *rig) sandboxes(in sandboxState) (sandboxes []*pooledSandbox) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.pools {
		for _, b := range p.sandboxes {
			if b.state == in {
				sandboxes = append(sandboxes, b)
			}
		}
	}
	return sandboxes
}

// wait returns the end of a run.
func (g *rig) wait(h *heard) forerun.RunEnd {
	g.t.Helper()
	return await(g.t, h.ended, "the activation does not end")
}

// begun waits until a handler has begun a run.
func (g *rig) begun(h *heard) (initTime time.Duration) {
	g.t.Helper()
	return await(g.t, h.started, "the activation does not begin")
}

// wanted waits until a run is asked to end, and returns for what.
func (g *rig) wanted(h *heard) forerun.SquashKind {
	g.t.Helper()
	return await(g.t, h.wanted, "what runs ahead keeps its sandbox")
}

// await receives what is to come soon.
func await[T any](t testing.TB, from <-chan T, otherwise string) (received T) {
	t.Helper()
	select {
	case received = <-from:
	case <-time.After(2 * time.Minute):
		t.Fatal(otherwise)
	}
	return received
}

// until waits until something is so, which is to be soon.
func until(t testing.TB, isSo func() bool, otherwise string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !isSo(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

// soon tries what takes a limit only if it is wrong: a busy machine may take as long now and then.
func soon(t testing.TB, limit time.Duration, otherwise string, try func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 5 {
		last := try()
		if last < limit {
			return
		}
		took = append(took, last)
	}
	t.Errorf("%s for %v", otherwise, took)
}

// call runs an action to its end.
func (g *rig) call(a *forerun.Action, input string) forerun.RunEnd {
	g.t.Helper()
	_, h := g.begin(a, input)
	return g.wait(h)
}

// text is a log line without its time.
func text(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	return rest
}

func texts(lines []string) string {
	var all []string
	for _, l := range lines {
		all = append(all, text(l))
	}
	return strings.Join(all, "\n")
}

// single allows one sandbox only.
func single(c *Config) { c.MaxSandboxes = 1 }

// TestLoadingTakesNoTimeOfTheStart: the time limit of a sandbox's start does not include the loading of code, which has the
// action's limit.
func TestLoadingTakesNoTimeOfTheStart(t *testing.T) {
	const load = 200 * time.Millisecond
	g := newRig(t, single)
	begin := time.Now()
	if end := g.call(action("import time\ntime.sleep(0.2)\ndef main(args): return {}"), `{}`); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
	if by := g.maker.started()[0].sealBy.Load(); by == nil || by.Before(begin.Add(load+startLimit)) {
		t.Errorf("the code had to be sealed %v after the start began", by.Sub(begin))
	}
}

func TestRunsOneActivation(t *testing.T) {
	g := newRig(t, single)
	a := action("import sys\ndef main(args):\n  print('hello')\n  print('oops', file=sys.stderr)\n  return {'sum': args['x'] + 1}\n")
	_, h := g.begin(a, `{"x":1}`)
	end := g.wait(h)
	if end.Status != forerun.Success || string(end.Result) != `{"sum":2}` {
		t.Errorf("%v %s", end.Status, end.Result)
	}
	if got := texts(end.Logs); got != "stdout: hello\nstderr: oops" && got != "stderr: oops\nstdout: hello" {
		t.Errorf("logs: %q", end.Logs)
	}
	if init := g.begun(h); init <= 0 {
		t.Errorf("the init time of a cold start is %v", init)
	}
	_, h = g.begin(a, `{"x":2}`)
	if end := g.wait(h); string(end.Result) != `{"sum":3}` || len(end.Logs) != 2 {
		t.Errorf("the second time: %v %s %q", end.Status, end.Result, end.Logs)
	}
	if init := g.begun(h); init != 0 {
		t.Errorf("the init time of a warm start is %v", init)
	}
	if n := len(g.maker.started()); n != 1 {
		t.Errorf("%d sandboxes were started for two runs", n)
	}
}
