package worker

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
	"forerun.dev/forerun/internal/state"
)

// loop is a native program: BODY sets answer for the value that came, as the n-th.
const loop = `#!/usr/bin/python3
import json, os, socket, sys, time

def connect(port):
    return socket.create_connection(("127.0.0.1", port))

def redis(line, conn):
    conn.sendall(line.encode() + b"\r\n")
    return conn.recv(1000).decode().strip()

def api(conn):
    conn.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return conn.recv(1000).decode().split("\r\n\r\n")[1]

LOADING
n, out = 0, os.fdopen(3, "w")
for line in sys.stdin:
    value, n, answer = json.loads(line)["value"], n + 1, {}
    BODY
    print(json.dumps(answer), file=out, flush=True)
`

// keptAction is a native action, whose process serves several activations.
func keptAction(loading, body string) *forerun.Action {
	a := action("")
	text := strings.NewReplacer("LOADING", loading, "    BODY", "    "+strings.ReplaceAll(body, "\n", "\n    ")).Replace(loop)
	a.Exec = forerun.Exec{Kind: "native", Code: base64.StdEncoding.EncodeToString([]byte(text)), Binary: true}
	return a
}

// expect runs an action to its end, which must be this result.
func (g *rig) expect(a *forerun.Action, input, result string) {
	g.t.Helper()
	if end := g.call(a, input); string(end.Result) != result {
		g.t.Errorf("%s; want %s; logs %q", end.Result, result, end.Logs)
	}
}

func TestKeptHandlerServesOn(t *testing.T) {
	g := newNativeRig(t, single)
	a := keptAction("", "answer = {'n': n}\nif value.get('exit'): sys.exit(3)\nif value.get('hang'): time.sleep(100)")
	for n := 1; n <= 3; n++ {
		g.expect(a, `{}`, fmt.Sprintf(`{"n":%d}`, n))
	}
	g.expect(a, `{"exit":true}`, `{"error":"The action exited unexpectedly with status 3: it must return a dictionary."}`)
	g.expect(a, `{}`, `{"n":1}`)
	a.Limits.Timeout = 12000 // another action, so another sandbox
	b := *a
	g.expect(&b, `{"hang":true}`, `{"error":"The action exceeded its time limits of 12000 milliseconds."}`)
	g.expect(&b, `{}`, `{"n":1}`)
	if stats := g.Stats(); stats.ColdStarts != 2 {
		t.Errorf("%d sandboxes were started for two actions", stats.ColdStarts)
	}
}

// TestKeptHandlerThatLeavesAfterItsAnswer: a run that was sent to it then is not lost, but goes to the next handler, once.
func TestKeptHandlerThatLeavesAfterItsAnswer(t *testing.T) {
	g := newNativeRig(t, single)
	a := keptAction("import select", "answer = {'n': n}\nif n == 2:\n  print(json.dumps(answer), file=out, flush=True)\n  select.select([0], [], [])\n  os._exit(0)")
	for range 3 {
		g.expect(a, `{}`, `{"n":1}`)
		g.expect(a, `{}`, `{"n":2}`)
	}
	first := keptAction("import select\nselect.select([0], [], [])\nsys.exit(4)", "")
	g.expect(first, `{}`, `{"error":"The action's process ended with status 4 before it read the input. See the logs for details."}`)
	if stats := g.Stats(); stats.ColdStarts != 2 {
		t.Errorf("%d sandboxes were started for two actions", stats.ColdStarts)
	}
}

func TestKeptHandlerThatIsSquashed(t *testing.T) {
	g := newNativeRig(t, single)
	calls := newCalls(t)
	g.ServeAPI(calls)
	a := keptAction("", "answer = {'n': n}\nif value.get('call'): api(connect(3233))")
	g.expect(a, `{}`, `{"n":1}`)
	for range 3 {
		r, h := g.begin(a, `{"call":true}`)
		calls.next()
		g.Squash(r.Activation)
		calls.nextCut()
		g.expect(a, `{}`, `{"n":1}`)
		if len(h.ended) > 0 {
			t.Errorf("a squashed activation ended: %s", (<-h.ended).Result)
		}
	}
}

// TestKeptConnectionsChangeHands: requests on a kept connection belong to the running activation.
func TestKeptConnectionsChangeHands(t *testing.T) {
	store := withStore(t)
	g := newNativeRig(t, func(c *Config) { single(c); store(c) })
	g.ServeAPI(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, Caller(r.Context())) }))
	a := keptAction("state, door = connect(6379), connect(3233)",
		"answer = {'k': redis('INCR k', state), 'caller': api(door)}")
	for n := 1; n <= 3; n++ {
		r, h := g.begin(a, `{}`)
		want := fmt.Sprintf(`{"caller":%q,"k":":%d"}`, r.Activation, n)
		if end := g.wait(h); string(end.Result) != want {
			t.Errorf("%s; want %s; logs %q", end.Result, want, end.Logs)
		}
	}
}

// TestLeftChildrenOfKeptHandlers: a child is gone with the activation that left it, and nothing that it asked for is carried
// out later.
func TestLeftChildrenOfKeptHandlers(t *testing.T) {
	store := withStore(t)
	g := newNativeRig(t, func(c *Config) { single(c); store(c) })
	a := keptAction("", `
if value.get('leave') and os.fork() == 0:
    own = connect(6379)
    while True: own.sendall(b'INCR child\r\n' * 100)
while value.get('leave') and redis('GET child', connect(6379)) == '$-1': pass
answer = {'n': n}`)
	child := func() string {
		reply, _, err := g.config.Store.Do(t.Context(), state.Command{Space: StateSpace("guest"), Args: [][]byte{[]byte("GET"), []byte("child")}})
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.Text)
	}
	g.expect(a, `{"leave":true}`, `{"n":1}`)
	before := child()
	g.expect(a, `{}`, `{"n":2}`)
	if after := child(); before == "" || after != before {
		t.Errorf("the child had counted to %q at its activation's end, and to %q after the next", before, after)
	}
}

// TestLateEffectsOfKeptHandlers: data that the process of a promoted activation sends after its end goes out, datagrams too, of
// which it is not known that they wait.
func TestLateEffectsOfKeptHandlers(t *testing.T) {
	maker, out := new(hooked), make(chan struct{}, 8)
	maker.release = func() { out <- struct{}{} }
	g := newNativeRig(t, hook(maker))
	a := keptAction("", "answer = {'n': n}")
	r, h := g.ahead(a, `{}`)
	if end := g.wait(h); end.Unheard || string(end.Result) != `{"n":1}` || len(out) > 0 {
		t.Errorf("%s, unheard: %v, let out %d times", end.Result, end.Unheard, len(out))
	}
	g.Promote(r.Activation)
	await(t, out, "it is not let out when it is promoted")
	g.expect(a, `{}`, `{"n":2}`)
}

// TestIdleProcessIsLetOut: effects of a kept process between two activations go out also after one that waited in front of it and
// was squashed.
func TestIdleProcessIsLetOut(t *testing.T) {
	o, store := newOutside(t), withStore(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 1)}
	g := newNativeRig(t, func(c *Config) { single(c); store(c); maker.Maker, c.Maker = c.Maker, maker })
	a := keptAction(fmt.Sprintf(`
import threading
def work():
    s = socket.socket(type=socket.SOCK_DGRAM)
    while True:
        s.sendto(b'beat\n', (%q, %d))
        time.sleep(0.01)
news = connect(6379)`, o.host, o.UDP), `
if n == 1: threading.Thread(target=work, daemon=True).start()
answer = {'said': redis('SUBSCRIBE news', news)}`)
	beats := func(when string) {
		t.Helper()
		until(t, func() bool { return o.reached("beat") > 0 }, when+", nothing of it goes out")
	}
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Fatalf("%s %q", end.Result, end.Logs)
	}
	beats("behind its activation")
	r, _ := g.ahead(a, `{}`) // which waits, as the process listens
	made := await(t, maker.made, "no sandbox is made")
	until(t, func() bool { return sandboxtest.Waiting(t, made) > 0 }, "nothing of it waits")
	g.Squash(r.Activation)
	g.awaitStats("it is idle", func(s Stats) bool { return s.Idle == 1 })
	o.reached("beat")
	beats("behind one that was squashed")
}
