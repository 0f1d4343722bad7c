package worker

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/proc"
	"forerun.dev/forerun/internal/runtimewire"
	"forerun.dev/forerun/internal/sandbox"
)

// unread is the connection with a handler that nobody has read from yet.
type unread struct{ closed bool }

func (u *unread) Run(runtimewire.Run, []byte) error { return nil }
func (u *unread) Read() (runtimewire.Frame, error)  { return runtimewire.Frame{}, io.EOF }
func (u *unread) Unread(error) bool                 { return false }
func (u *unread) SetReadDeadline(time.Time) error   { return nil }

func (u *unread) Close() error {
	u.closed = true
	return nil
}

// mute is the connection with a handler of whom nothing comes, nor its end, until it is closed.
type mute struct {
	unread
	gone chan struct{}
}

func (m *mute) Read() (runtimewire.Frame, error) {
	<-m.gone
	return runtimewire.Frame{}, io.EOF
}

func (m *mute) Close() error {
	close(m.gone)
	return nil
}

func newMute() *spare {
	return &spare{conn: &mute{gone: make(chan struct{})}, ready: make(chan struct{}), exited: make(chan struct{})}
}

// TestHandlerThatNobodyTookIsClosed: a function can send its handler's end of the connection through itself, so that nobody has it but us.
func TestHandlerThatNobodyTookIsClosed(t *testing.T) {
	s := newMute()
	b := &pooledSandbox{w: &Worker{}, sandbox: new(stricken), control: controlOf(t), spares: make(chan *spare, 1), dead: make(chan struct{}), stop: func() {}, closed: make(chan struct{})}
	b.living.Go(b.listen)
	b.living.Go(s.hear)
	b.spares <- s
	go b.close()
	await(t, b.closed, "the sandbox is not closed")
}

// controlOf is the connection with an initializer that says nothing.
func controlOf(t *testing.T) *runtimewire.Conn {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	t.Cleanup(func() { _ = theirs.Close() })
	ours, err := runtimewire.FileConn(os.NewFile(uintptr(pair[0]), "control"), runtimewire.Limits{Header: 1 << 10})
	if err != nil {
		t.Fatal(err)
	}
	return ours
}

// TestInitializerThatReadsNothing: code that took the initializer's place can make handlers without hearing that they are asked for.
func TestInitializerThatReadsNothing(t *testing.T) {
	b := &pooledSandbox{control: controlOf(t), dead: make(chan struct{})}
	b.living.Go(b.listen)
	told := make(chan struct{})
	go func() {
		for range 10_000 {
			b.tell(runtimewire.TypeFork, nil)
		}
		close(told)
	}()
	await(t, told, "what it is told waits for it")
	await(t, b.dead, "its sandbox goes on")
}

// TestHandlerOfAnInitializerThatEnds: nobody waits for what it has begun.
func TestHandlerOfAnInitializerThatEnds(t *testing.T) {
	b := &pooledSandbox{w: &Worker{}, stopped: t.Context(), language: &language{}, spares: make(chan *spare), dead: make(chan struct{})}
	failed := make(chan error)
	go func() {
		_, err := b.awaitSpare(b.forkTime())
		failed <- err
	}()
	b.spares <- newMute()
	close(b.dead)
	if err := await(t, failed, "it is awaited still"); errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// stricken is a sandbox that calls a function when it is struck.
type stricken struct {
	sandbox.Sandbox
	strike func()
	closed bool
	unsent func() // what it has waiting
}

func (s *stricken) TakeHeld() func()              { return s.unsent }
func (s *stricken) Spent() (time.Duration, error) { return 0, nil }
func (s *stricken) OOMKills() (int, error)        { return 0, nil }

func (s *stricken) Strike(context.Context, ...int) error {
	s.strike()
	return nil
}

func (s *stricken) Close() error {
	s.closed = true
	return nil
}

// A handler that has ended may have answered before: on a machine that is busy nobody may have read that when what it left is
// killed. One that is killed has nothing more to say, and may take long to close its end. And if somebody has that end still when
// everything is killed, nothing more comes.
func TestKillLeavesTheAnswerOfWhoHasEnded(t *testing.T) {
	for name, c := range map[string]struct {
		ended, squashed, stays bool
		closed                 bool
	}{
		"killed":            {closed: true},
		"ended":             {ended: true},
		"ended, squashed":   {ended: true, squashed: true, closed: true},
		"ended, still open": {ended: true, stays: true, closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			stopped, stop := context.WithCancel(t.Context())
			conn, lasting := new(unread), &tenure{done: make(chan struct{})}
			made := &pooledSandbox{w: &Worker{}, stopped: stopped, language: &language{}}
			struck := &stricken{strike: func() { close(lasting.done) }}
			if c.stays {
				struck.strike = stop // for the time that is waited
			}
			defer stop()
			made.sandbox = struck
			s := &spare{conn: conn, exited: make(chan struct{})}
			if c.ended {
				close(s.exited)
			}
			lasting.over.Store(c.squashed)
			lasting.handler.Store(s)
			made.kill(lasting, nil)
			if conn.closed != c.closed || struck.closed != c.stays {
				t.Errorf("the connection is closed: %v, the sandbox: %v", conn.closed, struck.closed)
			}
		})
	}
}

// TestStoppedHandlerIsReplaced: an activation, also one that is squashed, stops the handler that is to be the next one's, which does not wait
// for that.
func TestStoppedHandlerIsReplaced(t *testing.T) {
	g := newNativeRig(t, single)
	calls := newCalls(t)
	g.ServeAPI(calls)
	a := fresh(action(strings.Replace(pythonHeader, "    EFFECT", "    pass", 1) + `
import os, signal
def state(pid):
    try:
        with open('/proc/%s/stat' % pid) as f: return f.read().rpartition(')')[2].split()[0]
    except OSError: return '' # it was killed before, and vanishes now
def main(a):
    if not a: return {}
    others = []
    while len(others) != 1 or state(others[0]) != 'S': # the next handler waits
        others = [p for p in os.listdir('/proc') if p.isdigit() and int(p) not in (1, os.getpid())]
    os.kill(int(others[0]), signal.SIGSTOP)
    while state(others[0]) != 'T': pass
    if 'ahead' in a: ready()
    return {'stopped': True}
`))
	g.expect(a, `{"stop":true}`, `{"stopped":true}`)
	g.expect(a, `{}`, `{}`)
	r, _ := g.ahead(a, `{"ahead":true}`)
	calls.next()
	g.Squash(r.Activation)
	calls.nextCut()
	g.expect(a, `{}`, `{}`)
	if s := g.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", s.ColdStarts)
	}
}

// callsAsForked is code each of whose handlers asks the API for something as it is made.
const callsAsForked = client + `
def forked():
    try: api("/forked")
    except OSError: pass
os.register_at_fork(after_in_child=forked)
`

// TestSquashedAsItsHandlerIsReplaced: nothing of an activation runs that is squashed as a handler is made in the place of one that died
// while it waited, and the sandbox stays.
func TestSquashedAsItsHandlerIsReplaced(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := keep(action(callsAsForked + `
import time
def main(args):
    if args: time.sleep(1000)
    return {}
`))
	g.call(a, `{}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	p := g.maker.started()[0]
	if err := p.killAllBut(p.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	r, _ := g.begin(a, `{"stay":true}`)
	calls.next()
	g.Squash(r.Activation)
	calls.nextCut()
	g.call(a, `{}`)
	if s := g.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", s.ColdStarts)
	}
}

// TestReplacementIsNotKilled: leftovers of a handler that ended as it got its activation are removed after a while, and the handler that is
// made in its place meanwhile, which may take longer, is not.
func TestReplacementIsNotKilled(t *testing.T) {
	for range 5 { // on a busy machine they may be removed before the other handler is asked for
		if !replacementIsKilled(t) {
			return
		}
	}
	t.Error("it was killed")
}

func replacementIsKilled(t *testing.T) bool {
	g, calls := newCallingRig(t, single)
	a := keep(action(callsAsForked + `
def main(args):
    return {"pid": os.getpid()}
`))
	g.call(a, `{}`)
	g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
	p := g.maker.started()[0]
	initializer := p.cmd.Process
	_ = initializer.Signal(syscall.SIGSTOP) // it is to tell of the end when the activation has been handed over
	if err := p.killAllBut(initializer.Pid); err != nil {
		t.Fatal(err)
	}
	_, h := g.begin(a, `{}`)
	for lasting := g.sandboxes(sandboxBusy)[0].doors.tenure; lasting().handler.Load() == nil; {
		runtime.Gosched()
	}
	_ = initializer.Signal(syscall.SIGCONT)
	calls.next()
	time.Sleep(2 * leftoverGrace)
	if len(calls.cut) > 0 {
		return true
	}
	calls.answer <- ""
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("it ended with %s", end.Result)
	}
	return false
}

// TestSandboxIsNotClosedUnderTheNext: a kill takes long, and what was to be killed has ended meanwhile, or has got another handler.
func TestSandboxIsNotClosedUnderTheNext(t *testing.T) {
	for name, meanwhile := range map[string]func(*tenure, *spare){
		"ended":    func(lasting *tenure, _ *spare) { close(lasting.done) },
		"replaced": func(_ *tenure, ended *spare) { ended.replaced = true },
	} {
		t.Run(name, func(t *testing.T) {
			for range 64 { // what is ready at once comes in any order
				stopped, stop := context.WithCancel(t.Context())
				ended, lasting := newMute(), &tenure{done: make(chan struct{})}
				close(ended.exited)
				lasting.handler.Store(ended)
				made := &pooledSandbox{w: &Worker{}, stopped: stopped, language: &language{}}
				struck := &stricken{strike: func() { meanwhile(lasting, ended); stop() }}
				made.sandbox = struck
				made.kill(lasting, ended)
				if struck.closed {
					t.Fatal("the sandbox is closed")
				}
			}
		})
	}
}

// TestWhatAnotherHandlerLeavesIsRemoved: also if what the one before it left was killed, and it alone spared.
func TestWhatAnotherHandlerLeavesIsRemoved(t *testing.T) {
	b := &pooledSandbox{w: &Worker{}, stopped: t.Context(), language: &language{}, spare: newMute()}
	another := &spare{conn: new(unread), exited: make(chan struct{})}
	b.standing.Store(another)
	b.cleared = another
	if err := b.sendAnother(&run{Run: &forerun.Run{}}, &tenure{}, runtimewire.Run{}); err != nil {
		t.Fatal(err)
	}
	if b.spare != another || b.takeCleared() != nil {
		t.Error("its activation takes the sandbox for clean")
	}
}

// TestGrowthBeginsWithTheFirstActivation: what a kept process had before counts for nothing, also if it takes the place of another.
func TestGrowthBeginsWithTheFirstActivation(t *testing.T) {
	b := &pooledSandbox{w: &Worker{}, stopped: t.Context(), language: &language{}, spare: newMute()}
	b.owner.Store(&pool{key: poolKey{keeps: true}})
	another := &spare{conn: new(unread), exited: make(chan struct{}), hostPID: os.Getpid()}
	b.standing.Store(another)
	if err := b.sendAnother(&run{Run: &forerun.Run{}}, &tenure{}, runtimewire.Run{}); err != nil {
		t.Fatal(err)
	}
	if b.spare != another || another.born <= 0 {
		t.Errorf("it had %d bytes before", another.born)
	}
}

// TestNoSurvivorOfTwoKills: the first may have hit what was being made, and is known to be ready by the second.
func TestNoSurvivorOfTwoKills(t *testing.T) {
	b := &pooledSandbox{w: &Worker{}, stopped: t.Context(), language: &language{}}
	made, lasting := newMute(), &tenure{done: make(chan struct{})}
	b.owner.Store(new(pool))
	b.upcoming.Store(made)
	b.sandbox = &stricken{strike: func() {
		if !made.isReady() {
			close(made.ready)
		}
	}}
	lasting.handler.Store(&spare{conn: new(unread), exited: make(chan struct{})})
	for range 2 {
		if _, err := b.killAll(t.Context(), lasting, nil); err != nil {
			t.Fatal(err)
		}
	}
	if b.survivor.Load() != nil || b.takeCleared() != nil {
		t.Error("a handler that may have been killed is the next one's")
	}
}

// TestDatagramsOfWhoHasEndedAreKept: datagrams of an activation that has answered are not dropped with the leftovers of its handler.
func TestDatagramsOfWhoHasEndedAreKept(t *testing.T) {
	ended, lasting := newMute(), newTenure("")
	close(ended.exited)
	lasting.handler.Store(ended)
	b, sent := &pooledSandbox{w: &Worker{}, stopped: t.Context(), language: &language{}, held: true}, false
	struck := &stricken{unsent: func() { sent = true }}
	struck.strike = func() { struck.unsent = nil }
	b.sandbox = struck
	if _, err := b.killAll(t.Context(), lasting, ended); err != nil {
		t.Fatal(err)
	}
	b.held = false // it is promoted
	(&run{tenure: lasting}).withhold(b)
	if !sent {
		t.Error("its datagrams are lost")
	}
}

// TestHandlerThatIsKilledUnread: an activation that its handler has not read has not begun, whether that is killed alone or with its sandbox.
func TestHandlerThatIsKilledUnread(t *testing.T) {
	const code = "def main(args): return {}"
	for name, c := range map[string]struct {
		action *forerun.Action
		whole  bool
	}{"alone": {action(code), false}, "with its sandbox": {action(code), true}, "kept, with its sandbox": {keep(action(code)), true}} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, single)
			g.call(c.action, `{}`)
			g.awaitStats("it is clean", func(s Stats) bool { return s.Idle == 1 })
			handler, p := g.sandboxes(sandboxIdle)[0].spare.hostPID, g.maker.started()[0]
			stop(t, handler)
			if c.whole {
				stop(t, p.cmd.Process.Pid) // or the last handler that it makes could have begun when it is killed
			}
			_, h := g.begin(c.action, `{}`)
			g.begun(h)
			if c.whole {
				p.die()
			} else {
				_ = syscall.Kill(handler, syscall.SIGKILL)
			}
			if end := g.wait(h); end.Status != forerun.Success {
				t.Errorf("it ended with %s", end.Result)
			}
			if s := g.Stats(); !c.whole && s.ColdStarts != 1 {
				t.Errorf("%d sandboxes were started", s.ColdStarts)
			}
		})
	}
}

// stop stops a process, which could still read what comes until it has noticed.
func stop(t *testing.T, pid int) {
	t.Helper()
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	until(t, func() bool {
		status, err := proc.ReadStatus(pid)
		return err == nil && strings.HasPrefix(status.Field("State"), "T")
	}, "it goes on")
}

// belated is the connection with a handler whose time is over when somebody looks, and which has said Ready by then.
type belated struct {
	unread
	looked bool
}

func (l *belated) Read() (runtimewire.Frame, error) {
	if !l.looked {
		l.looked = true
		return runtimewire.Frame{}, os.ErrDeadlineExceeded
	}
	return runtimewire.Frame{Type: runtimewire.TypeReady}, nil
}

// TestReadyThatIsHeardLate: a process that stays is not lost because nobody has looked at it in time.
func TestReadyThatIsHeardLate(t *testing.T) {
	if !(&spare{conn: new(belated)}).readyAgain() {
		t.Error("it is replaced")
	}
}
