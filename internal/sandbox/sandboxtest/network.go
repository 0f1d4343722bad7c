package sandboxtest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

func (s *suite) testSockets(t *testing.T) {
	a := s.agent(t)
	for what, c := range map[string]struct {
		domain, kind, protocol int
		errno                  unix.Errno
	}{
		"route netlink": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, 0}, "packet": {unix.AF_PACKET, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT},
		"netlink of sockets": {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG, unix.EPROTONOSUPPORT},
		"generic netlink":    {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_GENERIC, unix.EPROTONOSUPPORT},
		"netlink of devices": {unix.AF_NETLINK, unix.SOCK_DGRAM, unix.NETLINK_KOBJECT_UEVENT, unix.EPROTONOSUPPORT},
		"alg":                {unix.AF_ALG, unix.SOCK_SEQPACKET, 0, unix.EAFNOSUPPORT}, "vsock": {unix.AF_VSOCK, unix.SOCK_STREAM, 0, unix.EAFNOSUPPORT},
		"bluetooth": {unix.AF_BLUETOOTH, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT}, "xdp": {unix.AF_XDP, unix.SOCK_RAW, 0, unix.EAFNOSUPPORT},
		"raw": {unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP, unix.EPERM}, "raw6": {unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_UDP, unix.EPERM},
		"old packet": {unix.AF_INET, unix.SOCK_PACKET, 0, unix.EPERM}, "ping": {unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP, unix.EPROTONOSUPPORT},
		"mptcp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, unix.EPROTONOSUPPORT}, "sctp": {unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP, unix.EPROTONOSUPPORT},
		"tcp": {unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_NONBLOCK, 0, 0}, "udp6": {unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, unix.IPPROTO_UDP, 0},
		"unix": {unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, 0},
	} {
		got := a.do(fmt.Sprintf("import _socket\ntry:\n    _socket.socket(%d, %d, %d); result = 0\nexcept OSError as e:\n    result = e.errno", c.domain, c.kind, c.protocol))
		if got != fmt.Sprint(int(c.errno)) {
			t.Errorf("a %s socket: errno %s; want %d", what, got, c.errno)
		}
	}
}

func (s *suite) testOptions(t *testing.T) {
	a := s.agent(t)
	for what, c := range map[string][2]int{
		"source routes": {unix.IPPROTO_IP, unix.IP_OPTIONS}, "fast open": {unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT}, "kernel TLS": {unix.IPPROTO_TCP, unix.TCP_ULP},
		"senders' processes": {unix.SOL_SOCKET, unix.SO_PASSPIDFD},
	} {
		a.expect("92", fmt.Sprintf("import socket\ns = socket.socket()\ntry:\n    s.setsockopt(%d, %d, 1); result = 'set'\nexcept OSError as e:\n    result = e.errno # %s", c[0], c[1], what))
	}
	a.expect("92", fmt.Sprintf("import socket\ns = socket.socket(fileno=3)\ntry:\n    s.getsockopt(%d, %d, 4); result = 'a descriptor of the server'\nexcept OSError as e:\n    result = e.errno", unix.SOL_SOCKET, unix.SO_PEERPIDFD))
	a.expect("95", fmt.Sprintf("import socket\ns = socket.socket()\ntry:\n    s.sendto(b'x', %d, ('127.0.0.1', 1)); result = 'sent'\nexcept OSError as e:\n    result = e.errno", unix.MSG_FASTOPEN))
	a.expect("95", fmt.Sprintf("import socket\ns = socket.socket()\ntry:\n    s.sendmsg([b'x'], [], %d, ('127.0.0.1', 1)); result = 'sent'\nexcept OSError as e:\n    result = e.errno", unix.MSG_FASTOPEN))
	a.expect("1", fmt.Sprintf("import fcntl, socket\ns = socket.socket()\ntry:\n    fcntl.ioctl(s, %d, bytes(40)); result = 'set'\nexcept OSError as e:\n    result = e.errno", unix.SIOCSIFFLAGS))
}

// testInterfaces lists the interfaces in each way that libraries have: a sandbox has its loopback, sees none of the host's, and changes nothing.
func (s *suite) testInterfaces(t *testing.T) {
	a := s.agent(t)
	const netlink = `
import socket, struct
def ask(kind, flags, body, to=(0, 0)):
    n = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    n.settimeout(10)
    n.sendto(struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body, to)
    return n.recv(1 << 16)
def refused(kind, body): # the number of the error in the kernel's answer
    answer = ask(kind, 5, body)
    return -struct.unpack("=i", answer[16:20])[0] if struct.unpack("=H", answer[4:6])[0] == 2 else "no error"
`
	a.expect("[(1, 'lo')]", "import socket\nresult = socket.if_nameindex()")
	a.expect("(1, 'lo')", "import socket\nresult = (socket.if_nametoindex('lo'), socket.if_indextoname(1))") // by ioctl
	a.expect("True", netlink+fmt.Sprintf("result = b'lo\\0' in ask(%d, 0x301, bytes(16))", unix.RTM_GETLINK))
	a.expect("True", netlink+fmt.Sprintf("result = socket.inet_aton('127.0.0.1') in ask(%d, 0x301, bytes(8))", unix.RTM_GETADDR))
	for what, c := range map[string]struct {
		kind int
		body string
	}{
		"an address":         {unix.RTM_NEWADDR, `struct.pack("=BBBBI", 2, 32, 0, 0, 1) + struct.pack("=HH4s", 8, 2, bytes([10, 9, 8, 7]))`},
		"no address":         {unix.RTM_DELADDR, `struct.pack("=BBBBI", 2, 8, 0, 254, 1) + struct.pack("=HH4s", 8, 2, bytes([127, 0, 0, 1]))`},
		"an interface":       {unix.RTM_NEWLINK, `bytes(16) + struct.pack("=HH4s", 8, 3, b"new")`},
		"an interface's end": {unix.RTM_SETLINK, `struct.pack("=BBHiII", 0, 0, 0, 1, 0, 1)`},
		"a route":            {unix.RTM_NEWROUTE, `struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 4, 0, 1, 0) + struct.pack("=HHi", 8, 4, 1)`},
		"a neighbour":        {unix.RTM_NEWNEIGH, `bytes(12)`},
		"a rule":             {unix.RTM_NEWRULE, `bytes(12)`},
		"another namespace":  {unix.RTM_GETLINK, `struct.pack("=BBHiII", 0, 0, 0, 1, 0, 0) + struct.pack("=HHi", 8, 46, 0)`}, // IFLA_TARGET_NETNSID
	} {
		if got := a.do(netlink + fmt.Sprintf("result = refused(%d, %s)", c.kind, c.body)); got != "1" && (what != "another namespace" || got != "22") { // there is none of that number
			t.Errorf("%s: errno %s", what, got)
		}
	}
	// One process cannot reach another by it, in none of three ways.
	const pair = netlink + "import os\nlistening = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\nlistening.bind((0, 1))\nother = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)\n"
	for _, try := range []string{"other.sendto(b'x' * 16, listening.getsockname())", "other.connect(listening.getsockname())", "other.sendmsg([b'x' * 16], [], 0, (0, 1))"} {
		a.expect("1", pair+"try:\n    "+try+"; result = 'done'\nexcept OSError as e:\n    result = e.errno")
	}
}

// testInterfacesOfTheHost asks, on a socket that was connected to the outside, which is the host's, for the interfaces.
func (s *suite) testInterfacesOfTheHost(t *testing.T) {
	a := s.agent(t)
	if !s.host.IsValid() {
		t.Skip("nothing counts as outside here")
	}
	_, port := echoTCP(t, s.host.String())
	a.expect("[1, 1, 1]", fmt.Sprintf(`
import fcntl, socket, struct
s = socket.create_connection((%q, %d))
def ask(request, argument):
    try:
        fcntl.ioctl(s, request, argument)
        return "answered"
    except OSError as e:
        return e.errno
result = [ask(%d, struct.pack("16sI20x", b"", 1)), ask(%d, struct.pack("iQ", 0, 0)), ask(%d, struct.pack("16s24x", b"lo"))]`,
		s.host.String(), port, unix.SIOCGIFNAME, unix.SIOCGIFCONF, unix.SIOCGIFADDR))
}

func (s *suite) testDoors(t *testing.T) {
	a := s.agent(t)
	for door, port := range map[string]int{sandbox.DoorState: 6379, sandbox.DoorAPI: 3233} {
		a.send(fmt.Sprintf("import socket\ns = socket.create_connection(('127.0.0.1', %d))\ns.sendall(b'ping')\nresult = s.recv(4).decode()", port))
		c := accept(t, a.Door(door))
		b := make([]byte, 4)
		if _, err := io.ReadFull(c, b); err != nil || string(b) != "ping" {
			t.Fatalf("at the door %s: %q, %v", door, b, err)
		}
		_, _ = c.Write([]byte("pong"))
		if got := a.receive(); got != "pong" {
			t.Errorf("through the door %s: %q", door, got)
		}
	}
}

func (s *suite) testOutput(t *testing.T) {
	a := s.agent(t)
	a.expect("", "import os\nos.write(1, b'one ')\nos.write(2, b'two')\nopen('/dev/stdout', 'w').write('three ')")
	stdout, stderr := a.Output()
	b := make([]byte, 64)
	if n, err := stdout.Read(b); err != nil || string(b[:n]) != "one three " {
		t.Errorf("standard output: %q, %v", b[:n], err)
	}
	if n, err := stderr.Read(b); err != nil || string(b[:n]) != "two" {
		t.Errorf("standard error: %q, %v", b[:n], err)
	}
}

// connectResult is a program that connects with TCP and results in an error number.
const connectResult = "import socket\ns = socket.socket()\ns.settimeout(5)\nresult = s.connect_ex(('%v', %d))"

func (s *suite) testLoopback(t *testing.T) {
	_, port := echoTCP(t, "127.0.0.1")
	a := s.agent(t)
	for _, address := range []string{"127.0.0.1", "127.0.0.2", "0.0.0.0"} {
		a.expect("111", fmt.Sprintf(connectResult, address, port))
	}
	a.expect("111", fmt.Sprintf("import socket\ns = socket.socket(socket.AF_INET6)\nresult = s.connect_ex(('::ffff:127.0.0.1', %d))", port))
}

func (s *suite) needHost(t *testing.T) {
	t.Helper()
	if !s.host.IsValid() {
		t.Skip("the tests have no network namespace of their own")
	}
}

func (s *suite) testEgressTCP(t *testing.T) {
	s.needHost(t)
	_, port := echoTCP(t, s.host.String())
	a := s.agent(t, func(spec *sandbox.Spec) { spec.Argv = append(spec.Argv[:1], "-c", agentProgram) })
	prepare := fmt.Sprintf("import os, socket, select, struct\npeer = ('%v', %d)\n", s.host, port)
	for what, c := range map[string][2]string{
		"blocking":     {"echo", "s = socket.create_connection(peer)\ns.sendall(b'echo')\nresult = s.recv(4).decode()"},
		"with timeout": {"echo", "s = socket.create_connection(peer, timeout=5)\ns.sendall(b'echo')\nresult = s.recv(4).decode()"},
		"mapped":       {"echo", "s = socket.socket(socket.AF_INET6)\ns.connect(('::ffff:' + peer[0], peer[1]))\ns.sendall(b'echo')\nresult = s.recv(4).decode()"},
		"non-blocking": {"115 0 106 echo", `
s = socket.socket(); s.setblocking(False)
first = s.connect_ex(peer)
select.select([], [s], [], 5)
code = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
again = s.connect_ex(peer)
s.send(b'echo'); select.select([s], [], [], 5)
result = '%d %d %d %s' % (first, code, again, s.recv(4).decode())`},
		"refused":              {"111", "result = socket.socket().connect_ex((peer[0], 1))"},
		"refused non-blocking": {"115 111", "s = socket.socket(); s.setblocking(False)\nfirst = s.connect_ex((peer[0], 1))\nselect.select([], [s], [], 5)\nresult = '%d %d' % (first, s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))"},
		"peer":                 {"True", "s = socket.create_connection(peer)\nresult = s.getpeername() == peer"},
		"options": {"1 1 7 True True (0, 0) (1, 0)", `
def linger(s): return struct.unpack('ii', s.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 7)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 3))
waits = linger(s)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
s.connect(peer)
result = '%d %d %d %s %s %s %s' % (s.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), s.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    s.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE), s.getblocking(), not os.get_inheritable(s.fileno()),
    waits, linger(s))`},
		"inheritable": {"True", "s = socket.socket(); s.set_inheritable(True); s.connect(peer)\nresult = os.get_inheritable(s.fileno())"},
		"threads": {"16", `
import threading
done = []
def one():
    s = socket.create_connection(peer); s.sendall(b'echo'); done.append(s.recv(4))
threads = [threading.Thread(target=one) for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()
result = len(done)`},
		"asyncio": {"echo", `
import asyncio
async def main():
    r, w = await asyncio.open_connection(*peer)
    w.write(b'echo'); await w.drain()
    return (await r.readexactly(4)).decode()
result = asyncio.run(main())`},
		"own port": {"22", `
s = socket.create_connection(peer); s.shutdown(socket.SHUT_WR); s.recv(1)
try: s.bind(('', 8080)); result = 'bound'
except OSError as e: result = e.errno`},
	} {
		t.Run(what, func(t *testing.T) { agent{a.Sandbox, t}.expect(c[0], prepare+c[1]) })
	}
	t.Run("IPv6", func(t *testing.T) {
		if !s.host6.IsValid() {
			t.Skip("this machine has no IPv6 address")
		}
		_, port := echoTCP(t, s.host6.String())
		agent{a.Sandbox, t}.expect("echo", fmt.Sprintf("import socket\ns = socket.create_connection(('%v', %d))\ns.sendall(b'echo')\nresult = s.recv(4).decode()", s.host6, port))
		agent{a.Sandbox, t}.expect("101", fmt.Sprintf("import socket\nresult = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect_ex(('%v', 1))", s.host6)) // no datagrams
	})
	t.Run("urllib", func(t *testing.T) {
		l, err := net.Listen("tcp", net.JoinHostPort(s.host.String(), "0"))
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) })}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		agent{a.Sandbox, t}.expect("1048576", fmt.Sprintf("import urllib.request\nresult = len(urllib.request.urlopen('http://%v/', timeout=5).read())", l.Addr()))
	})
}

// testEgressPlaces: a socket is connected wherever its process has it.
func (s *suite) testEgressPlaces(t *testing.T) {
	s.needHost(t)
	_, port := echoTCP(t, s.host.String())
	a := s.agent(t)
	prepare := fmt.Sprintf("import select, socket\npeer = ('%v', %d)\n", s.host, port)
	for what, c := range map[string][2]string{
		"copied before": {"echo", "s = socket.socket(); c = s.dup(); s.connect(peer)\nc.sendall(b'echo')\nresult = c.recv(4).decode()"},
		"watched before": {"4 1 echo", `
s = socket.socket(); s.setblocking(False); watch = select.epoll(); watch.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET); watch.poll(0)
s.connect_ex(peer)
connected = watch.poll(5)
s.send(b'echo'); watch.modify(s, select.EPOLLIN)
answered = watch.poll(5)
watch.unregister(s)
result = '%d %d %s' % (connected[0][1], answered[0][1], s.recv(4).decode())`},
	} {
		t.Run(what, func(t *testing.T) { agent{a.Sandbox, t}.expect(c[0], prepare+c[1]) })
	}
}

// testEgressTurned tries to lead a socket that was opened for one address to another.
func (s *suite) testEgressTurned(t *testing.T) {
	s.needHost(t)
	_, port := echoTCP(t, s.host.String())
	forbidden, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer forbidden.Close()
	a := s.agent(t)
	prepare := fmt.Sprintf("import socket, threading\nforbidden = ('127.0.0.1', %d)\n", forbidden.Addr().(*net.TCPAddr).Port) + fmt.Sprintf(`
s = socket.create_connection(('%v', %d)); s.shutdown(socket.SHUT_WR); s.recv(1); s.settimeout(0.2)
`, s.host, port)
	if got := a.do(prepare + "result = s.connect_ex(forbidden)"); got == "0" {
		t.Error("a socket that was opened for another address connects to the host's loopback")
	}
	a.expect("done", prepare+`
# A thread puts the socket at the number with which another one connects. What the calls say means little then; the
# listener knows.
import os, time
done = time.monotonic() + 1
def swap(fd):
    while time.monotonic() < done:
        os.dup2(fresh.fileno(), fd); os.dup2(s.fileno(), fd)
spot = socket.socket(); spot.settimeout(0.05); fresh = socket.socket()
threading.Thread(target=swap, args=(spot.fileno(),)).start()
while time.monotonic() < done:
    spot.connect_ex(forbidden)
result = 'done'`)
	_ = forbidden.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
	if c, err := forbidden.Accept(); err == nil {
		c.Close()
		t.Error("a sandbox has reached the host's loopback")
	}
	t.Run("dissolved", func(t *testing.T) { s.testEgressDissolved(t, forbidden) })
	a.expect("13", prepare+`
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1) # over what is left of its connection
try: s.listen(5); result = 'it listens on the network of the host'
except OSError as e: result = e.errno`)
}

// asks is an expression that says whether a TCP socket asks somebody for a connection: that packet has left, whoever answers it.
func asks(socket string) string {
	const synSent = 2
	return fmt.Sprintf("%s.getsockopt(%d, %d) & 255 == %d", socket, unix.IPPROTO_TCP, unix.TCP_INFO, synSent)
}

// testEgressDissolved has the kernel forget what such a socket is connected with: it can be led elsewhere no more than before.
func (s *suite) testEgressDissolved(t *testing.T, forbidden net.Listener) {
	_, port := echoTCP(t, s.host.String())
	a := s.withLibc(t)
	prepare := libc + fmt.Sprintf(`
import os, socket
s = socket.create_connection(('%v', %d)); s.settimeout(0.2)
before = os.fstat(s.fileno()).st_ino
dissolved = call(%d, s.fileno(), bytes(16), 16) # AF_UNSPEC
`, s.host, port, unix.SYS_CONNECT)
	if got := a.do(prepare + "result = dissolved"); got != "0" && got != "13" {
		t.Errorf("connecting to no address: errno %s", got)
	}
	lost := forbidden.Addr().(*net.TCPAddr).Port
	a.expect("None", prepare+fmt.Sprintf("if s.connect_ex(('127.0.0.1', %d)) == 0 or %s: result = 'connected'\nelse: result = None", lost, asks("s")))
	a.expect("None", prepare+fmt.Sprintf(`
# A thread changes the address that another one connects with, and which socket. What the calls say means little then.
import random, struct, threading, time
s.setblocking(False)
own, local = socket.socket(), socket.socket(socket.AF_UNIX)
own.setblocking(False)
addresses = [bytes(16), struct.pack('=H', socket.AF_UNIX) + b'/tmp/none' + bytes(5),
    struct.pack('=H', socket.AF_INET) + struct.pack('!H', %d) + socket.inet_aton('127.0.0.1') + bytes(8)]
place, spot, result, over = ctypes.create_string_buffer(16), os.dup(own.fileno()), None, time.monotonic() + 0.5
def change():
    while time.monotonic() < over:
        os.dup2(random.choice([s, own, local]).fileno(), spot)
        ctypes.memmove(place, random.choice(addresses), 16)
threading.Thread(target=change).start()
while time.monotonic() < over:
    call(%d, spot, place, 16)
    if %s: result, over = 'led elsewhere', 0
`, lost, unix.SYS_CONNECT, asks("s")))
	if got := a.do(prepare + "result = s.connect_ex(('169.254.169.254', 80))"); got != "13" {
		t.Errorf("a denied address: errno %s", got)
	}
	// To what is allowed the guard connects a new socket, or it says that the old one still has its connection.
	if got := a.do(prepare + fmt.Sprintf("s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)\ne = s.connect_ex(('%v', %d))\nresult = (e, os.fstat(s.fileno()).st_ino == before)", s.host, port)); got != "(0, False)" && got != "(106, True)" {
		t.Errorf("an allowed address: errno, and whether it is the same socket: %s", got)
	}
	_ = forbidden.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond))
	if c, err := forbidden.Accept(); err == nil {
		c.Close()
		t.Error("a socket that was opened for another address connects to the host's loopback")
	}
}

func (s *suite) testUnixSockets(t *testing.T) {
	a := s.agent(t)
	for what, name := range map[string]string{"absolute": "'/tmp/s1'", "relative": "'s2'", "from above": "'../tmp/s3'", "abstract": `'\0name'`} {
		a.expect("ok", fmt.Sprintf(`
import os, socket, threading
os.chdir('/tmp')
l = socket.socket(socket.AF_UNIX); l.bind(%[1]s); l.listen(1)
c = socket.socket(socket.AF_UNIX); c.connect(%[1]s)
d, _ = l.accept(); d.sendall(b'ok')
result = c.recv(2).decode() # %[2]s
`, name, what))
	}
	a.expect("2", "import socket\nresult = socket.socket(socket.AF_UNIX).connect_ex('/tmp/none')")
	a.expect("13 True True", `
import os, socket, struct
l = socket.socket(socket.AF_UNIX); l.bind('/tmp/s4'); l.listen(1)
os.chmod('/tmp/s4', 0); refused = socket.socket(socket.AF_UNIX).connect_ex('/tmp/s4'); os.chmod('/tmp/s4', 0o600)
c = socket.socket(socket.AF_UNIX); c.connect('/tmp/s4')
connected, listens = (struct.unpack('3i', s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)) for s in (l.accept()[0], c))
own = 0, os.getuid(), os.getgid()
result = '%d %s %s' % (refused, connected == own, listens == own)
`)
	a.expect("11 11 0", `
import os, socket, struct, threading, time
l = socket.socket(socket.AF_UNIX); l.bind('/tmp/s5'); l.listen(0)
def connect(timeout=None):
    c = socket.socket(socket.AF_UNIX); kept.append(c)
    if timeout is not None: c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, timeout)
    return c.connect_ex('/tmp/s5')
kept, waited = [], []
connect()
limited = connect(struct.pack('ll', 0, 20000))
c = socket.socket(socket.AF_UNIX); c.setblocking(False); at_once = c.connect_ex('/tmp/s5')
t = threading.Thread(target=lambda: waited.append(connect())); t.start()
time.sleep(0.02); l.accept(); t.join()
result = '%d %d %d' % (limited, at_once, *waited)
`)
	a.expect("200", `
import socket, threading
r = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); r.bind('/tmp/s6')
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind('/tmp/s7')
r.connect('/tmp/s7')
got = []
def receive():
    try:
        while len(got) < 200: got.append(s.recv(9))
    except OSError as e: got[:] = [e]
t = threading.Thread(target=receive); t.start()
for _ in range(200): s.connect('/tmp/s6'); r.send(b'ok')
t.join()
result = len(got)
`)
	a.expect("ok", `
import os, socket
x, y = socket.socketpair()
r, w = os.pipe()
socket.send_fds(x, [b'm'], [w])
os.write(socket.recv_fds(y, 1, 1)[1][0], b'ok')
result = os.read(r, 2).decode()`)
}

func (s *suite) testEgressUDP(t *testing.T) {
	s.needHost(t)
	port, other := echoUDP(t, s.host.String()), echoUDP(t, s.host.String())
	a := s.agent(t)
	prepare := fmt.Sprintf("import socket\npeer, other = ('%v', %d), ('%[1]v', %d)\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)\n", s.host, port, other)
	for what, c := range map[string][2]string{
		"sendto":         {"b'echo' True", "s.sendto(b'echo', peer)\nb, a = s.recvfrom(9)\nresult = '%s %s' % (b, a == peer)"},
		"sendmsg":        {"b'echo' True", "s.sendmsg([b'ec', b'ho'], [], 0, peer)\nb, a = s.recvfrom(9)\nresult = '%s %s' % (b, a == peer)"},
		"connect":        {"b'echo' True", "s.connect(peer)\ns.send(b'echo')\nresult = '%s %s' % (s.recv(9), s.getpeername() == peer)"},
		"second connect": {"b'one' b'two'", "s.connect(peer); s.send(b'one'); one = s.recv(9)\ns.connect(other); s.send(b'two')\nresult = '%s %s' % (one, s.recv(9))"},
		"two peers":      {"True", "s.sendto(b'x', peer); s.sendto(b'y', other)\nresult = {s.recvfrom(9)[1], s.recvfrom(9)[1]} == {peer, other}"},
		"large":          {"60000", "s.sendto(b'x' * 60000, peer)\nresult = len(s.recv(65536))"},
		"empty":          {"0", "s.sendto(b'', peer)\nresult = len(s.recv(9))"},
	} {
		t.Run(what, func(t *testing.T) { agent{a.Sandbox, t}.expect(c[0], prepare+c[1]) })
	}
}

func (s *suite) testEgressDenied(t *testing.T) {
	a := s.agentOf(t, s.closed)
	addresses := []string{"10.0.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255"}
	if s.host.IsValid() {
		addresses = append(addresses, s.host.String())
	}
	for _, address := range addresses {
		a.expect("13", fmt.Sprintf(connectResult, address, 80))
		if sentences := a.Refused(); len(sentences) != 1 || !strings.Contains(sentences[0], address+":80") {
			t.Errorf("the refusal of %s is told as %q", address, sentences)
		}
	}
	a.expect("13", "import socket\ns = socket.socket(socket.AF_INET6)\nresult = s.connect_ex(('::ffff:10.0.0.1', 80))")
	a.expect("13", "import socket\ns = socket.socket(socket.AF_INET6)\nresult = s.connect_ex(('fd00::1', 80))")
	a.expect("PermissionError: [Errno 13] Permission denied", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.0.0.1', 53))")
	// sendmsg is not held: the relay drops the datagram.
	if sentences := a.Refused(); len(sentences) != 3 {
		t.Errorf("three refusals are told as %q", sentences)
	}
	<-a.Denied()
	a.expect("sent", "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg([b'x'], [], 0, ('10.9.9.9', 53))\nresult = 'sent'")
	select {
	case <-a.Denied():
		if sentences := a.Refused(); len(sentences) != 1 || !strings.Contains(sentences[0], "10.9.9.9:53") {
			t.Errorf("the refusal is told as %q", sentences)
		}
	case <-time.After(patience):
		t.Error("the relay tells nobody what it refused")
	}
}

// testEgressWaiting has a connect that gets no answer: it must hold up no other, and be gone with its process.
func (s *suite) testEgressWaiting(t *testing.T) {
	s.needHost(t)
	silent := silentTCP(t, s.host.As4())
	_, port := echoTCP(t, s.host.String())
	a := s.agent(t)
	before := connecting(s.host.String(), silent)
	a.host(fmt.Sprintf(`
import threading
def hang():
    socket.create_connection(('%v', %d))
if os.fork() == 0:
    for _ in range(8): threading.Thread(target=hang).start()
    time.sleep(1000)
time.sleep(0.05)`, s.host, silent))
	a.expect("0", fmt.Sprintf(connectResult, s.host, port))
	eventually(t, "the connects begin", func() bool { return connecting(s.host.String(), silent) >= before+8 })
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := connecting(s.host.String(), silent); n > before {
		t.Errorf("%d connects of killed processes go on", n-before)
	}
	a.expect("0", fmt.Sprintf(connectResult, s.host, port))
}
