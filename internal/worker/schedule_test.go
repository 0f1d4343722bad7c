package worker

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/schedule"
)

// under gives a worker a policy.
func under(p schedule.Policy) func(*Config) {
	return func(c *Config) { c.Schedule = p }
}

// waitsFor is a Python function that ends once there is a file.
func waitsFor(t testing.TB) (a *forerun.Action, file string) {
	file = filepath.Join(t.TempDir(), "file")
	return action(fmt.Sprintf(`
import os, time
def main(args):
    while not os.path.exists(%q): time.sleep(0.002)
    return {}
`, file)), file
}

func touch(t testing.TB, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitUse waits until the scheduler has so many activations, and so many of them wait.
func (g *rig) awaitUse(known, waiting int) {
	g.t.Helper()
	until(g.t, func() bool {
		u := g.turns.use()
		return u.Known == known && u.Waiting == waiting
	}, fmt.Sprintf("not %d activations, of which %d wait", known, waiting))
}

// warm has actions have sandboxes, whose code is loaded.
func (g *rig) warm(actions ...*forerun.Action) {
	g.t.Helper()
	for _, a := range actions {
		if end := g.call(a, `{}`); end.Status != forerun.Success {
			g.t.Fatalf("an action that is called before: %s", end.Result)
		}
	}
}

// warmed is waitsFor with a sandbox.
func (g *rig) warmed() (a *forerun.Action, file string) {
	g.t.Helper()
	a, file = waitsFor(g.t)
	touch(g.t, file)
	g.warm(a)
	if err := os.Remove(file); err != nil {
		g.t.Fatal(err)
	}
	return a, file
}

// one has the worker have one processor.
func (g *rig) one() { g.have(1) }

// have has it have so many.
func (g *rig) have(processors int) {
	g.turns.mu.Lock()
	defer g.turns.mu.Unlock()
	g.turns.has = func() int { return processors }
}

// TestTask: one activation runs on one processor, the next one begins when it has ended, and nothing is in use then.
func TestTask(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	a, file := waitsFor(t)
	_, first := g.begin(a, `{}`)
	<-first.started
	other := action("def main(args): return {'other': True}")
	_, second := g.begin(other, `{}`)
	g.awaitUse(2, 1)
	select {
	case <-second.started:
		t.Error("both run")
	default:
	}
	touch(t, file)
	if end := <-first.ended; end.Status != forerun.Success {
		t.Errorf("the first: %s", end.Result)
	}
	if end := <-second.ended; string(end.Result) != `{"other":true}` {
		t.Errorf("the second: %s", end.Result)
	}
	g.awaitUse(0, 0)
}

// TestTurnsComeBack: whatever ends an activation that has slabs, or waits for some, the next one gets them.
func TestTurnsComeBack(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	dies := action("import os\ndef main(args): os._exit(1)")
	if end := g.call(dies, `{}`); end.Status != forerun.DeveloperError {
		t.Errorf("one that dies: %s", end.Result)
	}
	slow := action("import time\ndef main(args): time.sleep(600)")
	slow.Limits.Timeout = 100
	if end := g.call(slow, `{}`); !strings.Contains(string(end.Result), "time limits") {
		t.Errorf("one that takes too long: %s", end.Result)
	}
	a, file := waitsFor(t)
	other := action("def main(args): return {}")
	g.warm(other)
	squashed, running := g.begin(a, `{}`)
	<-running.started
	waits, _ := g.begin(other, `{}`)
	g.awaitUse(2, 1)
	g.Squash(waits.Activation)
	g.awaitUse(1, 0)
	g.Squash(squashed.Activation)
	g.awaitUse(0, 0)
	touch(t, file)
	g.expect(action("def main(args): return {'ok': 1}"), `{}`, `{"ok":1}`)
	g.awaitUse(0, 0)
}

// TestCallerGivesItsTurn: a caller that waits for its callee does not keep the only processor from it.
func TestCallerGivesItsTurn(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	a, file := waitsFor(t)
	caller, heardOf := g.begin(a, `{}`)
	<-heardOf.started
	h := newHeard()
	g.Run(&forerun.Run{
		Activation: forerun.NewActivationID(time.Now()), Action: action("def main(args): return {'callee': 1}"), Input: json.RawMessage(`{}`),
		Namespace: "guest", Token: "uuid:secret", Transaction: "tid", Events: h, Caller: caller.Activation,
	})
	if end := <-h.ended; string(end.Result) != `{"callee":1}` {
		t.Errorf("the callee: %s", end.Result)
	}
	touch(t, file)
	<-heardOf.ended
	g.awaitUse(0, 0)
}

// TestWaitForATurnIsBounded: an activation that waits for its turn as long as one may wait for a sandbox ends with an error.
func TestWaitForATurnIsBounded(t *testing.T) {
	g := newRig(t, func(c *Config) { c.Schedule, c.QueueTimeout = schedule.Task, 100*time.Millisecond })
	g.one()
	a, file := waitsFor(t)
	_, first := g.begin(a, `{}`)
	select {
	case <-first.started:
	case end := <-first.ended:
		t.Skipf("this machine is too busy to begin in time: %s", end.Result)
	}
	_, second := g.begin(action("def main(args): return {}"), `{}`)
	if end := <-second.ended; end.Status != forerun.InternalError {
		t.Errorf("%s", end.Result)
	}
	touch(t, file)
	<-first.ended
	g.awaitUse(0, 0)
}

// TestPhases: a function says its phases at the state door. An invalid phase is refused, and a phase in which the function waits goes on afterwards.
func TestPhases(t *testing.T) {
	for _, p := range schedule.Policies() {
		t.Run(string(p), func(t *testing.T) {
			g := newRig(t, func(c *Config) { withStore(t)(c); c.Schedule = p })
			g.one()
			a := action(client + `
def main(args):
    conn = connect("STATE")
    return {"answers": [redis("FORERUN.PHASE " + line, conn) for line in args["lines"]]}
`)
			end := g.call(a, `{"lines":["read 0.1","sort 1","read 0.1","read 0.1","END","end","sort","x 0","x -1","x nan","x 1e9","x 0.01","x y","a b c","","bad/name",":",
"`+strings.Repeat("long", 100)+`"]}`)
			var got struct{ Answers []string }
			if err := json.Unmarshal(end.Result, &got); err != nil {
				t.Fatalf("%s: %v", end.Result, err)
			}
			ok := slices.Repeat([]string{"+OK"}, 7)
			if !slices.Equal(got.Answers[:7], ok) {
				t.Errorf("phases: %q", got.Answers[:7])
			}
			for i, answer := range got.Answers[7:] {
				if !strings.HasPrefix(answer, "-ERR ") || strings.Contains(answer, "unknown command") {
					t.Errorf("%d: %q", 7+i, answer)
				}
			}
			g.awaitUse(0, 0)
		})
	}
}

// TestPhaseWaits: a phase that needs a processor waits until another activation has none, and its light phases run beside it.
func TestPhaseWaits(t *testing.T) {
	store := withStore(t)
	g := newRig(t, func(c *Config) { store(c); c.MaxSandboxes, c.Schedule = 2, schedule.Static })
	g.one()
	file := filepath.Join(t.TempDir(), "file")
	light := action(client + fmt.Sprintf(`
import time
def main(args):
    redis("FORERUN.PHASE light 0.5")
    while not os.path.exists(%q): time.sleep(0.002)
    return {}
`, file))
	a := action(client + `
def main(args):
    conn = connect("STATE")
    return {"answers": [redis("FORERUN.PHASE light 0.5", conn), redis("FORERUN.PHASE heavy 1", conn)]}
`)
	a.Annotations = []forerun.KeyValue{{Key: schedule.Annotation, Value: json.RawMessage(`{"heavy":0.5}`)}}
	_, first := g.begin(light, `{}`)
	<-first.started
	until(t, func() bool { return g.turns.use().Used == 8 }, "the light phase has not begun")
	_, second := g.begin(a, `{}`)
	g.awaitUse(2, 1)
	touch(t, file)
	if end := <-first.ended; end.Status != forerun.Success {
		t.Errorf("the light one: %s", end.Result)
	}
	if end := <-second.ended; string(end.Result) != `{"answers":["+OK","+OK"]}` {
		t.Errorf("the other: %s", end.Result)
	}
	g.awaitUse(0, 0)
}

// TestProcessorsChange: with a second processor the next activation that asks runs beside the first.
func TestProcessorsChange(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	a, file := waitsFor(t)
	_, first := g.begin(a, `{}`)
	await(t, first.started, "the first does not begin")
	_, second := g.begin(action("def main(args): return {'second': 1}"), `{}`)
	g.awaitUse(2, 1)
	g.have(2)
	g.expect(action("def main(args): return {'third': 1}"), `{}`, `{"third":1}`)
	if end := await(t, second.ended, "the second does not end"); string(end.Result) != `{"second":1}` {
		t.Errorf("the second: %s", end.Result)
	}
	touch(t, file)
	await(t, first.ended, "the first does not end")
	g.awaitUse(0, 0)
}

// TestPromotedWhileItWaits: of speculative activations that wait for their turn, a promoted one is next. One that is squashed is forgotten.
func TestPromotedWhileItWaits(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	first, firstFile := waitsFor(t)
	second, secondFile := g.warmed()
	one, other := action("def main(args): return {'ahead': 1}"), action("def main(args): return {'squashed': 1}")
	g.warm(one, other)
	_, busy := g.begin(first, `{}`)
	await(t, busy.started, "the first does not begin")
	_, ahead := g.ahead(one, `{}`)
	squashed, _ := g.ahead(other, `{}`)
	promoted, next := g.ahead(second, `{}`)
	g.awaitUse(4, 3)
	g.Squash(squashed.Activation)
	g.awaitUse(3, 2)
	g.Promote(promoted.Activation)
	touch(t, firstFile)
	await(t, next.started, "the promoted one does not begin")
	g.awaitUse(2, 1)
	if len(ahead.started) > 0 {
		t.Error("a speculative activation has begun before one that was promoted")
	}
	touch(t, secondFile)
	await(t, next.ended, "the promoted one does not end")
	await(t, ahead.ended, "the speculative one does not end")
	await(t, busy.ended, "the first does not end")
	g.awaitUse(0, 0)
}

// TestLoadingIsAPhase: code is loaded on processors that are free. Code that is loaded for a speculative activation comes before other such code once an
// activation in order waits for it.
func TestLoadingIsAPhase(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	a, file := waitsFor(t)
	_, first := g.begin(a, `{}`)
	await(t, first.started, "the first does not begin")
	loaded := filepath.Join(t.TempDir(), "loaded")
	_, ahead := g.ahead(action("def main(args): return {'ahead': 1}"), `{}`)
	g.awaitUse(2, 1)
	loads := action(fmt.Sprintf("import os\nos.mkdir(%q)\ndef main(args): return {'ahead': os.path.exists(%q)}", loaded, loaded))
	promoted, second := g.ahead(loads, `{}`)
	g.awaitUse(3, 2)
	if _, err := os.Stat(loaded); err == nil {
		t.Error("code was loaded while another had the only processor")
	}
	g.Promote(promoted.Activation)
	touch(t, file)
	if end := await(t, second.ended, "the promoted one does not end"); string(end.Result) != `{"ahead":true}` {
		t.Errorf("the promoted one: %s", end.Result)
	}
	await(t, ahead.ended, "the speculative one does not end")
	await(t, first.ended, "the first does not end")
	g.awaitUse(0, 0)
}

// TestDoorGivesTheTurn: an activation that waits at the state door does not keep the only processor from the one that it waits for.
func TestDoorGivesTheTurn(t *testing.T) {
	store := withStore(t)
	g := newRig(t, func(c *Config) { store(c); c.MaxSandboxes, c.Schedule = 2, schedule.Task })
	g.one()
	pops := action(client + `
def main(args):
    return {"got": redis("BLPOP list 0", connect("STATE"))}
`)
	_, waits := g.begin(pops, `{}`)
	g.awaitUse(1, 0)
	pushes := action(client + `
def main(args):
    return {"got": redis("RPUSH list x", connect("STATE"))}
`)
	if end := g.call(pushes, `{}`); string(end.Result) != `{"got":":1"}` {
		t.Errorf("the one that pushes: %s", end.Result)
	}
	if end := await(t, waits.ended, "the one that waits does not end"); end.Status != forerun.Success {
		t.Errorf("the one that waits: %s", end.Result)
	}
	g.awaitUse(0, 0)
}

// TestNoRoomNoSandbox: while an activation has the only processor, no more sandboxes start for the others of its action.
func TestNoRoomNoSandbox(t *testing.T) {
	g := newRig(t, under(schedule.Task))
	g.one()
	a, file := waitsFor(t)
	_, first := g.begin(a, `{}`)
	await(t, first.started, "the first does not begin")
	began := time.Now()
	_, second := g.begin(a, `{}`)
	_, third := g.begin(a, `{}`)
	time.Sleep(10 * tickEvery)
	g.mu.Lock()
	if n := g.lastSandbox; n != 1 && time.Since(began) < schedule.LongWait/2 {
		t.Errorf("%d sandboxes were started", n)
	}
	g.mu.Unlock()
	touch(t, file)
	for _, h := range []*heard{first, second, third} {
		await(t, h.ended, "one does not end")
	}
	g.awaitUse(0, 0)
}

// TestNeedsAreLearnt: a function that mostly sleeps, and says nothing, counts with less than a processor once it was executed three times.
func TestNeedsAreLearnt(t *testing.T) {
	g := newNativeRig(t, under(schedule.Auto))
	a := action("import time\ndef main(args):\n    time.sleep(args.get('for', 0.2))\n    return {}")
	for range 3 {
		g.warm(a)
	}
	r, h := g.begin(a, `{"for":600}`)
	await(t, h.started, "it does not begin")
	g.turns.mu.Lock()
	if class := g.turns.machine.Class(r.Activation); class >= schedule.Core {
		t.Errorf("it counts with %v processors", class.Processors())
	}
	g.turns.mu.Unlock()
	g.Squash(r.Activation)
	g.awaitUse(0, 0)
}
