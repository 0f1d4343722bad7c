package worker

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// telling is a function whose code tells the outside when it is loaded, and waits until it has.
func telling(o *outside, word string) *forerun.Action {
	return action(fmt.Sprintf(`
import socket
with socket.create_connection((%q, %d)) as told: told.sendall(%q.encode())
def main(args): return {}
`, o.host, o.TCP(word), word))
}

// TestLoadedForWhatRunsAhead: what code does as it is loaded for nobody but what runs ahead waits, whatever that takes, until it is the
// turn of one, or somebody comes whose turn it is; and is not done if nobody does.
func TestLoadedForWhatRunsAhead(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 2)}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 2, c.Maker, maker })
	a := telling(o, "loaded")
	a.Limits.Timeout = 1000
	for _, promoted := range []bool{true, false} {
		b := *a
		b.Version = fmt.Sprint(promoted)
		b.Limits.Timeout += len(b.Version) // another action, so another sandbox
		r, h := g.ahead(&b, `{}`)
		awaitReached(t, await(t, maker.made, "no sandbox is made"))
		time.Sleep(1100 * time.Millisecond) // longer than its limit
		if n := o.reached("loaded"); n > 0 {
			t.Errorf("it has reached the outside %d times ahead of its turn", n)
		}
		if promoted {
			g.Promote(r.Activation)
		} else {
			g.Squash(r.Activation)
			if n := o.reached("loaded"); n > 0 {
				t.Errorf("it has reached the outside %d times for what was squashed", n)
			}
			_, h = g.begin(&b, `{}`)
		}
		if end := g.wait(h); end.Status != forerun.Success {
			t.Errorf("promoted: %v: %s %q", promoted, end.Result, end.Logs)
		}
		if n := o.reached("loaded"); n != 1 {
			t.Errorf("promoted: %v: it has reached the outside %d times", promoted, n)
		}
	}
}

// TestNodeLoadedForWhatRunsAhead: in Node what the code does as its first connection stands is a part of loading, too.
func TestNodeLoadedForWhatRunsAhead(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 1)}
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
	box, err := m.Maker.Start(ctx, s)
	if err == nil {
		m.made <- box
	}
	return box, err
}

// awaitReached waits until something that processes of a sandbox send waits.
func awaitReached(t *testing.T, s sandbox.Sandbox) {
	t.Helper()
	until(t, s.Reached, "nothing waits")
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
