package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// telling is a function whose code tells the outside when it is loaded, and waits until it has.
func telling(o *outside, word string) *forerun.Action {
	return action(fmt.Sprintf(`
import socket
with socket.create_connection((%q, %d)) as told: told.sendall(%q.encode())
def main(args): return {}
`, o.host, o.TCP(word), word))
}

// TestLoadedForWhatRunsAhead: effects of code that is loaded for a speculative activation happen when an activation's turn comes, or when an activation
// comes whose turn it is; and never if nobody does.
func TestLoadedForWhatRunsAhead(t *testing.T) {
	for name, loading := range map[string]func(o *outside) *forerun.Action{
		"a connection": func(o *outside) *forerun.Action { return telling(o, "loaded") },
		"a datagram": func(o *outside) *forerun.Action {
			return action(fmt.Sprintf("import socket\nsocket.socket(type=socket.SOCK_DGRAM).sendto(b'loaded', (%q, %d))\ndef main(args): return {}", o.host, o.UDP))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			maker := &keepingMaker{made: make(chan sandbox.Sandbox, 2)}
			g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 1, c.Maker, maker })
			a := loading(o)
			for _, promoted := range []bool{true, false} {
				b := *a
				b.Limits.Timeout += len(fmt.Sprint(promoted)) // another action, so another sandbox
				r, h := g.ahead(&b, `{}`)
				await(t, await(t, maker.made, "no sandbox is made").Done(), "its sandbox goes on")
				if !promoted {
					g.Squash(r.Activation)
				}
				if n := o.reached("loaded"); n > 0 {
					t.Errorf("it has reached the outside %d times ahead of its turn", n)
				}
				if promoted {
					g.Promote(r.Activation)
				} else {
					_, h = g.begin(&b, `{}`)
				}
				await(t, maker.made, "no other sandbox is made")
				if end := g.wait(h); end.Status != forerun.Success {
					t.Errorf("promoted: %v: %s %q", promoted, end.Result, end.Logs)
				}
				until(t, func() bool { return o.reached("loaded") == 1 }, "it has not reached the outside once")
			}
		})
	}
}

// TestGivesUpAsItIsLoaded: code that does not wait for the outside for long never finds that it had to: it would have been answered in its turn.
func TestGivesUpAsItIsLoaded(t *testing.T) {
	const code = `
import os, socket, threading, time
up = None
t = threading.Thread(target=lambda: socket.create_connection((%q, %d)).close())
def ask():
    global up
    t.start()
    t.join(0.3)
    up = not t.is_alive()
%s
def main(args): return {'up': up}
`
	for name, uses := range map[string]string{
		"goes on":                  "ask()",
		"fails":                    "ask()\nassert up",
		"is asked as it is forked": "os.register_at_fork(before=lambda: up is None and ask())",
		"is asked later":           "threading.Timer(0.1, ask).start()\nos.register_at_fork(before=lambda: time.sleep(0.2))",
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 1 })
			a := action(fmt.Sprintf(code, o.host, o.TCP("asked"), uses))
			r, h := g.ahead(a, `{}`)
			time.Sleep(time.Second) // for long enough
			g.Promote(r.Activation)
			if end := g.wait(h); string(end.Result) != `{"up":true}` {
				t.Errorf("%s %q", end.Result, end.Logs)
			}
		})
	}
}

// TestTooEarlyGoesOutOnce: data that code sends while it is loaded for a speculative activation goes out once: from the sandbox that the activation gets in its turn.
func TestTooEarlyGoesOutOnce(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 2)}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 1, c.Maker, maker })
	a := action(fmt.Sprintf(`
import socket, threading, time
threading.Timer(0.2, lambda: socket.create_connection((%q, %d)).sendall(b'late')).start()
def main(args):
    time.sleep(0.4)
    return {}`, o.host, o.TCP("late")))
	r, h := g.ahead(a, `{}`) // which waits, as there is a thread
	awaitReached(t, await(t, maker.made, "no sandbox is made"))
	g.Promote(r.Activation)
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
	if n := o.reached("late"); n != 1 {
		t.Errorf("it has reached the outside %d times", n)
	}
}

// TestDiesAsItIsLoadedAhead: a sandbox that dies as it loads code ahead is replaced, as it may have died of something else; if that happens time
// after time the code is loaded in turn.
func TestDiesAsItIsLoadedAhead(t *testing.T) {
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 10)}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 1, c.Maker, maker })
	r, h := g.ahead(action("import os\nos._exit(1)"), `{}`)
	for range maxForks {
		await(t, maker.made, "no other sandbox is made")
	}
	g.awaitStats("it is over", func(s Stats) bool { return s.Starting == 0 })
	if n := len(maker.made); n > 0 {
		t.Errorf("%d more sandboxes were made", n)
	}
	g.Promote(r.Activation)
	if end := g.wait(h); end.Status != forerun.DeveloperError {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
}

// TestLoadMakesWay: code that reaches for the outside as it is loaded ahead keeps no room from somebody whose turn it is.
func TestLoadMakesWay(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 4)}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 1, c.Maker, maker })
	r, h := g.ahead(telling(o, "loaded"), `{}`)
	awaitReached(t, await(t, maker.made, "no sandbox is made"))
	g.call(action("def main(args): return {}\n"), `{}`)
	if n := o.reached("loaded"); n > 0 {
		t.Errorf("it has reached the outside %d times ahead of its turn", n)
	}
	g.Promote(r.Activation)
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
}

// TestNodeLoadedForWhatRunsAhead: in Node what the code does as its first connection stands is a part of loading, too.
func TestNodeLoadedForWhatRunsAhead(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 2)}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 1, c.Maker, maker })
	a := action(fmt.Sprintf(`
const net = require('net')
const { hostname, port } = new URL(process.env.REDIS_URL)
const state = net.connect(port, hostname, () => {
  state.end()
  const told = net.connect(%d, %q, () => told.end('loaded'))
})
exports.main = () => ({})`, o.TCP("loaded"), o.host))
	a.Exec.Kind = "nodejs:default"
	if discover().Check(a.Exec.Kind) != nil {
		t.Skip("this machine does not have the language")
	}
	r, h := g.ahead(a, `{}`)
	awaitReached(t, await(t, maker.made, "no sandbox is made"))
	if n := o.reached("loaded"); n > 0 {
		t.Errorf("it has reached the outside %d times ahead of its turn", n)
	}
	g.Promote(r.Activation)
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
	if n := o.reached("loaded"); n != 1 {
		t.Errorf("it has reached the outside %d times", n)
	}
}

// keepingMaker keeps the sandboxes that it made.
type keepingMaker struct {
	sandbox.Maker
	made chan sandbox.Sandbox
}

func (m *keepingMaker) Start(ctx context.Context, s sandbox.Spec) (sandbox.Sandbox, error) {
	made, err := m.Maker.Start(ctx, s)
	if err == nil {
		m.made <- made
	}
	return made, err
}

// awaitReached waits until something that processes of a sandbox send waits.
func awaitReached(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	until(t, s.Reached, "nothing waits")
}

// TestLoadedForWhatWasSquashed: a kept process that was loaded for a squashed activation alone sends nothing by itself, also where
// a second process is wanted. Whose turn comes next gets another.
func TestLoadedForWhatWasSquashed(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 2)}
	g := newNativeRig(t, func(c *Config) { single(c); maker.Maker, c.Maker = c.Maker, maker })
	a := keptAction(fmt.Sprintf(`
import threading
threading.Timer(0.2, lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b'later\n', (%q, %d))).start()`, o.host, o.UDP), "answer = {}")
	r, _ := g.ahead(a, `{}`)
	made := await(t, maker.made, "no sandbox is made")
	g.Squash(r.Activation)
	g.mu.Lock()
	for _, p := range g.pools {
		p.squashes = true // as others of its activations were
	}
	g.mu.Unlock()
	g.awaitStats("it is idle", func(s Stats) bool { return s.Idle == 1 })
	until(t, func() bool { return sandboxtest.Waiting(t, made) > 0 }, "nothing waits")
	time.Sleep(4 * settleAfter)
	if n := o.reached("later"); n > 0 {
		t.Errorf("it has reached the outside %d times for what was squashed", n)
	}
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
	await(t, maker.made, "it has the sandbox of what was squashed")
	until(t, func() bool { return o.reached("later") == 1 }, "it has not reached the outside in its turn")
}

// TestReplacedConnectsAsItIsLoaded: a process that is loaded in the place of one that was squashed need not wait for a turn to connect.
func TestReplacedConnectsAsItIsLoaded(t *testing.T) {
	o := newOutside(t)
	a := counting(t, fmt.Sprintf(`
import net from "net"
await new Promise(resolve => net.connect(%d, %q, function () { this.end(); resolve() }))`, o.TCP("loaded"), o.host))
	a.Exec.Code = strings.Replace(a.Exec.Code, "exports.main =", "export const main =", 1)
	newStandbyRig(t, a).expectCount(2, 0)
}
