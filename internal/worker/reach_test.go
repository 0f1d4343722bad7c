package worker

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// bridged runs an action to its end, which tells how far it reached.
func (g *rig) bridged(a *forerun.Action, input string) forerun.RunEnd {
	g.t.Helper()
	h := newHeard()
	g.Run(&forerun.Run{Activation: forerun.NewActivationID(time.Now()), Action: a, Input: json.RawMessage(input), Namespace: "guest", Bridged: true, Events: h})
	return g.wait(h)
}

// mustReach runs an action and holds how far it reached to what is expected.
func (g *rig) mustReach(want forerun.Reach, what string, a *forerun.Action, input string) {
	g.t.Helper()
	if end := g.bridged(a, input); end.Reach != want || end.Status != forerun.Success {
		g.t.Errorf("%s reached %d, not %d: %s, logs %q", what, end.Reach, want, end.Result, end.Logs)
	}
}

// reaches has the matrix's action tell that it has reached the outside.
func (m *matrix) reaches() {
	m.t.Helper()
	h := newHeard()
	m.Run(&forerun.Run{
		Activation: forerun.NewActivationID(time.Now()), Action: m.a, Input: json.RawMessage(m.o.input("reached")), Namespace: "guest",
		Token: "uuid:secret", Bridged: true, Events: h,
	})
	m.calls.next()
	m.calls.answer <- "go"
	if end := m.wait(h); end.Reach != forerun.Outside {
		m.t.Errorf("it has told the outside a word, and is said to have reached %d", end.Reach)
	}
	m.o.reached("reached")
}

// TestReachOfQuietFunctions: a function that stays inside is told to have done so, in every language, each time that it runs.
func TestReachOfQuietFunctions(t *testing.T) {
	quiet := map[string]*forerun.Action{
		"Python": fresh(action("def main(a): return {}")), "kept Python": keep(action("def main(a): return {}")), "native": keptAction("", ""),
		"Node": inNode("Promise.resolve('')"),
	}
	quiet["Node"].Exec.Code = "function main() { return {} }"
	g := newNativeRig(t, nil)
	for name, a := range quiet {
		if discover().Check(a.Exec.Kind) != nil {
			continue
		}
		a.Name.Entity = "quiet" + strconv.Itoa(len(name))
		for range 3 {
			g.mustReach(forerun.Inside, name, a, `{}`)
		}
	}
}

// rehearse runs an action speculatively in a process that is to have served no other, and squashes it. It reports whether the process may have served one.
func (g *rig) rehearse(a *forerun.Action) bool {
	g.t.Helper()
	r, h := g.ahead(a, `{}`, func(r *forerun.Run) { r.Bridged, r.Fresh = true, true })
	end := g.wait(h)
	g.Squash(r.Activation)
	return end.Remembers
}

// TestUsedProcesses: the end of a run tells whether its process may remember earlier ones, in every language. A process that is forked for each
// activation, or for a speculative one, does not.
func TestUsedProcesses(t *testing.T) {
	inNode := inNode("Promise.resolve('')")
	inNode.Exec.Code = "function main() { return {} }"
	g := newNativeRig(t, single)
	for name, c := range map[string]struct {
		a         *forerun.Action
		atOnce    bool // the first activation may have remembered something
		remembers bool // the next ones may have
	}{
		"Python":       {action("def main(a): return {}"), false, true},
		"fresh Python": {fresh(action("def main(a): return {}")), false, false},
		"Python with a thread": {
			fresh(action("import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\ndef main(a): return {}")), true, true,
		},
		"Python with shared memory": {fresh(action("import mmap\nm = mmap.mmap(-1, 4096)\ndef main(a): return {}")), true, true},
		"native":                    {keptAction("", ""), false, true},
		"Node":                      {inNode, false, true},
	} {
		if discover().Check(c.a.Exec.Kind) != nil {
			continue
		}
		c.a.Name.Entity = "used" + strconv.Itoa(len(name))
		ends := []forerun.RunEnd{g.bridged(c.a, `{}`), g.bridged(c.a, `{}`)}
		for n := 0; c.remembers && !ends[1].Remembers && n < 20; n++ { // the machine was busy, and the process was replaced
			ends[1] = g.bridged(c.a, `{}`)
		}
		if !c.atOnce && g.rehearse(c.a) {
			t.Errorf("%s: a process that is to be new may remember earlier activations", name)
		}
		if ends[0].Remembers != c.atOnce || ends[1].Remembers != c.remembers {
			t.Errorf("%s: its processes may remember: %v, %v", name, ends[0].Remembers, ends[1].Remembers)
		}
	}
}

// TestReachOfAttempts: a refused connection counts, and one that fails.
func TestReachOfAttempts(t *testing.T) {
	g := newNativeRig(t, nil)
	for i, to := range []string{"'10.0.0.1', 80", "'192.0.2.1', 9"} {
		a := action(fmt.Sprintf("import socket\ndef main(a):\n    s = socket.socket(); s.settimeout(0.01); return {'failed': s.connect_ex((%s)) != 0}", to))
		a.Name.Entity += strconv.Itoa(i)
		g.mustReach(forerun.Outside, to, a, `{}`)
	}
}

// TestReachOfLoading: requests of the code while it is loaded count for each of its activations.
func TestReachOfLoading(t *testing.T) {
	const connect = "s = socket.socket(); s.settimeout(0.01); s.connect_ex(('10.0.0.1', 80))"
	g := newNativeRig(t, nil)
	for name, a := range map[string]*forerun.Action{
		"Python":      fresh(action("import socket\n" + connect + "\ndef main(a): return {}")),
		"kept Python": keep(action("import socket\n" + connect + "\ndef main(a): return {}")),
		"native":      keptAction("import socket\n"+connect, ""),
		"a fork":      action("import os, socket\ndef after():\n    " + connect + "\nos.register_at_fork(after_in_child=after)\ndef main(a): return {}"),
	} {
		a.Name.Entity = "loading" + strconv.Itoa(len(name))
		for range 3 {
			g.mustReach(forerun.Outside, name, a, `{}`)
		}
	}
}

// TestReachOfLaunchedLoading: a process that a launcher makes loads its code before the worker asks for it. Its requests then always count.
func TestReachOfLaunchedLoading(t *testing.T) {
	node := inNode("Promise.resolve('')")
	node.Exec.Code = "require('net').connect(80, '10.0.0.1').on('error', () => {}); function main() { return {} }"
	kinds := map[string]*forerun.Action{"Node": node, "native": keptAction("import socket\ns = socket.socket(); s.settimeout(0.01); s.connect_ex(('10.0.0.1', 80))", "")}
	g := newNativeRig(t, nil)
	for name, a := range kinds {
		if discover().Check(a.Exec.Kind) != nil {
			continue
		}
		for n := range 2 { // the process may be faster than the worker, or slower
			again := *a
			again.Name.Entity = fmt.Sprint("launched", len(name), n)
			g.mustReach(forerun.Outside, name, &again, `{}`)
		}
	}
}

// TestReachOfKeptConnections: an activation may send on a connection that an earlier one of its process has left open, which is not seen.
func TestReachOfKeptConnections(t *testing.T) {
	o := newOutside(t)
	const body = "\ndef main(a):\n    if a.get('connect'): kept.append(socket.create_connection((a['host'], a['tcp'])))\n    return {}"
	g := newNativeRig(t, single)
	a := keep(action("import socket\nkept = []" + body))
	input := fmt.Sprintf(`{"connect":true,"host":%q,"tcp":%d}`, o.host, o.TCP("kept"))
	g.mustReach(forerun.Inside, "the first", a, `{}`)
	g.mustReach(forerun.Outside, "the one that connects", a, input)
	g.mustReach(forerun.Outside, "the one behind it", a, `{}`)
}

// TestReachOfReadHosts: an action that reaches no hosts but those that it only reads from is told apart, in order and speculatively.
func TestReachOfReadHosts(t *testing.T) {
	o := newOutside(t)
	g := newNativeRig(t, single)
	a := action("import socket\ndef main(a):\n    socket.create_connection((a['host'], a['port'])).close()\n    return {}")
	hosts, err := json.Marshal([]string{net.JoinHostPort(o.host, strconv.Itoa(o.TCP("read")))})
	if err != nil {
		t.Fatal(err)
	}
	a.Annotations = []forerun.KeyValue{{Key: readHosts, Value: hosts}}
	input := fmt.Sprintf(`{"host":%q,"port":%d}`, o.host, o.TCP("read"))
	g.mustReach(forerun.ReadHosts, "a read", a, input)
	r, h := g.ahead(a, input, func(r *forerun.Run) { r.Bridged = true })
	if end := g.wait(h); end.Reach != forerun.ReadHosts {
		t.Errorf("a speculative read reached %d", end.Reach)
	}
	g.Promote(r.Activation)
	g.mustReach(forerun.Outside, "another port", a, fmt.Sprintf(`{"host":%q,"port":%d}`, o.host, o.TCP("other")))
}
