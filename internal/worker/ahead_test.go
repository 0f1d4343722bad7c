package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/state"
)

// ahead begins a speculative run.
func (g *rig) ahead(a *forerun.Action, input string, changes ...func(*forerun.Run)) (*forerun.Run, *heard) {
	h := newHeard()
	r := &forerun.Run{
		Activation: forerun.NewActivationID(time.Now()), Action: a, Input: json.RawMessage(input), Namespace: "guest",
		Speculative: true, Bridged: g.config.Bridge != nil, Events: h,
	}
	for _, change := range changes {
		change(r)
	}
	g.Run(r)
	return r, h
}

// held is how often the first sandbox was held, less how often it was released.
func (g *rig) held() int { return int(g.maker.started()[0].held.Load()) }

func TestAheadIsHeldUntilPromoted(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	for range 2 {
		r, h := g.ahead(a, `{"path":"/x"}`)
		calls.next()
		if g.held() != 1 {
			t.Error("a speculative activation runs in a sandbox that is not held")
		}
		g.Promote(r.Activation)
		g.Promote(r.Activation)
		g.awaitHeld(0)
		calls.answer <- "yes"
		if end := g.wait(h); string(end.Result) != `{"answer":"yes"}` {
			t.Errorf("%s", end.Result)
		}
	}
	if end := g.call(a, `{}`); end.Status != forerun.Success || g.held() != 0 {
		t.Errorf("one that is not speculative: %s, held %d times", end.Result, g.held())
	}
}

func (g *rig) awaitHeld(want int) {
	g.t.Helper()
	until(g.t, func() bool { return g.held() == want }, fmt.Sprintf("the sandbox is not held %d times", want))
}

func TestAheadIsSquashedInEveryStage(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	for range 5 {
		running, first := g.ahead(a, `{"path":"/x"}`)
		waiting, second := g.ahead(a, `{"path":"/y"}`)
		calls.next()
		g.Squash(waiting.Activation)
		g.Squash(running.Activation)
		calls.nextCut()
		starting, third := g.ahead(a, `{"path":"/z"}`)
		g.Squash(starting.Activation)
		if end := g.call(a, `{}`); end.Status != forerun.Success {
			t.Errorf("after the squashed: %s", end.Result)
		}
		ended, fourth := g.ahead(a, `{}`)
		g.wait(fourth)
		g.Squash(ended.Activation)
		for _, h := range []*heard{first, second, third} {
			if len(h.ended) > 0 {
				t.Errorf("a squashed activation ended: %s", (<-h.ended).Result)
			}
		}
		for len(calls.arrived)+len(calls.cut) > 0 { // of the one that was starting
			select {
			case <-calls.arrived:
			case <-calls.cut:
			}
		}
	}
	if s := g.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", s.ColdStarts)
	}
}

// TestSquashEndsTheSandbox: where that is asked for, the next activation gets another sandbox. One that had ended took nothing along.
func TestSquashEndsTheSandbox(t *testing.T) {
	for name, ending := range map[string]bool{"a squash leaves the sandbox": false, "a squash ends the sandbox": true} {
		t.Run(name, func(t *testing.T) {
			g, calls := newCallingRig(t, single)
			a := caller("a")
			change := func(r *forerun.Run) { r.EndSandbox = ending }
			running, _ := g.ahead(a, `{"path":"/x"}`, change)
			calls.next()
			g.Squash(running.Activation)
			calls.nextCut()
			ended, h := g.ahead(a, `{}`, change)
			g.wait(h)
			g.Squash(ended.Activation)
			promoted, h := g.ahead(a, `{}`, change)
			g.Promote(promoted.Activation)
			g.wait(h)
			if end := g.call(a, `{}`); end.Status != forerun.Success {
				t.Errorf("after the squashed: %s", end.Result)
			}
			want := int64(1)
			if ending {
				want = 2
				await(t, g.maker.started()[0].Done(), "the sandbox does not end")
			}
			if s := g.Stats(); s.ColdStarts != want {
				t.Errorf("%d sandboxes were started; want %d", s.ColdStarts, want)
			}
		})
	}
}

func TestAheadWaitsBehindOthers(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	_, first := g.begin(a, `{"path":"/first"}`)
	calls.next()
	_, second := g.ahead(a, `{"path":"/ahead"}`)
	promoted, third := g.ahead(a, `{"path":"/promoted"}`)
	_, fourth := g.begin(a, `{"path":"/head"}`)
	g.Promote(promoted.Activation)
	for i, want := range []string{"/head", "/promoted", "/ahead"} {
		calls.answer <- ""
		if got := calls.next(); got != want {
			t.Errorf("%s came as number %d; want %s", got, i, want)
		}
	}
	calls.answer <- ""
	for _, h := range []*heard{first, second, third, fourth} {
		g.wait(h)
	}
}

func TestAheadMakesWay(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	for _, other := range []*forerun.Action{a, caller("b")} { // for another action there is no room
		r, ahead := g.ahead(a, `{"path":"/ahead"}`)
		calls.next()
		_, head := g.begin(other, `{}`)
		if kind := g.wanted(ahead); kind != forerun.MadeWay {
			t.Errorf("it was asked to end for %q", kind)
		}
		g.Squash(r.Activation)
		if end := g.wait(head); end.Status != forerun.Success {
			t.Errorf("%s", end.Result)
		}
		calls.nextCut()
	}
}

// TestAheadMakesWayWhereThereIsNoRoom: for one that waits for a sandbox of its pool, which is busy, too: perhaps with who waits for it.
func TestAheadMakesWayWhereThereIsNoRoom(t *testing.T) {
	g, calls := newCallingRig(t, func(c *Config) { c.MaxSandboxes = 2 })
	a := caller("a")
	_, outer := g.begin(a, `{"path":"/outer"}`)
	calls.next()
	b := caller("b")
	b.Limits.Timeout = 600_000 // else it makes way soon in any case
	r, ahead := g.ahead(b, `{"path":"/ahead"}`)
	calls.next()
	_, inner := g.begin(a, `{}`)
	g.wanted(ahead)
	g.Squash(r.Activation)
	calls.nextCut()
	if end := g.wait(inner); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
	calls.answer <- ""
	g.wait(outer)
}

// TestAheadThatLacksRoomHoldsNobodyBack: an activation in order starts if it fits, although a speculative one waits for more room than there is.
func TestAheadThatLacksRoomHoldsNobodyBack(t *testing.T) {
	g, calls := newCallingRig(t, func(c *Config) { c.MemoryMiB = 600 })
	a, large := caller("a"), caller("b")
	large.Limits.Memory = 400
	_, first := g.begin(a, `{"path":"/first"}`)
	calls.next()
	r, _ := g.ahead(large, `{}`)
	_, second := g.begin(a, `{"path":"/second"}`)
	await(t, calls.arrived, "it waits behind what runs ahead")
	g.Squash(r.Activation)
	for range 2 {
		calls.answer <- ""
	}
	g.wait(first)
	g.wait(second)
}

// TestQueueTimeBeginsWithPromotion: an activation's waiting time counts from its promotion.
func TestQueueTimeBeginsWithPromotion(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	_, first := g.begin(a, `{"path":"/first"}`)
	calls.next()
	r, second := g.ahead(a, `{}`)
	g.mu.Lock()
	g.runs[r.Activation].queued = time.Now().Add(-time.Hour)
	g.mu.Unlock()
	g.Promote(r.Activation)
	g.mu.Lock()
	g.expire(time.Now())
	g.mu.Unlock()
	calls.answer <- ""
	g.wait(first)
	if end := g.wait(second); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
}

// TestUnheard: the caller hears whether a speculative activation ended while effects of it were held.
func TestUnheard(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	for _, promoted := range []bool{false, true} {
		r, h := g.ahead(a, `{"path":"/x"}`)
		calls.next()
		g.maker.started()[0].reached.Store(true)
		if promoted {
			g.Promote(r.Activation)
		}
		calls.answer <- ""
		if end := g.wait(h); end.Unheard == promoted {
			t.Errorf("promoted: %v, unheard: %v", promoted, end.Unheard)
		}
		g.Squash(r.Activation)
	}
}

// TestTimeLimitBeginsWithPromotion: one that runs ahead outlives another of the same limit.
func TestTimeLimitBeginsWithPromotion(t *testing.T) {
	g, calls := newCallingRig(t, nil)
	a := caller("a")
	g.call(a, `{}`)
	b := *a
	b.Limits.Timeout = 3000 // in which it calls, on a busy machine too
	r, ahead := g.ahead(&b, `{"path":"/ahead"}`)
	calls.next()
	_, other := g.begin(&b, `{"path":"/other"}`)
	calls.next()
	if end := g.wait(other); !end.TimedOut {
		t.Errorf("the other has ended with %s", end.Result)
	}
	calls.nextCut()
	g.Promote(r.Activation)
	if end := g.wait(ahead); !end.TimedOut {
		t.Errorf("the time of the promoted one does not pass: %s", end.Result)
	}
	calls.nextCut()
	r, ahead = g.ahead(&b, `{"path":"/ahead"}`)
	calls.next()
	calls.answer <- "late"
	g.Promote(r.Activation)
	if end := g.wait(ahead); string(end.Result) != `{"answer":"late"}` {
		t.Errorf("%s", end.Result)
	}
}

// TestAheadForLong: a speculative function is told its deadline, counted from its launch.
func TestAheadForLong(t *testing.T) {
	g, calls := newCallingRig(t, nil)
	a := caller("a")
	a.Limits.Timeout = 1000
	r, ahead := g.ahead(a, `{"path":"/"}`)
	calls.next()
	if kind := g.wanted(ahead); kind != forerun.Overdue {
		t.Errorf("it was asked to end for %q", kind)
	}
	if got := g.Stats().Wanted; got != 1 {
		t.Errorf("it was asked %d times to end", got)
	}
	g.Squash(r.Activation)
	calls.nextCut()
	r, ahead = g.ahead(a, `{"path":"/"}`)
	calls.next()
	g.Promote(r.Activation)
	before := g.Stats().Wanted // on a busy machine it was late already
	if end := g.wait(ahead); !end.TimedOut {
		t.Errorf("it has ended with %s", end.Result)
	}
	calls.nextCut()
	if g.Stats().Wanted != before {
		t.Errorf("what is not ahead any more was asked to end")
	}
}

// TestAheadFloods: a speculative activation that sends more datagrams than the gate can hold is ended, unless it is promoted.
func TestAheadFloods(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := caller("a")
	r, ahead := g.ahead(a, `{"path":"/"}`)
	calls.next()
	p := g.maker.started()[0]
	p.flooded <- struct{}{}
	if kind := g.wanted(ahead); kind != forerun.Failed {
		t.Errorf("it was asked to end for %q", kind)
	}
	g.Squash(r.Activation)
	calls.nextCut()
	r, ahead = g.ahead(a, `{"path":"/"}`)
	calls.next()
	g.Promote(r.Activation)
	p.flooded <- struct{}{}
	p.flooded <- struct{}{} // the first was looked at
	calls.answer <- "yes"
	g.wait(ahead)
	if got := g.Stats().Wanted; got != 1 {
		t.Errorf("%d were asked to end", got)
	}
}

func TestKeptHandlerIsParked(t *testing.T) {
	g := newNativeRig(t, single)
	a := keptAction("", "answer = {'n': n}")
	run := func(want string) *forerun.Run {
		t.Helper()
		r, h := g.ahead(a, `{}`)
		if end := g.wait(h); string(end.Result) != want {
			t.Errorf("%s; want %s", end.Result, want)
		}
		return r
	}
	g.Promote(run(`{"n":1}`).Activation)
	g.expect(a, `{}`, `{"n":2}`)
	g.Squash(run(`{"n":3}`).Activation)
	g.expect(a, `{}`, `{"n":1}`)
	run(`{"n":2}`) // nobody says what becomes of it: it makes way
	g.expect(a, `{}`, `{"n":1}`)
	if s := g.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", s.ColdStarts)
	}
}

// TestHandlerParkedWhileOthersWait: an activation that waits for the sandbox arrived, and asked for it, while the handler was still running.
func TestHandlerParkedWhileOthersWait(t *testing.T) {
	g := newNativeRig(t, single)
	a := keptAction("", "time.sleep(value.get('for', 0))\nanswer = {'n': n}")
	soon(t, parkedAtMost, "its handler makes no way", func() time.Duration {
		begin := time.Now()
		_, ahead := g.ahead(a, `{"for":0.3}`)
		g.begun(ahead)
		_, head := g.begin(a, `{}`)
		g.wanted(ahead) // nobody squashes it
		if end := g.wait(ahead); string(end.Result) != `{"n":1}` {
			t.Errorf("%s", end.Result)
		}
		if end := g.wait(head); string(end.Result) != `{"n":1}` {
			t.Errorf("%s", end.Result)
		}
		return time.Since(begin)
	})
}

// connectedMaker makes sandboxes of which the first is said to be connected, as often as the number says.
type connectedMaker struct {
	sandbox.Maker
	times atomic.Int32
}

type connected struct {
	sandbox.Sandbox
	maker *connectedMaker
}

func (m *connectedMaker) Start(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	made, err := m.Maker.Start(ctx, s)
	return &connected{made, m}, err
}

func (c *connected) Hold(ctx context.Context, hosts []string) (sandbox.Held, error) {
	held, err := c.Sandbox.Hold(ctx, hosts)
	held.Connected = held.Connected || c.maker.times.Add(-1) >= 0
	return held, err
}

// awaitHeld waits until it was said as often.
func (m *connectedMaker) awaitHeld(t *testing.T) {
	t.Helper()
	until(t, func() bool { return m.times.Load() <= 0 }, "no activation runs ahead")
}

func TestConnectedProcessIsReplaced(t *testing.T) {
	maker := new(connectedMaker)
	g := newNativeRig(t, func(c *Config) { single(c); maker.Maker = c.Maker; c.Maker = maker })
	a := keptAction("", "answer = {'n': n}")
	g.expect(a, `{}`, `{"n":1}`)
	maker.times.Store(1)
	r, h := g.ahead(a, `{}`)
	if end := g.wait(h); string(end.Result) != `{"n":1}` {
		t.Errorf("a process with a connection served a speculative activation: %s", end.Result)
	}
	g.Promote(r.Activation)
	g.expect(a, `{}`, `{"n":2}`)
	maker.times.Store(2) // also the next one: it begins when it is promoted
	r, h = g.ahead(a, `{}`)
	maker.awaitHeld(t)
	g.Promote(r.Activation)
	if end := g.wait(h); string(end.Result) != `{"n":1}` {
		t.Errorf("%s", end.Result)
	}
	g.expect(a, `{}`, `{"n":2}`)
}

// TestReplacedBeforeTheFirstActivation: output of the other process while it is loaded is not in the log twice.
func TestReplacedBeforeTheFirstActivation(t *testing.T) {
	maker := new(connectedMaker)
	g := newNativeRig(t, func(c *Config) { single(c); maker.Maker = c.Maker; c.Maker = maker })
	maker.times.Store(2) // as its code is loaded, and as it is to begin
	r, h := g.ahead(counting(t, ""), `{}`)
	if end := g.wait(h); texts(end.Logs) != "stdout: loaded" {
		t.Errorf("%s with the log %q", end.Result, end.Logs)
	}
	g.Promote(r.Activation)
}

// TestConnectedProcessServesWhoseTurnComes: it is not replaced if that would take longer than until the activation's turn.
func TestConnectedProcessServesWhoseTurnComes(t *testing.T) {
	maker := new(connectedMaker)
	g := newNativeRig(t, func(c *Config) { single(c); maker.Maker = c.Maker; c.Maker = maker })
	a := keptAction("", "answer = {'n': n}")
	g.expect(a, `{}`, `{"n":1}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	standbyRig{g, a}.sandbox().replacing = time.Minute
	maker.times.Store(1)
	r, h := g.ahead(a, `{}`)
	maker.awaitHeld(t)
	g.Promote(r.Activation)
	if end := g.wait(h); string(end.Result) != `{"n":2}` {
		t.Errorf("%s; want that of the process that served before", end.Result)
	}
	maker.times.Store(1)
	r, _ = g.ahead(a, `{}`)
	maker.awaitHeld(t)
	g.Squash(r.Activation)
	g.expect(a, `{}`, `{"n":3}`)
}

// TestRehearsalNeedsPromotion: a rehearsal is never promoted. Where it could begin only then, it is given up at once.
func TestRehearsalNeedsPromotion(t *testing.T) {
	maker := new(connectedMaker)
	g := newNativeRig(t, func(c *Config) { single(c); maker.Maker = c.Maker; c.Maker = maker })
	a := keptAction("", "answer = {'n': n}")
	maker.times.Store(1 << 20)
	r, h := g.ahead(a, `{}`, func(r *forerun.Run) { r.Rehearsed = true })
	if kind := g.wanted(h); kind != forerun.Failed {
		t.Errorf("it was asked to end for %q", kind)
	}
	g.Squash(r.Activation)
	g.expect(a, `{}`, `{"n":1}`)
}

// TestListenerThatEndedRunsAhead: a process that has listened to channels, and does no more, is as any other.
func TestListenerThatEndedRunsAhead(t *testing.T) {
	store := withStore(t)
	g := newNativeRig(t, func(c *Config) { single(c); store(c) })
	a := keptAction("news = connect(6379)", "answer = {'n': n, 'said': redis(value['say'], news).split()[-1]}")
	for n, end := range []string{"UNSUBSCRIBE news", "RESET"} {
		g.expect(a, `{"say":"SUBSCRIBE news"}`, fmt.Sprintf(`{"n":%d,"said":":1"}`, 3*n+1))
		r, h := g.ahead(a, fmt.Sprintf(`{"say":%q}`, end))
		g.Promote(r.Activation)
		g.wait(h)
		r, h = g.ahead(a, `{"say":"PING"}`)
		if end, want := g.wait(h), fmt.Sprintf(`{"n":%d,"said":"+PONG"}`, 3*n+3); string(end.Result) != want {
			t.Errorf("%s; want %s; logs %q", end.Result, want, end.Logs)
		}
		g.Promote(r.Activation)
	}
}

// TestAheadWaitsWhereTheCodeCanBeWritten: code that keeps a file open for writing can leave data in its folder that the next activation finds. So
// none runs ahead there.
func TestAheadWaitsWhereTheCodeCanBeWritten(t *testing.T) {
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 }) // one is for another action
	a := action(`
const fs = require('fs')
const log = fs.openSync('/action/log', 'a')
exports.main = ({ write }) => {
  if (write) fs.writeFileSync('/action/left', '')
  return { found: fs.existsSync('/action/left') }
}`)
	a.Exec.Kind = "nodejs:default"
	if discover().Check(a.Exec.Kind) != nil {
		t.Skip("this machine does not have the language")
	}
	other := keptAction("", "answer = {'n': n}")
	g.expect(a, `{}`, `{"found":false}`)
	for n := range 3 {
		r, _ := g.ahead(a, `{"write":true}`)
		g.expect(other, `{}`, fmt.Sprintf(`{"n":%d}`, n+1))
		g.Squash(r.Activation)
		g.expect(a, `{}`, `{"found":false}`)
	}
	r, h := g.ahead(a, `{"write":true}`)
	g.Promote(r.Activation)
	if end := g.wait(h); string(end.Result) != `{"found":true}` {
		t.Errorf("%s; logs %q", end.Result, end.Logs)
	}
}

// bridge answers every command with its activation.
type bridge struct{ promoted chan struct{} }

func (bridge) Do(_ context.Context, by state.Asker, c state.Command) (state.Reply, forerun.Version, error) {
	return state.Reply{Kind: state.Bulk, Text: []byte(string(by.Activation) + " " + string(c.Args[0]))}, 0, nil
}

func (bridge) Exec(context.Context, state.Asker, string, []state.Expect, [][][]byte) ([]state.Reply, forerun.Version, error) {
	return nil, 0, nil
}

func (bridge) Versions(context.Context, state.Asker, []forerun.Key) ([]state.Expect, error) {
	return nil, nil
}

func (bridge) Notes(forerun.ActivationID) []state.Command { return nil }

func (bridge) Noted(forerun.ActivationID) {}

func (b bridge) Hold(ctx context.Context, _ state.Asker, _ *forerun.Reason, begin func()) error {
	select {
	case <-b.promoted:
		if begin != nil {
			begin()
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWhatIsNoCommandOnRecordsWaits: messages and waiting for others' changes pass the bridge by, but not before it says so.
func TestWhatIsNoCommandOnRecordsWaits(t *testing.T) {
	store := withStore(t)
	b := bridge{make(chan struct{})}
	g := newRig(t, func(c *Config) { store(c); c.MaxSandboxes, c.Bridge = 4, b })
	listener := action(client + `
def main(args):
    conn = connect("STATE")
    redis("SUBSCRIBE news", conn)
    api("/listens")
    return {"heard": conn.recv(1000).decode().split()[-1]}
`)
	calls := newCalls(t)
	g.ServeAPI(calls)
	_, hears := g.begin(listener, `{}`)
	calls.next()
	calls.answer <- ""
	speaker := action(client + "def main(args):\n  return {'reply': redis('PUBLISH news ' + args['word'])}\n")
	squashed, _ := g.ahead(speaker, `{"word":"squashed"}`)
	promoted, said := g.ahead(speaker, `{"word":"promoted"}`)
	g.Squash(squashed.Activation)
	g.Promote(promoted.Activation)
	close(b.promoted)
	if end := g.wait(said); string(end.Result) != `{"reply":":1"}` {
		t.Errorf("%s", end.Result)
	}
	if end := g.wait(hears); string(end.Result) != `{"heard":"promoted"}` {
		t.Errorf("%s", end.Result)
	}
}

func TestBridgedCommandsGoToTheBridge(t *testing.T) {
	store := withStore(t)
	g := newRig(t, func(c *Config) { single(c); store(c); c.Bridge = bridge{} })
	a := action(client + "def main(args):\n  return {'got': redis('GET k')}\n")
	r, h := g.ahead(a, `{}`)
	if end := g.wait(h); !strings.Contains(string(end.Result), string(r.Activation)+" GET") {
		t.Errorf("%s", end.Result)
	}
	if end := g.call(a, `{}`); string(end.Result) != `{"got":"$-1"}` {
		t.Errorf("an activation that is not bridged got %s", end.Result)
	}
}

// TestTimeLimitOfWhatWasGivenBack: a time limit that is over as its activation goes back into the queue is the tenure's that had it.
func TestTimeLimitOfWhatWasGivenBack(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	defer stop()
	struck, given := make(chan struct{}), newTenure("")
	b := &pooledSandbox{w: &Worker{}, stopped: stopped, language: &language{}, sandbox: &stricken{strike: func() { close(given.done); close(struck) }}}
	r := &run{Run: &forerun.Run{Action: action("")}, tenure: given}
	r.Action.Limits.Timeout = 20
	end := b.limit(r, time.Now())
	defer end()
	r.tenure = nil
	await(t, struck, "it has no time limit")
	if !given.timedOut.Load() {
		t.Error("it is not told that its time was over")
	}
}
