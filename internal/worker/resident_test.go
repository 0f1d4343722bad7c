package worker

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// fresh has each activation of a Python action run in a process of its own.
func fresh(a *forerun.Action) *forerun.Action {
	a.Annotations = append(slices.Clone(a.Annotations), forerun.KeyValue{Key: freshProcess, Value: json.RawMessage("true")})
	return a
}

func TestKeeps(t *testing.T) {
	for annotations, want := range map[string]bool{
		"": true, "fresh-process=true": false, "fresh-process=false": true, "keep-process=true": true, "keep-process=false": false,
		"keep-process=true fresh-process=true": true, "state_cache=true": false, "compute_cache=true": false, "pure-function=true": false,
		"state_cache=false": true, "state_cache=true keep-process=true": true,
	} {
		a := action("")
		for pair := range strings.FieldsSeq(annotations) {
			key, value, _ := strings.Cut(pair, "=")
			a.Annotations = append(a.Annotations, forerun.KeyValue{Key: key, Value: json.RawMessage(value)})
		}
		if keeps(a) != want {
			t.Errorf("with %q a process is kept: %v", annotations, !want)
		}
	}
}

// residentRig has one sandbox, whose process has served two activations.
func newResidentRig(t *testing.T, a *forerun.Action, change func(*Config)) *rig {
	store := withStore(t)
	g := newNativeRig(t, func(c *Config) {
		single(c)
		store(c)
		if change != nil {
			change(c)
		}
	})
	for before := range 2 {
		g.expect(a, `{}`, fmt.Sprintf(`{"before":%d}`, before))
	}
	return g
}

// servesBefore is servedBefore with a connection to state that is made once.
const servesBefore = `
import json, os, signal, socket, threading, time
served, kept, conn = 0, [], None
def redis(line):
    global conn
    if conn is None: conn = socket.create_connection(("127.0.0.1", 6379))
    conn.sendall(line.encode() + b"\r\n")
    return conn.recv(1000).decode().strip()
def main(a):
    global served
    served += 1
    exec(a.get("do", ""), globals())
    if a.get("stay"): time.sleep(1000)
    return {"before": served - 1}
`

// speculate runs a speculative activation, which must find a process that has served none, and promotes it.
func (g *rig) speculate(a *forerun.Action, do string) {
	g.t.Helper()
	r, h := g.ahead(a, fmt.Sprintf(`{"do":%q}`, do))
	if end := g.wait(h); string(end.Result) != `{"before":0}` {
		g.t.Errorf("a speculative activation: %s %q", end.Result, end.Logs)
	}
	g.Promote(r.Activation)
}

// TestSpeculativeHandlerIsFresh: no speculative activation gets the process that serves the others, which serves on behind it, whether it is
// promoted or squashed.
func TestSpeculativeHandlerIsFresh(t *testing.T) {
	a := action(servesBefore)
	g := newResidentRig(t, a, nil)
	for n := 2; n < 6; n++ {
		g.speculate(a, "kept.append(1)")
		r, h := g.ahead(a, `{"stay":true}`)
		g.begun(h)
		g.Squash(r.Activation)
		r, _ = g.ahead(a, `{"stay":true}`)
		g.Squash(r.Activation)
		g.expect(a, `{"do":"assert not kept, kept"}`, fmt.Sprintf(`{"before":%d}`, n))
	}
	if s := g.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", s.ColdStarts)
	}
}

// TestResidentKeepsItsConnections: also over speculative activations, which have their own, and over squashes.
func TestResidentKeepsItsConnections(t *testing.T) {
	a := action(servesBefore)
	g := newResidentRig(t, a, nil)
	g.expect(a, `{"do":"assert redis('INCR k') == ':1'"}`, `{"before":2}`)
	for n := 3; n < 6; n++ {
		g.speculate(a, "assert conn is None; redis('GET k')")
		r, h := g.ahead(a, `{"stay":true,"do":"redis('GET k')"}`)
		g.begun(h)
		g.Squash(r.Activation)
		g.expect(a, fmt.Sprintf(`{"do":"assert conn is not None; got = redis('INCR k'); assert got == ':%d', got"}`, n-1), fmt.Sprintf(`{"before":%d}`, n))
	}
}

// TestWhatStaysInAKeptProcess: what an activation changes in its process is the next one's, and no speculative one's.
func TestWhatStaysInAKeptProcess(t *testing.T) {
	for name, c := range map[string]struct{ change, is string }{
		"environment": {"os.environ['MINE'] = 'x'", "os.environ.get('MINE') == 'x'"},
		"folder":      {"os.chdir('/')", "os.getcwd() == '/'"},
		"module":      {"json.dumps = json.loads", "json.dumps is json.loads"},
		"signal":      {"signal.signal(signal.SIGUSR1, lambda *a: kept.append(1))", "callable(signal.getsignal(signal.SIGUSR1))"},
	} {
		t.Run(name, func(t *testing.T) {
			a := action(servesBefore)
			g := newResidentRig(t, a, nil)
			g.expect(a, fmt.Sprintf(`{"do":%q}`, c.change), `{"before":2}`)
			g.speculate(a, "assert not ("+c.is+")")
			g.expect(a, fmt.Sprintf(`{"do":%q}`, "assert "+c.is), `{"before":3}`)
		})
	}
}

// TestResidentHearsNothing: neither a signal nor a request of a speculative activation comes to the process that waits beside it.
func TestResidentHearsNothing(t *testing.T) {
	a := action(servesBefore)
	g := newResidentRig(t, a, nil)
	g.expect(a, `{"do":"signal.signal(signal.SIGUSR1, lambda *a: kept.append(1))"}`, `{"before":2}`)
	g.speculate(a, `
for p in os.listdir("/proc"):
    if p.isdigit() and int(p) not in (1, os.getpid()):
        try: os.kill(int(p), signal.SIGUSR1)
        except OSError: pass`)
	g.expect(a, `{"do":"assert not kept, kept"}`, `{"before":3}`)
	g.expect(a, `{"do":"kept.append(socket.create_server(('127.0.0.1', 5000)))"}`, `{"before":4}`)
	g.speculate(a, `
try: socket.create_connection(("127.0.0.1", 5000))
except ConnectionRefusedError: pass
else: raise AssertionError("it is heard")`)
	g.expect(a, `{}`, `{"before":0}`) // a process that can be reached does not wait beside a speculative activation
}

// TestNativeThreadEndsAResident: a process with a thread that the interpreter does not know serves on, but does not wait beside others.
func TestNativeThreadEndsAResident(t *testing.T) {
	a := keep(action(servesBefore))
	g := newResidentRig(t, a, nil)
	g.expect(a, fmt.Sprintf(`{"do":%q}`, `
import ctypes
libc = ctypes.CDLL(None)
assert libc.pthread_create(ctypes.byref(ctypes.c_ulong()), None, ctypes.cast(libc.sleep, ctypes.c_void_p), ctypes.c_void_p(1000)) == 0`), `{"before":2}`)
	g.expect(a, `{}`, `{"before":3}`)
	g.speculate(a, "")
	g.expect(a, `{}`, `{"before":0}`)
}

// TestStoppedProcessIsReplaced: a speculative activation stops the process that waits beside it, or the one before stops what stands by.
func TestStoppedProcessIsReplaced(t *testing.T) {
	const stop = `
for p in os.listdir("/proc"):
    if p.isdigit() and int(p) not in (1, os.getpid()):
        try: os.kill(int(p), signal.SIGSTOP)
        except OSError: pass`
	a := action(servesBefore)
	g := newResidentRig(t, a, nil)
	g.speculate(a, stop)
	g.expect(a, `{}`, `{"before":0}`)
	g.speculate(a, "time.sleep(0.01)")
	g.speculate(a, "time.sleep(0.01)") // another stands by now
	g.expect(a, fmt.Sprintf(`{"do":%q}`, stop), `{"before":1}`)
	g.speculate(a, "")
	r, h := g.ahead(a, fmt.Sprintf(`{"stay":true,"do":%q}`, stop))
	g.begun(h)
	g.Squash(r.Activation)
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
	if s := g.Stats(); s.ColdStarts != 1 {
		t.Errorf("%d sandboxes were started", s.ColdStarts)
	}
}

// TestKeptProcessIsRenewed: after many activations, and when its memory has grown much, before it has none.
func TestKeptProcessIsRenewed(t *testing.T) {
	g := newNativeRig(t, func(c *Config) { single(c); c.KeptRuns = 3 })
	a := action(servesBefore)
	for n := range 7 {
		g.expect(a, `{}`, fmt.Sprintf(`{"before":%d}`, n%3))
	}
	leaks := newNativeRig(t, single)
	renewed := 0
	for range 20 {
		end := leaks.call(a, `{"do":"kept.append(b'x' * (30 << 20))"}`)
		if end.Status != forerun.Success {
			t.Fatalf("%s %q", end.Result, end.Logs)
		}
		if string(end.Result) == `{"before":0}` {
			renewed++
		}
	}
	if renewed < 2 || renewed == 20 {
		t.Errorf("a process that leaks was the first of its activations %d times of 20", renewed)
	}
}

// TestMemoryBesideAResident: what a kept process has is not taken from a speculative activation. Where there is no room for both, the process
// ends.
func TestMemoryBesideAResident(t *testing.T) {
	for name, c := range map[string]struct{ memory, before int }{"room": {16 << 10, 3}, "no room": {256, 0}} {
		t.Run(name, func(t *testing.T) {
			a := action(servesBefore)
			g := newResidentRig(t, a, func(config *Config) { config.MemoryMiB = c.memory })
			g.expect(a, `{"do":"kept.append(b'x' * (100 << 20))"}`, `{"before":2}`)
			g.speculate(a, "len(b'x' * (200 << 20))")
			g.expect(a, `{}`, fmt.Sprintf(`{"before":%d}`, c.before))
		})
	}
}

// TestManyBigKeptProcesses: those that are idle make room for others.
func TestManyBigKeptProcesses(t *testing.T) {
	const room = 640
	g := newNativeRig(t, func(c *Config) { c.MemoryMiB = room })
	for n := range 8 {
		a := action(servesBefore + fmt.Sprintf("# %d", n))
		g.expect(a, `{"do":"kept.append(b'x' * (90 << 20))"}`, `{"before":0}`)
		if s := g.Stats(); s.MemoryMiB > room {
			t.Errorf("%d MiB are in use", s.MemoryMiB)
		}
	}
	if s := g.Stats(); s.Evicted == 0 {
		t.Errorf("none made room: %+v", s)
	}
}
