package test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/test/history"
)

// Where what a chain's functions send comes by while its first function waits, and where when it does not wait any more.
var (
	aheadOfTurn = []string{"gated link2", "withheld link3", "taken link3"}
	inTurn      = []string{"opening link2", "connected link2", "sending link3", "squashed link2", "squashed link3"}
)

// TestAheadGuard kills a handler, a sandbox and the server while a connection or a datagram of what runs ahead waits for its turn, when
// it is made or sent, and when it is squashed. Whatever was killed, before its turn nothing arrives outside, and of each invocation what
// it sends in its turn, in order, and once if it goes well; what comes next goes well, and of what was killed nothing is left.
func TestAheadGuard(t *testing.T) {
	needPackages(t)
	needNode(t)
	address := needOutside(t)
	t.Parallel()
	random, goOn := rand.New(rand.NewPCG(history.Seed(t), 8)), history.Soak(t)
	points := newPoints(t)
	w := &sending{
		staged: &staged{T: t, points: points, pointed: buildPointed(t, points), data: filepath.Join(t.TempDir(), "data"), random: random},
		ear:    newEar(t, address), heard: make(map[string]bool),
	}
	w.kept = &language{} // of the third function
	w.begin()
	for round := 0; round == 0 || goOn(); round++ {
		for _, victim := range victims {
			for _, point := range slices.Concat(aheadOfTurn, inTurn) {
				w.kill(point, victim)
			}
		}
	}
	w.s.records()
	w.s.end()
	w.mustHaveHeard("the end", 0, 0)
	t.Logf("%d faults, at %d of which what ran ahead was squashed; %d invocations went well, %d did not, and were heard of %d",
		w.faults, w.n, w.well+w.s.well, w.ill+w.s.ill, len(w.heard))
}

// The functions of the chain, whose third is actions/datagram.js. The first waits until it may go on.
var senders = map[string]string{
	"link1": `
import os, redis
state = redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=None)
def main(args):
    state.blpop("go")
    print(os.environ["__OW_ACTIVATION_ID"], "of 1")
    return {"n": int(state.get("n") or 0)}
`,
	"link2": `
import ctypes, os, socket
ctypes.CDLL(None).prctl(15, b"link2")  # PR_SET_NAME
def main(args):
    s = socket.create_connection((args["host"], args["tcp"]))
    s.sendall(b"link2 %s %d\n" % (os.environ["__OW_TRANSACTION_ID"].encode(), args["n"]))
    s.recv(1)
    s.close()
    print(os.environ["__OW_ACTIVATION_ID"], "of 2")
    return {"n": args["n"]}
`,
	"link4": `
import os
def main(args):
    print(os.environ["__OW_ACTIVATION_ID"], "of 4")
    return args
`,
}

// sending is a server whose chain's second function sends a line to a host outside, and whose third sends it a datagram.
type sending struct {
	*staged
	ear   *ear
	heard map[string]bool // transactions
}

// begin starts a server and has it learn the chain.
func (w *sending) begin() {
	w.Helper()
	w.s = newStormyOf(w.T, w.pointed, w.data, w.random, "--egress-allow", w.ear.host+"/32")
	if w.faults == 0 {
		w.deploy()
	}
	if err := w.s.state.Del(w.Context(), "go").Err(); err != nil {
		w.Fatal(err)
	}
	w.learn()
}

func (w *sending) deploy() {
	w.Helper()
	parameters := []any{
		map[string]any{"key": "host", "value": w.ear.host}, map[string]any{"key": "tcp", "value": w.ear.tcp}, map[string]any{"key": "udp", "value": w.ear.udp},
	}
	for name, code := range senders {
		put(w.T, w.s.client, name, map[string]any{"exec": map[string]any{"kind": "python:3", "code": code}, "parameters": parameters})
	}
	put(w.T, w.s.client, "link3", map[string]any{"exec": map[string]any{"kind": "nodejs:default", "code": source("actions/datagram.js")(w.T)}, "parameters": parameters})
	if err := w.s.client.PutSequence(context.WithoutCancel(w.Context()), "chain", "link1", "link2", "link3", "link4"); err != nil {
		w.Fatal(err)
	}
}

// learn has the chain run until it is known. All that it sends is heard.
func (w *sending) learn() {
	w.Helper()
	for range learning {
		before := w.s.wentWell()
		w.s.letGo()
		w.s.invoke(w.Context())
		if w.s.wentWell() == before {
			w.Fatalf("an invocation where nothing is killed went ill: %s", w.s.why)
		}
		w.mustHaveHeard("nothing was killed", 2, 2)
	}
}

// kill kills the victim when what is sent has come to the point, and looks at what is heard outside.
func (w *sending) kill(point, victim string) {
	w.Helper()
	what := fmt.Sprintf("%s was killed when %s", victim, point)
	defer func() {
		if w.Failed() {
			w.Logf("%s; slots came to %q; the last invocation that went ill: %s", what, w.points.passed, w.s.why)
		}
	}()
	before := sent{w.s.wentWell(), w.ear.connections()}
	early := slices.Contains(aheadOfTurn, point)
	w.points.stopAt(point)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.s.invoke(w.Context())
	}()
	if !early && !w.comeAhead() {
		w.points.stopAt("")
		w.s.letGo()
		<-ended
		w.settle(what, before, false)
		w.kill(point, victim)
		return
	}
	if !early {
		w.goOn(point)
	}
	c := w.await(point)
	defer c.Close()
	w.faults++
	if victim == "server" {
		w.killServer(ended)
		w.mustBeInTurn(what, early, before)
		w.mustHaveHeard(what, 0, 2)
		w.begin()
		return
	}
	action := w.killInside(point, victim)
	if strings.HasPrefix(point, "squashed ") { // it runs again, in its turn
		w.awaitNoticed()
	}
	c.Close()
	if early { // when its turn comes, it is known that it failed, if it had not finished
		w.awaitEnd("finished " + action)
	}
	w.awaitNoticed()
	w.mustBeInTurn(what, early, before)
	if early {
		if w.random.IntN(2) == 0 {
			w.change()
		}
		w.s.letGo()
	}
	<-ended
	w.settle(what, before, strings.HasPrefix(point, "opening ") || strings.HasPrefix(point, "connected "))
	w.s.calm()
	w.learn()
}

// sent is how many invocations have gone well in a server's life, and how many connections they had made outside.
type sent struct{ well, connections int }

// mustBeInTurn reports what has arrived outside if the first function waits still.
func (w *sending) mustBeInTurn(what string, early bool, before sent) {
	w.Helper()
	if !early {
		return
	}
	w.mustHaveHeard(what, 0, 0)
	if n := w.ear.connections() - before.connections; n > 0 {
		w.Errorf("%s: %d connections were made before their turn", what, n)
	}
}

// comeAhead waits until all that runs ahead has come as far as it can, and reports false if something of it failed: a sandbox may have
// begun it that the fault before had killed and that was not known to be dead.
func (w *sending) comeAhead() bool {
	w.Helper()
	for _, point := range []string{"gated link2", "finished link3", "finished link4"} {
		w.awaitEnd(point)
	}
	return !slices.ContainsFunc([]string{"link2", "link3", "link4"}, func(action string) bool { return w.points.hasPassed("failed " + action) })
}

// killServer kills the server, of which nothing is left.
func (w *sending) killServer(ended <-chan struct{}) {
	w.Helper()
	f := newFootprint(w.data)
	f.observe(w.s.server.PID())
	w.s.server.Kill()
	<-ended
	f.mustVanish(w.T)
	w.well, w.ill = w.well+w.s.well, w.ill+w.s.ill
}

// settle looks at what an invocation has sent. It may have gone ill only where a function was killed whose turn had come.
func (w *sending) settle(what string, before sent, mayFail bool) {
	w.Helper()
	switch {
	case w.s.wentWell() > before.well:
		w.mustHaveHeard(what, 2, 2)
		if n := w.ear.connections() - before.connections; n != 1 {
			w.Errorf("%s: %d connections were made", what, n)
		}
	case mayFail:
		w.mustHaveHeard(what, 0, 0) // it had no connection yet
	default:
		w.Errorf("%s: the invocation went ill: %s", what, w.s.why)
	}
}

// mustHaveHeard reports what was heard outside and is not what the invocation sends that came last: so many messages, in order, each with
// the number that it was given, and none of an invocation that was heard before.
func (w *sending) mustHaveHeard(what string, least, most int) {
	w.Helper()
	var heard []string
	eventually(w.T, func() bool {
		heard = append(heard, w.ear.take()...)
		return len(heard) >= least
	})
	if len(heard) == 0 {
		return
	}
	_, rest, _ := strings.Cut(heard[0], " ")
	transaction, _, _ := strings.Cut(rest, " ")
	want := []string{fmt.Sprintf("link2 %s %d", transaction, w.n), fmt.Sprintf("link3 %s %d", transaction, w.n)}
	if len(heard) > most || !slices.Equal(heard, want[:min(len(heard), len(want))]) || w.heard[transaction] {
		w.Errorf("%s: heard were %q, of %d", what, heard, w.n)
	}
	w.heard[transaction] = true
}

// ear is a host outside that notes what it hears, in order: lines on connections, which it answers, and datagrams.
type ear struct {
	host     string
	tcp, udp int // ports

	mu       sync.Mutex // guards the rest
	messages []string
	accepted int
}

func newEar(t *testing.T, address netip.Addr) *ear {
	t.Helper()
	streams, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	packets, err := net.ListenPacket("udp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	// What waited for its turn comes at once, and the default has room for 256 datagrams: of more some were lost while this process waited
	// for a processor.
	if err := packets.(*net.UDPConn).SetReadBuffer(1 << 20); err != nil {
		t.Fatal(err)
	}
	e := &ear{host: address.String(), tcp: streams.Addr().(*net.TCPAddr).Port, udp: packets.LocalAddr().(*net.UDPAddr).Port}
	var listening sync.WaitGroup
	listening.Go(func() { e.accept(streams) })
	listening.Go(func() { e.receive(packets) })
	t.Cleanup(func() {
		streams.Close()
		packets.Close()
		listening.Wait()
	})
	return e
}

func (e *ear) accept(streams net.Listener) {
	for {
		c, err := streams.Accept()
		if err != nil {
			return
		}
		e.mu.Lock()
		e.accepted++
		e.mu.Unlock()
		go e.listen(c)
	}
}

func (e *ear) listen(c net.Conn) {
	defer c.Close()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		e.note(lines.Text())
		_, _ = c.Write([]byte("\n")) // whoever said it may be dead
	}
}

func (e *ear) receive(packets net.PacketConn) {
	b := make([]byte, 1<<12)
	for {
		n, _, err := packets.ReadFrom(b)
		if err != nil {
			return
		}
		e.note(string(b[:n]))
	}
}

func (e *ear) note(message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.messages = append(e.messages, message)
}

// take returns what was heard, and forgets it.
func (e *ear) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.messages
	e.messages = nil
	return taken
}

// connections is how many were made, whether anything was said on them or not.
func (e *ear) connections() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.accepted
}
