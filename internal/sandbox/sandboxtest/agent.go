package sandboxtest

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// agentProgram is an initializer that forks a process for each Python program that it is sent, as a runtime does for
// each activation. A program answers, when it has ended, with its variable
// "result"; for one that is killed, or that calls os._exit, the initializer answers.
const agentProgram = `
import os, socket, struct, sys
control = socket.socket(fileno=3)
def read(n):
    b = b""
    while len(b) < n:
        more = control.recv(n - len(b))
        if not more: os._exit(0)
        b += more
    return b
def answer(text):
    b = text.encode("utf-8", "replace")
    control.sendall(struct.pack("!I", len(b)) + b)
while True:
    source = read(struct.unpack("!I", read(4))[0]).decode()
    try:
        while os.waitpid(-1, os.WNOHANG)[0]: pass # what was killed still counts as a process
    except ChildProcessError: pass
    back, out = os.pipe()
    os.set_blocking(back, False)
    pid = os.fork()
    if pid == 0:
        names = {"__name__": "handler"}
        try:
            exec(source, names)
            text = str(names.get("result", ""))
        except BaseException as e:
            text = type(e).__name__ + ": " + str(e)
        os.write(out, b"=" + text.encode("utf-8", "replace"))
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    os.close(out)
    try: text = os.read(back, 65536).decode()
    except BlockingIOError: text = "" # it left by itself, and a child of it has the other end
    os.close(back)
    if os.WIFSIGNALED(status):
        answer("killed by signal %d" % os.WTERMSIG(status))
    else:
        answer(text[1:])
`

// agent is a sandbox that runs agentProgram.
type agent struct {
	sandbox.Sandbox
	t *testing.T
}

// agent starts one; change may change its specification.
func (s *suite) agent(t *testing.T, change ...func(*sandbox.Spec)) agent {
	t.Helper()
	return s.agentOf(t, s.maker, change...)
}

func (s *suite) agentOf(t *testing.T, m sandbox.Maker, change ...func(*sandbox.Spec)) agent {
	t.Helper()
	spec := s.spec(agentProgram)
	for _, c := range change {
		c(&spec)
	}
	box, err := m.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("starting a sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("closing the sandbox: %v", err)
		}
	})
	return agent{box, t}
}

// send sends a program without waiting for its answer.
func (a agent) send(program string) {
	a.t.Helper()
	b := append(binary.BigEndian.AppendUint32(nil, uint32(len(program))), program...)
	if _, err := a.Control().Write(b); err != nil {
		a.t.Fatalf("sending a program: %v", err)
	}
}

// receive returns the next answer.
func (a agent) receive() string {
	a.t.Helper()
	_ = a.Control().SetReadDeadline(time.Now().Add(patience))
	var length [4]byte
	_, err := io.ReadFull(a.Control(), length[:])
	b := make([]byte, binary.BigEndian.Uint32(length[:]))
	if err == nil {
		_, err = io.ReadFull(a.Control(), b)
	}
	if err != nil {
		a.t.Fatalf("waiting for an answer: %v\n%s", err, a.output())
	}
	return string(b)
}

// do runs a program inside and returns its result.
func (a agent) do(program string) string {
	a.t.Helper()
	a.send(program)
	return a.receive()
}

// expect runs a program and compares its result.
func (a agent) expect(want, program string) {
	a.t.Helper()
	if got := a.do(program); got != want {
		a.t.Errorf("a program inside answered %q; want %q:\n%s", got, want, strings.TrimSpace(program))
	}
}

// output returns what was printed so far.
func (a agent) output() string {
	var all strings.Builder
	stdout, stderr := a.Output()
	for _, f := range []io.Reader{stdout, stderr} {
		if d, ok := f.(interface{ SetReadDeadline(time.Time) error }); ok {
			_ = d.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		}
		b, _ := io.ReadAll(f) // the deadline ends it
		all.Write(b)
	}
	return all.String()
}

// host runs a program that stays and returns its process id on the host, which the kernel tells with what it sends.
// The program gets the variable "stay", which answers "up" and never returns.
func (a agent) host(before string) int {
	a.t.Helper()
	raw, err := a.Control().SyscallConn()
	if err != nil {
		a.t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	if err != nil {
		a.t.Fatal(err)
	}
	a.send("import os, socket, struct, time\ncontrol = socket.socket(fileno=3)\n" + before +
		"\nif os.fork() == 0:\n    control.sendall(struct.pack('!I', 2) + b'up')\n    time.sleep(1000)\nos._exit(0)\n")
	_ = a.Control().SetReadDeadline(time.Now().Add(patience))
	pid := 0
	for range 2 { // what the process says and what the agent answers for its parent, in either order
		b, oob := make([]byte, 6), make([]byte, 256)
		n, on, _, _, err := a.Control().ReadMsgUnix(b, oob) // never joins what two processes sent
		if err != nil {
			a.t.Fatalf("waiting for a process: %v", err)
		}
		switch string(b[:n]) {
		case "\x00\x00\x00\x02up":
			pid = credentials(a.t, oob[:on])
		case "\x00\x00\x00\x00":
		default:
			a.t.Fatalf("waiting for a process: %q", b[:n])
		}
	}
	return pid
}

func credentials(t *testing.T, oob []byte) int {
	t.Helper()
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		if c, err := unix.ParseUnixCredentials(&m); err == nil {
			return int(c.Pid)
		}
	}
	t.Fatal("the kernel told no credentials")
	return 0
}

// accept accepts one connection at a door.
func accept(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	if d, ok := l.(*net.TCPListener); ok {
		_ = d.SetDeadline(time.Now().Add(patience))
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatalf("accepting at a door: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
