package worker

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/state/resp"
)

// withStore gives a worker a store in memory.
func withStore(t *testing.T) func(*Config) {
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(c *Config) { c.MaxSandboxes, c.Store, c.Hub = 1, store, resp.NewHub(store, nil) }
}

// client is Python that speaks through the doors.
const client = `
import os, socket
def connect(door):
    return socket.create_connection(("127.0.0.1", int(os.environ[f"TEST_{door}_PORT"])))
def redis(line, conn=None):
    conn = conn or connect("STATE")
    conn.sendall(line.encode() + b"\r\n")
    return conn.recv(1000).decode().strip()
def api(path):
    conn = connect("API")
    conn.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    answer = b""
    while part := conn.recv(1000):
        answer += part
    return answer.decode().split("\r\n\r\n")[-1] if answer else "cut"
`

func TestStateDoor(t *testing.T) {
	g := newRig(t, withStore(t))
	a := action(client + `
early = connect("STATE")
loading = [redis("PING", early), redis("SET k early", early)]
def main(args):
    try:
        late = early.recv(1)
    except OSError:
        late = b""
    return {"loading": loading, "late": late.decode(), "set": redis("SET k v"), "get": redis("GET k")}
`)
	end := g.call(a, `{}`)
	want := `{"get":"$1\r\nv","late":"","loading":["+PONG","-ERR no activation is running: state can be reached while the function runs, not while its code is loaded"],"set":"+OK"}`
	if string(end.Result) != want {
		t.Errorf("%s; want %s", end.Result, want)
	}
	reply, _, err := g.config.Store.Do(t.Context(), state.Command{Space: StateSpace("guest"), Args: [][]byte{[]byte("GET"), []byte("k")}})
	if err != nil || string(reply.Text) != "v" {
		t.Errorf("the store has %q, %v", reply.Text, err)
	}
}

func TestNothingOfAnActivationWritesAfterItsEnd(t *testing.T) {
	g := newRig(t, withStore(t))
	a := action(client + `
def main(args):
    conn = connect("STATE")
    redis("SET n 0", conn)
    if os.fork() == 0:
        os.setsid()
        while True:
            try:
                redis("INCR n", conn)
            except OSError:
                conn = connect("STATE")
    while redis("GET n") == "$1\r\n0":
        pass
    return {}
`)
	get := func() string {
		reply, _, err := g.config.Store.Do(t.Context(), state.Command{Space: StateSpace("guest"), Args: [][]byte{[]byte("GET"), []byte("n")}})
		if err != nil {
			t.Fatal(err)
		}
		return string(reply.Text)
	}
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Fatalf("%s %q", end.Result, end.Logs)
	}
	before := get()
	b := *a
	b.Exec.Code = "def main(args): return {}" // in its place: the sandbox has to be closed first
	if end := g.call(&b, `{}`); end.Status != forerun.Success {
		t.Fatalf("%s", end.Result)
	}
	if after := get(); before == "0" || after != before {
		t.Errorf("%s after the end, %s later", before, after)
	}
}

func TestAPIDoor(t *testing.T) {
	g := newRig(t, nil)
	g.ServeAPI(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s from %s", r.URL.Path, Caller(r.Context()))
	}))
	a := action(client + `
loading = api("/early")
def main(args):
    return {"answer": api("/late"), "loading": loading}
`)
	r, h := g.begin(a, `{}`)
	end := g.wait(h)
	if !strings.Contains(string(end.Result), fmt.Sprintf(`"answer":"/late from %s"`, r.Activation)) ||
		!strings.Contains(string(end.Result), "No activation is running") {
		t.Errorf("%s %q", end.Result, end.Logs)
	}
}

func TestCallsAreCutWithTheirCaller(t *testing.T) {
	g, calls := newCallingRig(t, single)
	a := action(client + "def main(args):\n  return {'answer': api('/')} if args else {}\n")
	r, h := g.begin(a, `{"call":true}`)
	calls.next()
	g.Squash(r.Activation)
	calls.nextCut()
	if end := g.call(a, `{}`); end.Status != forerun.Success {
		t.Errorf("the next activation: %s", end.Result)
	}
	if len(h.ended) > 0 {
		t.Errorf("a squashed activation ended: %s", (<-h.ended).Result)
	}
}

// calls is an API that answers when it is told to: a test learns from it where a function is.
type calls struct {
	t       testing.TB
	arrived chan string // paths
	answer  chan string
	cut     chan string // paths of requests whose clients went
}

func newCalls(t testing.TB) *calls {
	return &calls{t: t, arrived: make(chan string, 64), answer: make(chan string, 64), cut: make(chan string, 64)}
}

// next waits for a request, and returns its path.
func (c *calls) next() string {
	c.t.Helper()
	return await(c.t, c.arrived, "no function asks the API anything")
}

// nextCut waits until the client of a request that has no answer goes, and returns its path.
func (c *calls) nextCut() string {
	c.t.Helper()
	return await(c.t, c.cut, "no function gives up its request")
}

// newCallingRig is newRig, with an API that the test answers for.
func newCallingRig(t *testing.T, change func(*Config)) (*rig, *calls) {
	t.Helper()
	g, c := newRig(t, change), newCalls(t)
	g.ServeAPI(c)
	return g, c
}

func (c *calls) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.arrived <- r.URL.Path
	select {
	case answer := <-c.answer:
		_, _ = w.Write([]byte(answer))
	case <-r.Context().Done():
		c.cut <- r.URL.Path
	}
}

// TestTooManyConnections: one function's connections are bounded, so that others' have descriptors left.
func TestTooManyConnections(t *testing.T) {
	g := newRig(t, withStore(t))
	g.ServeAPI(http.NotFoundHandler())
	a := action(client + fmt.Sprintf(`
def main(args):
    kept = [connect("STATE") for _ in range(%d)]
    served = [redis("PING", kept[0]), redis("PING", kept[-1])]
    refused = [connect(door).recv(34).decode() for door in ("STATE", "API")]
    return {"served": served, "refused": refused}
`, maxDoorConns))
	for range 2 { // the second finds none of the first's
		end := g.call(a, `{}`)
		const want = `{"refused":["-ERR max number of clients reached","HTTP/1.1 503 Service Unavailable\r\n"],"served":["+PONG","+PONG"]}`
		if string(end.Result) != want {
			t.Errorf("%s %q; want %s", end.Result, end.Logs, want)
		}
	}
}

// TestConnectionsOfWhatWasKilledChangeNoHands: one that was accepted before is served in the tenure that takes over the connections
// of its own, and in none that begins without them, although its other end may be open.
func TestConnectionsOfWhatWasKilledChangeNoHands(t *testing.T) {
	served := make(chan *doorConn, 3)
	b, d, l := launchedDoors(func(c *doorConn) { served <- c })
	first := newTenure("a")
	d.begin(first)
	if c := doorTo(t, b); !d.admit(l, c, first) || await(t, served, "it is not served") != c {
		t.Error("a connection is not the tenure's in which it was accepted")
	}
	d.end(true)
	d.fence()
	if c := doorTo(t, b); !d.admit(l, c, first) || await(t, served, "it is not served") != c {
		t.Error("a connection is lost although the process stays")
	}
	second := newTenure("b")
	d.begin(second)
	d.end(false)
	late, early := doorTo(t, b), doorTo(t, b)
	between := d.tenure()
	if !d.admit(l, early, between) {
		t.Error("a connection is refused before it is known whose it is")
	}
	d.fence()
	if d.admit(l, late, second) || d.admit(l, late, between) {
		t.Error("a connection of a process that was killed is admitted")
	}
	d.begin(newTenure("c"))
	if early.ctx.Err() == nil {
		t.Error("a connection of a process that was killed is the next one's")
	}
	d.tenure().end(nil)
}

// TestConnectionsOfTwoProcesses: while one is stopped what is accepted is the other's, also if it is served later, and it gets that
// when it takes the place of the first.
func TestConnectionsOfTwoProcesses(t *testing.T) {
	b, d, l := launchedDoors(func(*doorConn) {})
	admit := func(at *tenure) *doorConn {
		c := doorTo(t, b)
		if !d.admit(l, c, at) {
			t.Error("a connection is refused")
		}
		return c
	}
	d.begin(newTenure("a"))
	firsts := admit(d.tenure())
	d.end(true)
	aside := d.tenure()
	d.part()
	loading := d.tenure()
	seconds, late := admit(loading), doorTo(t, b)
	if _, why := seconds.enter(t.Context()); why == "" {
		t.Error("state is reached while code is loaded")
	}
	if between := d.rejoin(); between != loading || d.tenure() != aside {
		t.Fatal("the tenures are not as before")
	}
	next := newTenure("b")
	d.begin(next)
	if firsts.tenure.Load() != next || seconds.tenure.Load() != loading {
		t.Error("a connection is another process's")
	}
	d.end(false)
	d.fence()
	d.adopt(loading)
	if !d.admit(l, late, loading) {
		t.Error("a connection is lost that was accepted before it was adopted")
	}
	last := newTenure("c")
	d.begin(last)
	if firsts.ctx.Err() == nil || seconds.tenure.Load() != last || late.tenure.Load() != last {
		t.Error("the connections are not those of the process that took over")
	}
	d.tenure().end(nil)
}

// TestConnectionsAdoptedByAnActivation: one that has begun gets them beside its own.
func TestConnectionsAdoptedByAnActivation(t *testing.T) {
	b, d, l := launchedDoors(func(*doorConn) {})
	d.part()
	c := doorTo(t, b)
	if !d.admit(l, c, d.tenure()) {
		t.Fatal("a connection is refused")
	}
	loading := d.rejoin()
	running := newTenure("a")
	d.begin(running)
	d.adopt(loading)
	if d.tenure() != running || c.tenure.Load() != running {
		t.Error("the activation has not got the connection")
	}
	running.end(nil)
}

// TestTooManyConnectionsBetweenActivations: connections that a kept process opens then count with those that it has.
func TestTooManyConnectionsBetweenActivations(t *testing.T) {
	b, d, l := launchedDoors(func(*doorConn) {})
	connect := d.open(t, l.door)
	between := d.tenure()
	between.between = true
	for len(between.conns) < maxDoorConns-1 {
		between.keep(new(doorConn))
	}
	for range 3 {
		connect()
	}
	d.discard()
	if n := len(between.conns); n != maxDoorConns {
		t.Errorf("it has %d connections; want %d", n, maxDoorConns)
	}
	if doorTo(t, b).passTo(between) {
		t.Error("it gets another one's, too")
	}
	for c := range between.conns {
		if c.Conn != nil {
			_ = c.Close()
		}
	}
}

// TestConnectionsOfATenant: in all its sandboxes a tenant has no more than are left for others, and is told so; those that are closed do not
// count.
func TestConnectionsOfATenant(t *testing.T) {
	served := make(chan *doorConn, 3)
	next := func() *doorConn {
		select {
		case c := <-served:
			return c
		case <-time.After(2 * time.Minute):
			t.Fatal("a connection is refused")
			return nil
		}
	}
	b, d, l := launchedDoors(func(c *doorConn) { served <- c })
	l.full = stateIsFull
	connect := d.open(t, l.door)
	b.w.connections = sandbox.NewShares(4)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		d.accept(d.listeners[0])
	}()
	connect()
	connect()
	first, second := next(), next()
	if told, err := io.ReadAll(connect()); string(told) != stateIsFull {
		t.Errorf("one too many is told %q, %v", told, err)
	}
	other := &pooledSandbox{w: b.w}
	other.owner.Store(&pool{key: poolKey{namespace: "other"}})
	if !other.mayConnect() {
		t.Error("there is none for another tenant")
	}
	b.w.connections.Count("other", -1)
	_ = first.Close()
	connect()
	for _, c := range []*doorConn{second, next()} {
		_ = c.Close()
	}
	_ = d.listeners[0].file.Close()
	<-accepted
	if free := takeAll(b.w.connections); free != 2 {
		t.Errorf("when all are closed there are %d, not 2", free)
	}
}

// TestConnectionsAhead: an activation that is ahead may have half of a tenant's connections. It is not told that there is none left, but is to
// run again in its turn; if that has come meanwhile there is one.
func TestConnectionsAhead(t *testing.T) {
	for _, promoted := range []bool{false, true} {
		b, _, _ := launchedDoors(nil)
		b.w.connections = sandbox.NewShares(8)
		h, tenure := newHeard(), newTenure("a")
		tenure.squashed = make(chan struct{})
		r := &run{Run: &forerun.Run{Activation: "a", Events: h}, tenure: tenure}
		r.promoted, r.promote = context.WithCancel(t.Context())
		b.current = r
		for range 2 {
			if !b.mayConnectIn(tenure) {
				t.Error("it is refused a connection, and there are some")
			}
		}
		may := make(chan bool)
		go func() { may <- b.mayConnectIn(tenure) }()
		if kind := await(t, h.wanted, "it is not to run again"); kind != forerun.Failed {
			t.Errorf("it runs again for %q", kind)
		}
		select {
		case <-may:
			t.Error("it is told before its turn")
		default:
		}
		if promoted {
			r.promote()
		} else {
			close(tenure.squashed)
		}
		if await(t, may, "its connection waits on") != promoted {
			t.Errorf("promoted: %v, and its connection is not that", promoted)
		}
		r.promote()
	}
}

// TestFewDescriptors: where the process may have few files and sockets, there are fewer sandboxes, and fewer connections of each tenant.
func TestFewDescriptors(t *testing.T) {
	w := New(Config{MemoryMiB: 10_000, Descriptors: 1024})
	defer w.Close()
	if connections := takeAll(w.connections); w.config.MaxSandboxes != 13 || connections != 96 {
		t.Errorf("of 1024 there are %d sandboxes and %d connections of one tenant", w.config.MaxSandboxes, connections)
	}
}

// takeAll takes all that one tenant may have.
func takeAll(s *sandbox.Shares) (n int) {
	for s.Take("") {
		n++
	}
	return n
}

// open opens a door, whose clients connect with what it returns.
func (d *doors) open(t *testing.T, behind door) (connect func() net.Conn) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { door.Close() })
	l, err := listen(door)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.file.Close() })
	l.door = behind
	d.listeners = []*listener{l}
	return func() net.Conn {
		c, err := net.Dial("tcp", door.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		return c
	}
}

// launchedDoors are doors of a sandbox whose handlers stay, for connections that a test makes.
func launchedDoors(serve func(*doorConn)) (*pooledSandbox, *doors, *listener) {
	b := &pooledSandbox{language: &language{launched: true}, w: &Worker{connections: sandbox.NewShares(4 * maxDoorConns)}}
	b.owner.Store(&pool{})
	return b, &doors{b: b, current: newTenure("")}, &listener{door: door{serve: serve}}
}

// doorTo is a connection whose other end is open.
func doorTo(t *testing.T, b *pooledSandbox) *doorConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	file, err := ours.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	defer ours.Close()
	fd, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	b.mayConnect()
	c := newDoorConn(fd, b)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
