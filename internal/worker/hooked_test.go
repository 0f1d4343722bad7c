package worker

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// hooked makes sandboxes that call functions as the worker asks them for something, if there are such. They are set while nothing runs.
type hooked struct {
	sandbox.Maker
	hold    func() error
	release func()
	refused func()
	empty   func() // all handlers are killed
}

type hookedSandbox struct {
	sandbox.Sandbox
	maker *hooked
}

func (m *hooked) Start(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	made, err := m.Maker.Start(ctx, s)
	if err != nil {
		return nil, err
	}
	return &hookedSandbox{made, m}, nil
}

func (b *hookedSandbox) Hold(ctx context.Context, hosts []string) (sandbox.Held, error) {
	if b.maker.hold != nil {
		if err := b.maker.hold(); err != nil {
			return sandbox.Held{}, err
		}
	}
	return b.Sandbox.Hold(ctx, hosts)
}

func (b *hookedSandbox) Release(ctx context.Context) (time.Duration, error) {
	if b.maker.release != nil {
		b.maker.release()
	}
	return b.Sandbox.Release(ctx)
}

func (b *hookedSandbox) Refused() []string {
	sentences := b.Sandbox.Refused()
	if b.maker.refused != nil {
		b.maker.refused()
	}
	return sentences
}

func (b *hookedSandbox) Reset(ctx context.Context, keep ...int) (killed int, err error) {
	if b.maker.empty != nil && len(keep) == 0 {
		b.maker.empty()
	}
	return b.Sandbox.Reset(ctx, keep...)
}

// hook has a rig's sandboxes be such.
func hook(m *hooked) func(*Config) {
	return func(c *Config) {
		single(c)
		m.Maker, c.Maker = c.Maker, m
	}
}

// TestSquashedAsItEnds: the process of an activation that is squashed when it cannot be killed any more remembers it, and serves no other.
func TestSquashedAsItEnds(t *testing.T) {
	maker := new(hooked)
	g := newRig(t, hook(maker))
	a := action(servedBefore)
	g.expect(a, `{}`, `{"before":0,"env":true}`)
	g.expect(a, `{}`, `{"before":1,"env":true}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	_, h := g.ahead(a, `{}`, func(r *forerun.Run) {
		maker.refused = func() { // its log is taken
			maker.refused = nil
			g.Squash(r.Activation)
		}
	})
	g.expect(a, `{}`, `{"before":2,"env":true}`)
	if len(h.ended) > 0 {
		t.Error("a squashed activation has ended")
	}
}

// TestSquashedAsItBegins: the handler that it was not sent to has nothing to say, and nobody waits for that.
func TestSquashedAsItBegins(t *testing.T) {
	maker := new(hooked)
	g := newRig(t, hook(maker))
	a := action("def main(args): return {}")
	_, ahead := g.ahead(a, `{}`)
	g.wait(ahead)
	g.awaitStats("it is clean, and held", func(s Stats) bool { return s.Idle == 1 })
	late := make(chan *pooledSandbox, 1)
	var id forerun.ActivationID
	maker.release = func() {
		maker.release = nil
		g.mu.Lock()
		b := g.runs[id].sandbox
		g.mu.Unlock()
		b.reseting.Lock() // its kill comes late
		g.Squash(id)
		late <- b
	}
	r := &forerun.Run{Activation: forerun.NewActivationID(time.Now()), Action: a, Input: []byte(`{}`), Namespace: "guest", Events: newHeard()}
	id = r.Activation
	g.Run(r)
	b := await(t, late, "it does not begin")
	killLate := sync.OnceFunc(b.reseting.Unlock)
	defer killLate()
	g.mu.Lock()
	lasting := b.current.tenure
	g.mu.Unlock()
	await(t, lasting.done, "it does not end")
	killLate()
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Errorf("the next activation: %s", end.Result)
	}
}

// TestSquashedBeforeItHasAHandler: where the process of the activation before is replaced first, however long that takes, the new one
// is not killed, and the sandbox not closed: the next activation has both.
func TestSquashedBeforeItHasAHandler(t *testing.T) {
	hooks, connections := new(hooked), new(connectedMaker)
	g := newNativeRig(t, func(c *Config) {
		hook(hooks)(c)
		connections.Maker, c.Maker = c.Maker, connections
	})
	a := keptAction("", "answer = {'n': n}")
	g.expect(a, `{}`, `{"n":1}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	connections.times.Store(1)
	ids := make(chan forerun.ActivationID, 1)
	hooks.release = func() { // as the process is replaced
		hooks.release = nil
		id := <-ids
		g.mu.Lock()
		b, begun := g.runs[id].sandbox, g.runs[id].tenure
		g.mu.Unlock()
		g.Squash(id)
		b.kill(begun, nil)
	}
	r, h := g.ahead(a, `{}`)
	ids <- r.Activation
	g.expect(a, `{}`, `{"n":1}`)
	if stats := g.Stats(); stats.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started for one action", stats.ColdStarts)
	}
	if len(h.ended) > 0 {
		t.Error("a squashed activation has ended")
	}
}

// TestSandboxThatDiesBeforeItsActivation: an activation that did not begin as its sandbox had died gets another.
func TestSandboxThatDiesBeforeItsActivation(t *testing.T) {
	maker := new(hooked)
	g := newRig(t, hook(maker))
	maker.hold = func() error { // as its code is loaded
		maker.hold = func() error {
			maker.hold = nil
			return errExited
		}
		return nil
	}
	_, h := g.ahead(action("def main(args): return {}"), `{}`)
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("%s", end.Result)
	}
}

// TestRefusalsOfWhatIsLeft: refusals to a process that an activation left behind are not in the log of the next activation.
func TestRefusalsOfWhatIsLeft(t *testing.T) {
	maker := new(hooked)
	g := newRig(t, hook(maker))
	a := action("def main(args): return {}")
	g.call(a, `{}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	maker.refused = func() { // its log is taken
		maker.refused = nil
		g.maker.started()[0].refused <- "192.0.2.1:80 may not be reached"
	}
	for range 2 {
		if end := g.call(a, `{}`); len(end.Logs) > 0 {
			t.Errorf("%q", end.Logs)
		}
	}
}

// TestHandlerThatIsKilledAsItComes: one that is killed with all others, as it has come too late, is not the next activation's.
func TestHandlerThatIsKilledAsItComes(t *testing.T) {
	maker := new(hooked)
	g := newRig(t, hook(maker))
	a := keep(action("def main(args): return {}"))
	g.call(a, `{}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	b, initializer := g.sandboxes(sandboxIdle)[0], g.maker.started()[0].cmd.Process
	first := b.spare
	came := make(chan struct{})
	maker.empty = func() {
		maker.empty = nil
		defer close(came)
		_ = initializer.Signal(syscall.SIGCONT)
		for s := b.upcoming.Load(); s == first || !s.isReady(); s = b.upcoming.Load() {
			runtime.Gosched()
		}
	}
	if _, err := b.shut(a); err != nil { // the sandbox is idle: its fields are ours
		t.Fatal(err)
	}
	if s := b.takeOver(); s != nil {
		s.discard()
	}
	_ = initializer.Signal(syscall.SIGSTOP)
	first.killed.Store(true)
	if !b.clean() {
		t.Error("the sandbox is given up")
	}
	await(t, came, "no handler comes late")
	if over(b.spare.hostPID) {
		t.Error("the next activation would get a process that was killed")
	}
}
