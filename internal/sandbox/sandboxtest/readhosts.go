package sandboxtest

import (
	"fmt"
	"net"
	"strconv"
	"testing"
)

func (s *suite) testHoldReadHosts(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	if held := a.hold(s.host.String()); held.Connected {
		t.Error("a sandbox that never connected is said to be connected")
	}
	for _, effect := range []string{"blocking", "udp"} {
		a.expect("read", s.program(effect, "read", c)+".strip()")
		a.drain()
	}
	b := s.agent(t, withLibrary)
	b.hold(net.JoinHostPort(s.host.String(), strconv.Itoa(c.TCP("read"))))
	b.expect("read", s.program("blocking", "read", c)+".strip()")
	b.drain()
	b.send(s.program("udp", "other", c))
	b.told()
	if _, err := b.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.receive()
	b.release()
	if seen := c.Take("other"); seen != 0 {
		t.Error("a port that was not named has been reached")
	}
}

// reading is a program that asks for a name, connects to where it leads, and sends the name's word there.
func (s *suite) reading(family, word string, c *Counter) string {
	return s.program("", word, c) + fmt.Sprintf(`
to = socket.getaddrinfo(NAME, %d, socket.%s, socket.SOCK_STREAM)[0]
s = socket.socket(to[0]); s.connect(to[4]); s.sendall(WORD); result = s.recv(100).decode().strip()`, c.TCP(word), family)
}

// testHoldReadNames: of hosts that are named, the questions for them pass, and then connections to the addresses that were
// answered.
func (s *suite) testHoldReadNames(t *testing.T) {
	c := s.counter(t)
	named := net.JoinHostPort("read.test", strconv.Itoa(c.TCP("read")))
	a := s.agent(t, withLibrary)
	a.hold(named)
	for _, family := range []string{"AF_INET", "AF_INET6"} {
		a.expect("read", s.reading(family, "read", c))
	}
	b := s.agent(t, withLibrary)
	b.hold(named)
	b.expect("read", s.reading("AF_INET", "read", c))
	c.Take("")
	s.waits(b, c, "other", s.program("blocking", "other", c)) // another port of the same address
	s.waits(b, c, "other", s.program("name", "other", c))
	s.waits(b, c, "other", s.reading("AF_INET", "other", c))
	s.waits(b, c, "read", s.program("IPv6", "read", c))         // an address that nobody was told
	s.waits(b, c, "read", s.program("TCP question", "read", c)) // of streams it is not known what they ask
}

// testHoldReadNameLate: a connection to a named host's address waits until a nameserver has said that it is its address.
func (s *suite) testHoldReadNameLate(t *testing.T) {
	c := s.counter(t)
	a := s.agent(t, withLibrary)
	a.hold("read.test")
	a.expect("True read", s.program("", "read", c)+`
back, out = os.pipe()
if os.fork() == 0:
    s = socket.create_connection(peer); s.sendall(WORD); os.write(out, s.recv(100)); os._exit(0)
waits = not select.select([back], [], [], 0.1)[0]
socket.getaddrinfo(NAME, 80, socket.AF_INET); result = '%s %s' % (waits, os.read(back, 100).decode().strip())`)
}

// waits has a program try what may not be before its turn, and squashes it: nothing of it may be seen then or later.
func (s *suite) waits(a agent, c *Counter, word, program string) {
	a.t.Helper()
	a.expect("waits", fmt.Sprintf(`
import os, select
back, out = os.pipe()
if os.fork() == 0:
    exec(%q, {'__name__': 'handler'})
    os._exit(0)
os.close(out); result = 'came' if select.select([back], [], [], 0.1)[0] else 'waits'`, program))
	if _, err := a.Reset(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
	a.release()
	s.after(a, c)
	if seen := c.Take(word); seen != 0 {
		a.t.Errorf("%d times something came of\n%s", seen, program)
	}
	a.hold()
}
