package sandboxtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// atOnce is how many processes try at the same time: the suite runs three times, so that there are more than 1,000 for it all.
const atOnce = 7

// soakTimes is how often each stage is tried: the more, the rarer what could go wrong.
func soakTimes() int {
	if n, err := strconv.Atoi(os.Getenv("FORERUN_SOAK_TIMES")); err == nil {
		return n
	}
	return 4
}

// withLibrary is an agent whose Python has its standard library's C modules.
func withLibrary(spec *sandbox.Spec) { spec.Argv = append(spec.Argv[:1], "-c", agentProgram) }

// hold shuts an agent's ways out.
func (a agent) hold(hosts ...string) sandbox.Held {
	a.t.Helper()
	held, err := a.Hold(a.t.Context(), hosts)
	if err != nil {
		a.t.Fatal(err)
	}
	return held
}

func (a agent) release() {
	a.t.Helper()
	if _, err := a.Release(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

// Waiting is how much of what processes in a sandbox send to the outside waits since a Hold.
func Waiting(t testing.TB, s sandbox.Sandbox) int {
	t.Helper()
	n, err := s.(interface {
		Waiting(ctx context.Context) (int, error)
	}).Waiting(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// awaitWaiting waits until so much does.
func (a agent) awaitWaiting(n int) {
	a.t.Helper()
	eventually(a.t, fmt.Sprintf("%d wait", n), func() bool { return Waiting(a.t, a.Sandbox) >= n })
}

// told waits until a program is about to send.
func (a agent) told() {
	a.t.Helper()
	stdout, _ := a.Output()
	if _, err := io.ReadFull(stdout, make([]byte, 1)); err != nil {
		a.t.Fatal(err)
	}
}

// counter is a host outside, which is the nameserver too.
func (s *suite) counter(t *testing.T) *Counter {
	t.Helper()
	s.needHost(t)
	c := NewCounter(t)
	c.ServeNames(t)
	return c
}

func (s *suite) testHoldSquashed(t *testing.T) {
	c := s.counter(t)
	a, tried, waited := s.agent(t, withLibrary), 0, 0
	for effect := range effects {
		for n := range soakTimes() {
			a.hold()
			if n%2 == 1 {
				a.hold() // as the next activation does where this one ended before it was promoted
			}
			a.send(fmt.Sprintf("import os\nfor _ in range(%d):\n    if os.fork() == 0: break\nos.write(1, b'!')\n", atOnce-1) + s.program(effect, "squashed", c))
			a.told()
			if n%2 == 0 { // else they are killed on their way there
				for range 2*atOnce - 1 {
					a.told()
				}
				a.awaitWaiting(atOnce)
				waited += atOnce
			}
			tried += atOnce
			if _, err := a.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.receive()
			a.drain()
			if n%3 == 0 { // what waited is gone, also for one that runs ahead
				a.hold()
			}
			a.release()
			s.after(a, c)
			if _, err := a.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			if seen := c.Take("squashed"); seen != 0 {
				t.Errorf("%s: what was squashed has reached the outside", effect)
			}
		}
	}
	t.Logf("%d processes tried, of which %d waited when they were squashed", tried, waited)
}

// after has an agent that is released reach the outside, in the ways that come behind whatever else reached it.
func (s *suite) after(a agent, c *Counter) {
	a.t.Helper()
	for _, effect := range []string{"blocking", "udp", "question"} {
		a.expect("after", s.program(effect, "after", c)+".strip()")
	}
	a.drain()
}

// drain reads what the standard output has.
func (a agent) drain() {
	stdout, _ := a.Output()
	b := make([]byte, 64)
	raw, err := stdout.SyscallConn()
	if err != nil {
		a.t.Fatal(err)
	}
	_ = raw.Read(func(fd uintptr) bool {
		_, _ = readFD(fd, b)
		return true
	})
}

// testHoldWaiting: what waits is counted, what was killed not, nor does that count for how long anything has waited. That somebody has
// waited is known until the next Hold.
func (s *suite) testHoldWaiting(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	for _, effect := range []string{"blocking", "non-blocking", "question", "udp"} {
		a.hold()
		if a.Reached() {
			t.Errorf("%s: something has waited before it", effect)
		}
		a.send(s.program(effect, "squashed", c))
		a.awaitWaiting(1)
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.receive()
		if a.Reached() != (effect != "udp") {
			t.Errorf("%s: that it has waited is known: %v", effect, a.Reached())
		}
		if n := Waiting(t, a.Sandbox); n != 0 {
			t.Errorf("%s: %d of what was killed wait", effect, n)
		}
		a.hold()
		began := time.Now()
		a.send(s.program(effect, "promoted", c))
		a.awaitWaiting(1)
		waited, err := a.Release(t.Context())
		if most := time.Since(began); err != nil || waited > most || (waited == 0) != (effect == "udp") { // datagrams have nobody wait
			t.Errorf("%s: it has waited for %v of %v, %v", effect, waited, most, err)
		}
		a.receive()
		a.drain()
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) testHoldPromoted(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	for effect := range effects {
		a.hold()
		a.send(s.program(effect, "promoted", c))
		a.told()
		a.release()
		if got := strings.TrimSpace(a.receive()); got != "promoted" {
			t.Errorf("%s: %q came back", effect, got)
		}
		if seen := c.Take("promoted"); seen != 1 {
			t.Errorf("%s: what was promoted has reached the outside %d times", effect, seen)
		}
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// testHoldTaken has processes send datagrams and end: what waits of them can be sent later, or never.
func (s *suite) testHoldTaken(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	for _, word := range []string{"later", "never", "later", "released"} {
		a.hold()
		a.expect("sent", effectHeader+fmt.Sprintf(`
for to in (('%v', %d), ('%v', %d)):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(3): s.sendto(b'%s', to)
result = 'sent'`, s.host, c.UDP, s.host, c.UDP, word))
		if word == "released" { // nothing is there to be taken
			a.release()
		}
		send := a.TakeHeld()
		if (send == nil) != (word == "released") {
			t.Fatalf("%s: something waits: %v", word, send != nil)
		}
		if a.TakeHeld() != nil {
			t.Errorf("%s: what waits can be taken twice", word)
		}
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.release()
		if word == "later" {
			if seen := c.Take(word); seen != 0 {
				t.Errorf("what is to be sent later has arrived %d times before", seen)
			}
			send()
		}
		a.expect("after", s.program("udp", "after", c)+".strip()") // comes behind the others
		a.drain()
		want := 6
		if word == "never" {
			want = 0
		}
		if seen := c.Take(word); seen != want {
			t.Errorf("%s: %d of %d datagrams have arrived", word, seen, want)
		}
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) testHoldInside(t *testing.T) {
	a := s.agent(t, withLibrary)
	a.hold()
	a.send("import socket\ns = socket.create_connection(('127.0.0.1', 6379))\ns.sendall(b'ping')\nresult = s.recv(4).decode()")
	conn := accept(t, a.Door(sandbox.DoorState))
	if _, err := io.ReadFull(conn, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	_, _ = conn.Write([]byte("pong"))
	if got := a.receive(); got != "pong" {
		t.Errorf("a door answered %q while the outside was held", got)
	}
	a.expect("[(1, 'lo')] 1", "import socket\nresult = f\"{socket.if_nameindex()} {socket.if_nametoindex('lo')}\" # by netlink and by ioctl")
	if a.Reached() {
		t.Error("a listing of the interfaces counts as reaching for the outside")
	}
	a.expect("1", "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nc.syscall(425, 1, None)\nresult = ctypes.get_errno() # io_uring_setup")
}

// testHoldClosed: a connection that waits for its turn is not put in the place of a file that has got its descriptor's number meanwhile, nor
// does it stay where another thread has closed that.
func (s *suite) testHoldClosed(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	for then, want := range map[string]string{
		"f = os.open('/tmp/own', os.O_RDWR | os.O_CREAT)": "True True b'mine'", // at the same number
		"f = number": "True False b''",
	} {
		a.hold()
		a.send(fmt.Sprintf(`
import os, socket, stat, threading
s = socket.socket()
number = s.fileno()
t = threading.Thread(target=s.connect_ex, args=(('%v', %d),))
t.start()
door = socket.create_connection(('127.0.0.1', 6379))
door.recv(2)
os.close(number)
%s
door.sendall(b'ok')
t.join()
try: mine = stat.S_ISREG(os.fstat(number).st_mode)
except OSError: mine = False
if mine: os.write(number, b'mine')
result = '%%s %%s %%s' %% (f == number, mine, open('/tmp/own', 'rb').read() if mine else b'')
`, s.host, c.TCP("closed"), then))
		conn := accept(t, a.Door(sandbox.DoorState))
		a.awaitWaiting(1)
		_, _ = conn.Write([]byte("go"))
		if _, err := io.ReadFull(conn, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		a.release()
		if got := a.receive(); got != want {
			t.Errorf("%s: %s; want %s", then, got, want)
		}
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// testHeld looks at what a sandbox says that it cannot hold back.
func (s *suite) testHeld(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	if held := a.hold(); held.Connected || held.Shared {
		t.Errorf("a fresh sandbox: %+v", held)
	}
	a.release()
	a.send(effectHeader + fmt.Sprintf("s = socket.create_connection(('%v', %d)); tell(); os.read(s.fileno(), 1)", s.host, c.TCP("kept")))
	a.told()
	if held := a.hold(); !held.Connected {
		t.Error("a connection that was made before is not seen")
	}
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.receive()
	if held := a.hold(); held.Connected {
		t.Error("a connection of a process that is gone is seen")
	}
	a.release()
	a.send(effectHeader + fmt.Sprintf(`
ours, theirs = socket.socketpair()
s = socket.create_connection(('%v', %d)); socket.send_fds(ours, [b'x'], [s.fileno()]); s.close(); tell(); os.read(ours.fileno(), 1)`, s.host, c.TCP("kept")))
	a.told()
	for range 2 {
		if held := a.hold(); !held.Connected {
			t.Error("a connection that is on its way from one process to another is not seen")
		}
	}
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.receive()
	if held := a.hold(); held.Connected {
		t.Error("a connection that was on its way is seen when it is gone")
	}
	for what, code := range map[string]string{
		"shared memory":                        "import mmap; kept = mmap.mmap(-1, 4096)",
		"a file":                               "kept = open('/tmp/kept', 'w')",
		"a memory file":                        "import os; kept = os.memfd_create('kept')",
		"a counter":                            "import os; kept = os.eventfd(0)",
		"a poll":                               "import select; kept = select.epoll()",
		"shared memory that it only reads":     "import mmap; kept = mmap.mmap(-1, 4096, prot=mmap.PROT_READ)",
		"a file of its own that it only reads": "open('/tmp/kept', 'w').close(); kept = open('/tmp/kept')",
		"a memory file that it only reads":     "import os; f = os.memfd_create('kept'); kept = os.open('/proc/self/fd/%d' % f, os.O_RDONLY); os.close(f)",
		"pipes":                                "import os; kept = [os.pipe() for _ in range(3)]",
		"an output":                            "import os; f = os.open('/tmp/kept', os.O_WRONLY | os.O_CREAT); os.dup2(f, 1); os.close(f)",
		"its input":                            "import os; f = os.eventfd(0); os.dup2(f, 0); os.close(f)",
	} {
		b := s.agent(t, func(spec *sandbox.Spec) { spec.Argv = append(spec.Argv[:1], "-c", code+"\n"+agentProgram) })
		b.expect("ok", "result = 'ok'")
		if held := b.hold(); !held.Shared {
			t.Errorf("%s of the initializer is not seen", what)
		}
	}
}

func readFD(fd uintptr, b []byte) (int, error) { return unix.Read(int(fd), b) }
