package worker

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/sandboxtest"
)

// guarded are the actions of the matrix: a language and one of its effects each.
func guarded(t *testing.T) map[string]*forerun.Action {
	all := map[string]*forerun.Action{}
	for name, effect := range pythonEffects {
		all["Python "+name], all["native "+name] = fresh(inPython(effect)), inNative(effect)
		all["kept Python "+name] = keep(inPython(effect))
	}
	for name, effect := range nodeEffects {
		all["Node "+name] = inNode(effect)
	}
	program := buildEffects(t)
	for _, name := range goEffects {
		all["Go "+name] = inGo(program, name)
	}
	return all
}

// outside is a host that counts words over TCP, UDP and TLS.
type outside struct {
	*sandboxtest.Counter
	host string
	tls  int
	http atomic.Int32 // squashed or promoted words over TLS
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	host := sandboxtest.Outside()
	if !host.IsValid() {
		t.Skip("the tests have no network namespace of their own")
	}
	o := &outside{Counter: sandboxtest.NewCounter(t), host: host.String()}
	o.ServeNames(t)
	l, err := net.Listen("tcp", net.JoinHostPort(o.host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word := strings.TrimPrefix(r.URL.Path, "/")
		if word != "after" {
			o.http.Add(1)
		}
		_, _ = w.Write([]byte(word))
	}))
	_ = s.Listener.Close()
	s.Listener = l
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	o.tls = l.Addr().(*net.TCPAddr).Port
	return o
}

// reached returns how often a word came, and forgets it.
func (o *outside) reached(word string) int { return o.Take(word) + int(o.http.Swap(0)) }

func (o *outside) input(word string) string {
	b, err := json.Marshal(map[string]any{
		"host": o.host, "host6": sandboxtest.Outside6(), "tcp": o.TCP(word), "udp": o.UDP, "tls": o.tls, "word": word,
		"name": word + ".test", "question": hex.EncodeToString(sandboxtest.Question(word)),
	})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestGuardMatrix has functions of every language reach for the outside in many ways: squashed at whatever stage, and in each way while
// it waits for its turn, nothing of them arrives, promoted it does once. FORERUN_SOAK_TIMES says how often each is tried.
func TestGuardMatrix(t *testing.T) {
	o := newOutside(t)
	times, err := strconv.Atoi(os.Getenv("FORERUN_SOAK_TIMES"))
	if err != nil {
		times = 1
	}
	ways, waited := 0, 0
	const sandboxes = 8 // a way uses two, and idle sandboxes of the ways before it are kept for a second
	g, asked := newNativeRig(t, func(c *Config) { c.MaxSandboxes = sandboxes }), newCalls(t)
	g.ServeAPI(asked)
	for name, a := range guarded(t) {
		t.Run(name, func(t *testing.T) {
			if discover().Check(a.Exec.Kind) != nil {
				t.Skip("this machine does not have the language")
			}
			a.Name.Entity = name
			calls := *asked
			calls.t = t
			m := matrix{&rig{g.Worker, nil, t}, &calls, o, a}
			m.plain("after")
			sent := 0
			for range times {
				sent += m.squash(true) // first, as it may have a connection of the one before
				m.squash(false)
				m.plain("after") // holds connections that the next may not use
				m.promote()
			}
			m.reaches()
			ways, waited = ways+1, waited+sent
			t.Logf("squashed %d times while it waited, with %d calls, questions and datagrams in all", times, sent)
		})
	}
	t.Logf("in each of %d ways activations were squashed %d times while they waited, with %d calls, questions and datagrams in all", ways, times, waited)
}

type matrix struct {
	*rig
	calls *calls
	o     *outside
	a     *forerun.Action
}

func (m *matrix) plain(word string) {
	m.t.Helper()
	_, h := m.begin(m.a, m.o.input(word))
	m.calls.next()
	m.calls.answer <- "go"
	m.check(h, word)
}

func (m *matrix) check(h *heard, word string) {
	m.t.Helper()
	if end := m.wait(h); string(end.Result) != fmt.Sprintf(`{"got":%q}`, word) {
		m.t.Errorf("%s; logs %q", end.Result, end.Logs)
	}
}

// squash kills an activation before it reaches out, or while that waits, and returns how much does.
func (m *matrix) squash(late bool) (waited int) {
	m.t.Helper()
	r, _ := m.ahead(m.a, m.o.input("squashed"))
	m.calls.next()
	if late {
		m.calls.answer <- "go"
		waited = m.awaitGate(r)
		m.plain("after") // in another sandbox, where nothing waits
	}
	m.Squash(r.Activation)
	if !late {
		m.calls.nextCut()
	}
	m.plain("after")
	if n := m.o.reached("squashed"); n > 0 {
		m.t.Errorf("a squashed activation has reached the outside %d times", n)
	}
	return waited
}

// awaitGate waits until something that an activation sends waits for its turn, and returns how much does.
func (g *rig) awaitGate(r *forerun.Run) int {
	g.t.Helper()
	for end := time.Now().Add(15 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if n := g.waiting(r); n > 0 {
			return n
		}
	}
	g.t.Fatal("nothing of it waits for its turn")
	return 0
}

// waiting is how much of what an activation sends waits: what it has left behind counts as one.
func (g *rig) waiting(r *forerun.Run) int {
	g.t.Helper()
	g.mu.Lock()
	own := g.runs[r.Activation]
	left, b := own.effects != nil, own.sandbox
	g.mu.Unlock()
	if left {
		return 1
	}
	return sandboxtest.Waiting(g.t, b.sandbox)
}

func (m *matrix) promote() {
	m.t.Helper()
	r, h := m.ahead(m.a, m.o.input("promoted"))
	m.calls.next()
	m.calls.answer <- "go"
	m.Promote(r.Activation)
	m.check(h, "promoted")
	m.plain("after") // comes behind whatever was sent
	if n := m.o.reached("promoted"); n != 1 {
		m.t.Errorf("a promoted activation has reached the outside %d times", n)
	}
}

// TestSentBeforePromotion: data that an activation sends without waiting goes out when it is promoted, also if it has ended
// before, and its sandbox has served others.
func TestSentBeforePromotion(t *testing.T) {
	o := newOutside(t)
	const node = `new Promise((yes, no) => { const s = dgram.createSocket("udp4"); s.send(a.word, a.udp, a.host, e => { s.close(); e ? no(e) : yes(a.word) }) })`
	for name, a := range inLanguages(pythonEffects["UDP without an answer"], node) {
		t.Run(name, func(t *testing.T) {
			if discover().Check(a.Exec.Kind) != nil {
				t.Skip("this machine does not have the language")
			}
			g := newNativeRig(t, single)
			calls := newCalls(t)
			g.ServeAPI(calls)
			m := matrix{g, calls, o, a}
			m.plain("after")
			for _, word := range []string{"promoted", "squashed"} {
				r, h := m.ahead(a, o.input(word))
				calls.next()
				calls.answer <- "go"
				m.check(h, word)
				if word == "squashed" {
					m.Squash(r.Activation)
				}
				m.plain("between")
				if n := o.reached(word); n > 0 {
					t.Errorf("what ran ahead has reached the outside %d times", n)
				}
				m.Promote(r.Activation)
				m.plain("after") // comes behind whatever was sent
				if n, want := o.reached("promoted"), strings.Count(word, "promoted"); n != want {
					t.Errorf("a %s activation has reached the outside %d times", word, n)
				}
			}
			m.mustForget()
		})
	}
}

// TestSentBeforeItsEnd: data that a function sent in order is out before its end releases the data that others sent speculatively.
func TestSentBeforeItsEnd(t *testing.T) {
	const sockets = 150 // each needs one in the server, too
	o := newOutside(t)
	server, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.ParseIP(o.host)})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	sending := func(word string, n int) *forerun.Action {
		return action(fmt.Sprintf(`
import socket
def main(a):
    for _ in range(%d): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b%q, (%q, %d))
    return {}
`, n, word, o.host, server.LocalAddr().(*net.UDPAddr).Port))
	}
	first, second := sending("first", sockets), sending("second", 1)
	second.Name.Entity = "second"
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 })
	for range 30 {
		ahead, h := g.ahead(second, `{}`)
		g.wait(h)
		if end := g.call(first, `{}`); end.Status != forerun.Success {
			t.Fatalf("%s %q", end.Result, end.Logs)
		}
		g.Promote(ahead.Activation)
		_ = server.SetReadDeadline(time.Now().Add(2 * time.Minute))
		for n, b := 0, make([]byte, 16); ; n++ {
			size, err := server.Read(b)
			if err != nil {
				t.Fatalf("after %d: %v", n, err)
			}
			if word := string(b[:size]); word == "second" {
				if n != sockets {
					t.Errorf("%d of %d came before", n, sockets)
				}
				break
			}
		}
	}
}

// mustForget: nothing is on the books of what has ended.
func (g *rig) mustForget() {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.runs) + int(g.Worker.ahead.Load()); n > 0 {
		g.t.Errorf("%d activations are on the books", n)
	}
}

// TestHeldAtTheGuard: an activation tells for how long it waited to reach out, and what squashed ones took of the processors is known,
// whether they had ended or not.
func TestHeldAtTheGuard(t *testing.T) {
	o := newOutside(t)
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 })
	calls := newCalls(t)
	g.ServeAPI(calls)
	m := matrix{g, calls, o, inPython(pythonEffects["TLS"])}
	m.plain("after")
	if m.held() == 0 {
		t.Error("it was not held")
	}
	if n := g.Stats().Wasted; n != 0 {
		t.Errorf("%v wasted, and nothing was squashed", n)
	}
	m.squash(true)
	g.awaitStats("squashed while it ran", func(s Stats) bool { return s.Wasted > 0 })
	before := g.Stats().Wasted
	r, h := m.ahead(action("import time\ndef main(a):\n    while time.process_time() < 0.05: pass\n    return {}\n"), `{}`)
	m.wait(h)
	m.Squash(r.Activation)
	g.awaitStats("squashed when it had ended", func(s Stats) bool { return s.Wasted-before >= 40*time.Millisecond })
	m.mustForget()
}

// held promotes an activation when it waits at the guard, and returns for how long it says that it did.
func (m *matrix) held() time.Duration {
	m.t.Helper()
	r, h := m.ahead(m.a, m.o.input("promoted"))
	m.calls.next()
	m.calls.answer <- "go"
	m.awaitGate(r)
	m.Promote(r.Activation)
	end := m.wait(h)
	if n := m.o.reached("promoted"); n != 1 || end.Status != forerun.Success {
		m.t.Errorf("%s, and the outside was reached %d times", end.Result, n)
	}
	return end.Held
}

// TestReadHostsAnswerAhead: hosts that an action only reads from answer before its turn, be they named by address or by name.
func TestReadHostsAnswerAhead(t *testing.T) {
	o := newOutside(t)
	const python = `
    s = socket.create_connection((a["to"], a["tcp"])); s.sendall(a["word"].encode() + b"\n"); return s.recv(100).decode()`
	for name, a := range inLanguages(python, "say(a, a.to)") {
		for _, host := range []string{o.host, sandboxtest.Outside6().String(), "read.test"} {
			t.Run(name+" "+host, func(t *testing.T) {
				if discover().Check(a.Exec.Kind) != nil {
					t.Skip("this machine does not have the language")
				}
				readsAhead(t, o, a, host)
			})
		}
	}
}

func readsAhead(t *testing.T, o *outside, a *forerun.Action, host string) {
	g := newNativeRig(t, single)
	calls := newCalls(t)
	g.ServeAPI(calls)
	reads := *a
	reads.Annotations = append(slices.Clone(a.Annotations), forerun.KeyValue{Key: readHosts, Value: json.RawMessage("[" + strconv.Quote(host) + "]")})
	m := matrix{g, calls, o, &reads}
	r, h := m.ahead(&reads, strings.Replace(o.input("read"), "{", `{"to":`+strconv.Quote(host)+",", 1))
	calls.next()
	calls.answer <- "go"
	m.check(h, "read")
	g.Promote(r.Activation)
}

// TestConnectedWhileLoaded: where an action's code has connected with the outside before there was an activation, one that runs
// ahead sends nothing there.
func TestConnectedWhileLoaded(t *testing.T) {
	o := newOutside(t)
	python := strings.NewReplacer("kept = None", fmt.Sprintf("kept = socket.create_connection((%q, %d))", o.host, o.TCP("loaded")))
	node := strings.NewReplacer("let kept", fmt.Sprintf("let kept = net.connect(%d, %q)", o.TCP("loaded"), o.host))
	for name, a := range inLanguages(pythonEffects["keep-alive"], nodeEffects["keep-alive"]) {
		switch name {
		case "Python", "kept Python":
			continue // its handlers do not have the connections of where it was loaded
		case "native":
			a.Exec.Code = encode(python.Replace(decode(a)))
		default:
			a.Exec.Code = node.Replace(python.Replace(a.Exec.Code))
		}
		t.Run(name, func(t *testing.T) {
			if discover().Check(a.Exec.Kind) != nil {
				t.Skip("this machine does not have the language")
			}
			g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 }) // one is for another action
			calls := newCalls(t)
			g.ServeAPI(calls)
			m := matrix{g, calls, o, a}
			for range 2 {
				r, _ := m.ahead(a, o.input("squashed"))
				other := matrix{g, calls, o, inPython(pythonEffects["bare connect"])}
				other.plain("after") // its leave is for whichever comes first
				g.Squash(r.Activation)
				m.plain("after")
				if n := o.reached("squashed"); n > 0 {
					t.Errorf("a squashed activation has reached the outside %d times", n)
				}
			}
			m.promoted()
		})
	}
}

// promoted has the action run ahead and be promoted, after which it has reached the outside once.
func (m *matrix) promoted() {
	m.t.Helper()
	r, h := m.ahead(m.a, m.o.input("promoted"))
	m.Promote(r.Activation)
	m.calls.next()
	m.calls.answer <- "go"
	m.check(h, "promoted")
	if n := m.o.reached("promoted"); n != 1 {
		m.t.Errorf("a promoted activation has reached the outside %d times", n)
	}
}

// TestConnectedAsItIsForked: where an action's code connects with the outside in each process as that is forked, one that runs ahead waits for its
// turn: it could send. What is forked after a squash does not wait for anybody's.
func TestConnectedAsItIsForked(t *testing.T) {
	o := newOutside(t)
	a := inPython(`
    os.write(kept.fileno(), a["word"].encode() + b"\n"); return kept.recv(100).decode()`)
	a.Exec.Code = strings.Replace(a.Exec.Code, "kept = None", fmt.Sprintf(`kept = None
def connect():
    global kept
    kept = socket.create_connection((%q, %d))
os.register_at_fork(after_in_child=connect)`, o.host, o.TCP("forked")), 1)
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 2 }) // one is for another action
	calls := newCalls(t)
	g.ServeAPI(calls)
	m := matrix{g, calls, o, a}
	m.plain("after")
	fastest := time.Minute
	for range 3 {
		r, h := m.ahead(a, o.input("squashed"))
		other := matrix{g, calls, o, inPython(pythonEffects["bare connect"])}
		other.plain("after") // its leave is for whichever comes first
		if len(h.started) > 0 {
			t.Error("it has begun although it could send")
		}
		g.Squash(r.Activation)
		began := time.Now()
		m.plain("after")
		fastest = min(fastest, time.Since(began))
		if n := o.reached("squashed"); n > 0 {
			t.Errorf("a squashed activation has reached the outside %d times", n)
		}
	}
	if fastest >= forkLimit {
		t.Errorf("after a squash the next one took %v", fastest)
	}
	m.promoted()
}

// TestForkedWhereItIsHeld: code that connects in each process as that is forked does not keep what comes after a squash waiting.
func TestForkedWhereItIsHeld(t *testing.T) {
	soon(t, forkLimit, "what comes after a squash waits", func() time.Duration { return squashedWhereItIsHeld(t) })
}

// squashedWhereItIsHeld is how long it takes from a squash until another activation ends.
func squashedWhereItIsHeld(t *testing.T) time.Duration {
	o := newOutside(t)
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes = 1 })
	calls := newCalls(t)
	g.ServeAPI(calls)
	// It connects in every process but the first ones, so that one runs ahead.
	a := action(fmt.Sprintf(`
import os, socket
forks = 0
def count():
    global forks
    forks += 1
def connect():
    if forks > 2: socket.create_connection((%q, %d)).close()
os.register_at_fork(before=count, after_in_child=connect)
def main(a):
    s = socket.create_connection(("127.0.0.1", 3233)); s.sendall(b"GET /ready HTTP/1.0\r\n\r\n"); s.recv(1000)
    return {}
`, o.host, o.TCP("forked")))
	first, h := g.begin(a, `{}`)
	calls.next()
	calls.answer <- "go"
	if end := g.wait(h); end.Status != forerun.Success {
		t.Fatalf("%s %s; logs %q", first.Activation, end.Result, end.Logs)
	}
	r, _ := g.ahead(a, `{}`)
	calls.next()
	g.awaitGate(r)
	g.Squash(r.Activation)
	calls.nextCut()
	began := time.Now()
	_, h = g.begin(a, `{}`)
	calls.next()
	calls.answer <- "go"
	if end := g.wait(h); end.Status != forerun.Success {
		t.Errorf("after a squash: %s; logs %q", end.Result, end.Logs)
	}
	return time.Since(began)
}

// TestForkedAsItIsLoadedAhead: an activation whose turn it is need not wait for that of one that runs ahead, for which the code was loaded.
func TestForkedAsItIsLoadedAhead(t *testing.T) {
	o := newOutside(t)
	maker := &keepingMaker{made: make(chan sandbox.Sandbox, 2)}
	g := newNativeRig(t, func(c *Config) { c.MaxSandboxes, maker.Maker, c.Maker = 1, c.Maker, maker })
	a := action(fmt.Sprintf("import os, socket\nos.register_at_fork(after_in_child=lambda: socket.create_connection((%q, %d)).close())\ndef main(a): return a\n",
		o.host, o.TCP("forked")))
	r, _ := g.ahead(a, `{"n":1}`)
	awaitReached(t, await(t, maker.made, "no sandbox is made"))
	if end := g.call(a, `{"n":2}`); string(end.Result) != `{"n":2}` {
		t.Errorf("%s; logs %q", end.Result, end.Logs)
	}
	g.Squash(r.Activation)
}
