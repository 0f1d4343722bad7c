package resp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/resp"
)

// conversation sends bytes and lists the replies until the connection ends, or an echo comes back.
func (k *talker) conversation(bytes string) string {
	k.t.Helper()
	if _, err := io.WriteString(k.conn, bytes+"*2\r\n$4\r\nECHO\r\n$3\r\nend\r\n"); err != nil {
		k.t.Fatal(err)
	}
	var replies []string
	for {
		reply := k.reply()
		replies = append(replies, reply)
		if reply == "EOF" || reply == `$3 "end"` {
			return strings.Join(replies, "\n")
		}
	}
}

// conversations are what a client may say about the connection, or wrongly.
var conversations = []string{
	"PING\r\n", "PING hello\r\n", "PING a b\r\n", "ping\r\n", "ECHO\r\n", "ECHO x\r\n",
	"SELECT 0\r\nSELECT 1\r\nSELECT -1\r\nSELECT x\r\nSELECT 99999999999\r\nSELECT\r\n",
	"HELLO 4\r\n", "HELLO x\r\n", "HELLO 3 NONSENSE\r\n", "HELLO 3 AUTH default\r\n", "HELLO 3 SETNAME \"a b\"\r\n", "HELLO 3 AUTH nobody x\r\n",
	"AUTH x\r\n", "AUTH default x\r\n", "AUTH nobody x\r\n", "AUTH a b c\r\n", "AUTH\r\n",
	"CLIENT\r\n", "CLIENT GETNAME\r\n", "CLIENT SETNAME bob\r\nCLIENT GETNAME\r\nCLIENT SETNAME \"\"\r\nCLIENT GETNAME\r\n", "CLIENT SETNAME \"a b\"\r\n", "CLIENT SETNAME\r\n",
	"CLIENT NONSENSE\r\n", "CLIENT NO-EVICT on\r\nCLIENT NO-EVICT x\r\n",
	"RESET\r\n", "QUIT\r\nPING\r\n", "NONSENSE\r\n", "NONSENSE a \"b\\r\\nc\" d\r\n", "GET\r\n", "\r\n", "*0\r\n", "*-5\r\n",
	"NONSENSE " + strings.Repeat("x", 300) + " y\r\n", strings.Repeat("N", 300) + " y\r\n", "*2\r\n$8\r\nNONSENSE\r\n$5\r\nab\x00cd\r\n",
	"GET \"unbalanced\r\n", "*x\r\n", "*99999999999999999999\r\n", "*1\r\nPING\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$536870913\r\n", "*1\r\n$\xff\r\n", "*1\r\n\xff\r\n",
	"PING\r\nPING\r\n*1\r\n*\r\n", "COMMAND NONSENSE\r\n", "SET \"a\\x41b\" 'it\\'s' \r\nGET aAb\r\n",
}

func TestConversationsAreThoseWithRedis(t *testing.T) {
	socket := startRedis(t)
	address := open(t).address
	for _, words := range conversations {
		want := talkTo(t, "unix", socket).conversation(words)
		got := talkTo(t, "tcp", address).conversation(words)
		if got != want {
			t.Errorf("%.60q\nRedis    %q\nForerun  %q", words, want, got)
		}
	}
}

func TestHello(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	greeting := k.say("HELLO", "3", "SETNAME", "bob", "AUTH", "default", "x")
	for _, want := range []string{"%7|", `$5 "proto"|:3`, `$6 "server"|$5 "redis"`, `$7 "modules"|*0`} {
		if !strings.Contains(greeting, want) {
			t.Errorf("HELLO 3: %s lacks %s", greeting, want)
		}
	}
	if got := k.say("CLIENT", "GETNAME"); got != `$3 "bob"` {
		t.Errorf("the name is %s", got)
	}
	if got := k.say("GET", "missing"); got != "_" {
		t.Errorf("nothing in RESP3 is %q", got)
	}
	if got := k.say("HELLO"); !strings.HasPrefix(got, "%7|") {
		t.Errorf("HELLO: %s", got)
	}
	if got := k.say("HELLO", "2"); !strings.HasPrefix(got, "*14|") {
		t.Errorf("HELLO 2: %s", got)
	}
	k.say("HELLO", "3")
	if got := k.say("RESET") + k.say("GET", "missing") + k.say("CLIENT", "GETNAME"); got != "+RESET$-1$-1" {
		t.Errorf("after RESET: %q", got)
	}
}

func TestIntroductions(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	for _, c := range []struct{ command, want string }{
		{"CLIENT SETINFO LIB-NAME redis-py", "+OK"},
		{"CLIENT SETINFO LIB-VER 5.0", "+OK"},
		{"CLIENT SETINFO LIB-COLOR red", "-ERR Unrecognized option 'LIB-COLOR'"},
		{"CLIENT NO-TOUCH off", "+OK"},
		{"CLIENT INFO", "lib-name=redis-py lib-ver=5.0"},
		{"CLIENT LIST", "resp=2"},
		{"CLIENT ID", ":1"},
		{"INFO", "redis_version:7"},
		{"INFO replication persistence", "loading:0"},
		{"INFO nothing", `$0 ""`},
		{"COMMAND COUNT", ":"},
		{"COMMAND LIST", `$4 "hget"`},
		{"COMMAND DOCS get nonsense", `*2|$3 "get"|*4|$5 "since"|$5 "1.0.0"|$5 "group"|$6 "string"`},
		{"COMMAND DOCS", `|$6 "zunion"|*4|`},
		{"COMMAND DOCS pubsub", `$11 "subcommands"|*8|$15 "pubsub|channels"|`},
		{"COMMAND INFO get nonsense", `*2|*10|$3 "get"|:2|*2|+readonly|+fast|:1|:1|:1|*3|+@read|+@string|+@fast|*0|*0|*0|*-1`},
		{"COMMAND LIST FILTERBY PATTERN ge*", `*6|$3 "get"|$6 "getbit"|$6 "getdel"|$5 "getex"|$8 "getrange"|$6 "getset"`},
		{"COMMAND LIST FILTERBY PATTERN *|COUNT", `*1|$13 "command|count"`},
		{"COMMAND LIST FILTERBY ACLCAT hyperloglog", `*3|$5 "pfadd"|$7 "pfcount"|$7 "pfmerge"`},
		{"COMMAND LIST FILTERBY ACLCAT none", `*0`},
		{"COMMAND LIST FILTERBY MODULE json", `*0`},
		{"COMMAND LIST FILTERBY COLOR red", `-ERR syntax error`},
		{"COMMAND LIST x", `-ERR syntax error`},
		{"COMMAND GETKEYS SET a b", `*1|$1 "a"`},
		{"COMMAND", `$7 "hincrby"`},
		{"XLEN s", "Forerun's embedded store does not have it yet"},
		{"FCALL f 0", "keeps no functions: use EVAL"},
	} {
		if got := k.say(strings.Fields(c.command)...); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.command, got, c.want)
		}
	}
}

// TestAuthentication gives each user a space of its own.
func TestAuthentication(t *testing.T) {
	var store state.Store
	d := openWith(t, resp.Options{Authenticate: func(_ context.Context, user, password string) (resp.Session, error) {
		switch {
		case user == "broken":
			return nil, errors.New("the registry is away")
		case password != "right":
			return nil, forerun.Errorf(forerun.Unauthorized, "", "No.")
		}
		return session{store, user}, nil
	}}, vfs.NewMem())
	store = d.store
	k := talkTo(t, "tcp", d.address)
	for _, c := range []struct{ command, want string }{
		{"GET a", "-NOAUTH Authentication required."},
		{"PING", "-NOAUTH Authentication required."},
		{"NONSENSE", "-NOAUTH Authentication required."},
		{"HELLO 3", "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time"},
		{"AUTH ada wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH broken right", "-ERR the registry is away"},
		{"HELLO 2 AUTH ada wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"AUTH ada right", "+OK"},
		{"SET a hers", "+OK"},
		{"AUTH ada wrong", "-WRONGPASS invalid username-password pair or user is disabled."},
		{"GET a", `$4 "hers"`},
		{"AUTH bob right", "+OK"},
		{"GET a", "$-1"},
		{"RESET", "+RESET"},
		{"GET a", "-NOAUTH Authentication required."},
		{"AUTH right", "+OK"},
		{"GET a", "$-1"},
	} {
		if got := k.say(strings.Fields(c.command)...); got != c.want {
			t.Errorf("%s: %s, want %s", c.command, got, c.want)
		}
	}
	k = talkTo(t, "tcp", d.address)
	if got := k.say("HELLO", "3", "AUTH", "ada", "right"); !strings.HasPrefix(got, "%7|") {
		t.Errorf("HELLO with AUTH: %s", got)
	}
	if got := k.say("GET", "a"); got != `$4 "hers"` {
		t.Errorf("GET: %s", got)
	}
}

// counting is a session that counts the waits for the disk, and may fail at them.
type counting struct {
	session
	waits *atomic.Int64
	fail  error
}

func (c counting) Durable(ctx context.Context, v forerun.Version) error {
	c.waits.Add(1)
	if c.fail != nil {
		return c.fail
	}
	return c.session.Durable(ctx, v)
}

// serveOne serves the far end of a pipe, and returns the near one.
func serveOne(ctx context.Context, t *testing.T, hub *resp.Hub, s resp.Session) *talker {
	t.Helper()
	near, far := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		resp.NewServer(hub, resp.Options{}).ServeConn(ctx, far, s)
	}()
	t.Cleanup(func() {
		near.Close()
		<-done
	})
	return newTalker(t, near)
}

func TestPipelineWaitsOnce(t *testing.T) {
	waits := new(atomic.Int64)
	d := open(t)
	k := serveOne(t.Context(), t, d.hub, counting{session{d.store, "s"}, waits, nil})
	if got := k.raw("SET a 1\r\nINCR a\r\nINCR a\r\nGET a\r\nNONSENSE\r\nPING\r\n"); got != "+OK" {
		t.Error(got)
	}
	for _, want := range []string{":2", ":3", `$1 "3"`, "-ERR unknown command 'NONSENSE', with args beginning with: ", "+PONG"} {
		if got := k.reply(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if n := waits.Load(); n != 1 {
		t.Errorf("a pipeline waits %d times for the disk", n)
	}
	k.raw("PING\r\n")
	if n := waits.Load(); n != 1 {
		t.Errorf("PING waits for the disk")
	}
}

func TestNoReplyThatIsNotOnDisk(t *testing.T) {
	d := open(t)
	k := serveOne(t.Context(), t, d.hub, counting{session{d.store, "s"}, new(atomic.Int64), errors.New("the disk is gone\r\n+OK")})
	if got := k.raw("SET a 1\r\nINCR a\r\n"); got != "-ERR the disk is gone  +OK" {
		t.Error(got)
	}
	if got := k.reply() + k.reply(); got != "-ERR the disk is gone  +OKEOF" {
		t.Error(got)
	}
}

// TestCut ends the context of a connection that waits, and of one that is being served.
func TestCut(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d := open(t)
	k := serveOne(ctx, t, d.hub, session{d.store, "s"})
	k.say("PING")
	cancel()
	if got := k.reply(); got != "EOF" {
		t.Errorf("after the cut: %s", got)
	}
}

func TestTooManyConnections(t *testing.T) {
	d := openWith(t, resp.Options{MaxConns: 1}, vfs.NewMem())
	k := talkTo(t, "tcp", d.address)
	k.say("PING")
	other := talkTo(t, "tcp", d.address)
	if got := other.reply() + " " + other.reply(); got != "-ERR max number of clients reached EOF" {
		t.Error(got)
	}
}

// TestBigValues sends what is larger than any buffer, among small things.
func TestBigValues(t *testing.T) {
	k := talkTo(t, "tcp", open(t).address)
	value := strings.Repeat("0123456789abcdef", 1<<16) // 1 MB
	if got := k.say("SET", "a", value); got != "+OK" {
		t.Fatal(got)
	}
	if got := k.say("GET", "a"); got != fmt.Sprintf("$%d %s", len(value), strconv.Quote(value)) {
		t.Errorf("%d bytes come back as %d", len(value), len(got))
	}
	go func() {
		for range 20 {
			_, _ = io.WriteString(k.conn, "GET a\r\n")
		}
	}()
	for range 20 {
		if got := k.reply(); len(got) < len(value) {
			t.Fatalf("%.40s", got)
		}
	}
}

// patient is a session that looks, at each of its commands, how many bytes the door has taken from the client.
type patient struct {
	session
	taken *metered
	done  *int
	most  *int
}

func (p patient) Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error) {
	*p.most = max(*p.most, p.taken.bytes-*p.done)
	*p.done += len("GET k\r\n")
	return p.session.Do(ctx, args)
}

// metered counts what is read from a connection.
type metered struct {
	net.Conn
	bytes int
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.bytes += n
	return n, err
}

// TestPipelineIsReadAsItIsAnswered: what waits for a function's turn holds up the commands behind it where they are, in the client's
// buffers: of 100,000 the door has taken no more than one reading.
func TestPipelineIsReadAsItIsAnswered(t *testing.T) {
	const commands = 100_000
	d := open(t)
	near, far := net.Pipe()
	taken, done, most := &metered{Conn: far}, 0, 0
	served := make(chan struct{})
	go func() {
		defer close(served)
		resp.NewServer(d.hub, resp.Options{}).ServeConn(t.Context(), taken, patient{session{d.store, "s"}, taken, &done, &most})
	}()
	go func() {
		_, _ = io.WriteString(near, strings.Repeat("GET k\r\n", commands)) // if it ends too early, so do the replies
	}()
	if _, err := io.ReadFull(near, make([]byte, commands*len("$-1\r\n"))); err != nil {
		t.Fatal(err)
	}
	near.Close()
	<-served
	if done != commands*len("GET k\r\n") || most > 64<<10 {
		t.Errorf("%d bytes of commands were executed, and up to %d taken before", done, most)
	}
}
