package sandboxtest

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/sandbox"
)

// testConnectAgain: a connect that waits does so, too, while an attempt before it goes on.
func (s *suite) testConnectAgain(t *testing.T) {
	const again = `
import socket, struct, time
s = socket.socket(); s.setblocking(False)
first = s.connect_ex(peer)
s.setblocking(True); s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack('ll', 0, 20000))
begin = time.monotonic()
result = '%d %d %s' % (first, s.connect_ex(peer), time.monotonic() - begin >= 0.02)`
	a := s.agent(t)
	a.expect("115 114 True", `
import socket
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(0)
peer = l.getsockname()
kept = socket.create_connection(peer)
`+again)
	a.expect("115 0 ok", `
import socket, threading
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(0)
kept = socket.create_connection(l.getsockname())
s = socket.socket(); s.setblocking(False)
first = s.connect_ex(l.getsockname())
s.setblocking(True)
l.accept()
second = s.connect_ex(l.getsockname())
d, _ = l.accept(); d.sendall(b'ok')
result = '%d %d %s' % (first, second, s.recv(2).decode())`)
	t.Run("outside", func(t *testing.T) {
		s.needHost(t)
		agent{a.Sandbox, t}.expect("115 114 True", fmt.Sprintf("peer = ('%v', %d)", s.host, silentTCP(t, s.host.As4()))+again)
	})
}

// testConnectInterrupted: a connect that waits lets its thread handle a signal, and then goes on waiting or, if the handler is for
// that, ends.
func (s *suite) testConnectInterrupted(t *testing.T) {
	const interrupt = `
import signal, socket
class Alarm(Exception): pass
def alarm(*_): raise Alarm
signal.signal(signal.SIGALRM, alarm)
s = socket.socket(); signal.setitimer(signal.ITIMER_REAL, 0.01)
try: result = s.connect(peer)
except Alarm: result = 'alarm'`
	const inside = `
import socket
l = socket.socket(socket.%s); l.bind(%s); l.listen(0)
peer = l.getsockname()
kept = socket.socket(socket.%[1]s); kept.connect(peer)
`
	a := s.agent(t)
	a.expect("alarm", fmt.Sprintf(inside, "AF_INET", "('127.0.0.1', 0)")+interrupt)
	a.expect("alarm", fmt.Sprintf(inside, "AF_UNIX", `'\0full'`)+strings.Replace(interrupt, "socket.socket()", "socket.socket(socket.AF_UNIX)", 1))
	restarted := `
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
handled = []
signal.signal(signal.SIGALRM, lambda *_: handled.append(1)); signal.siginterrupt(signal.SIGALRM, False)
s = socket.socket(); signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
address = b'\2\0' + peer[1].to_bytes(2, 'big') + socket.inet_aton(peer[0]) + bytes(8)
threading.Timer(0.4, l.accept).start()
failed = libc.connect(s.fileno(), address, 16)
signal.setitimer(signal.ITIMER_REAL, 0)
result = '%d %d %s' % (failed, ctypes.get_errno(), len(handled) > 0)`
	a.expect("0 0 True", "import threading\n"+fmt.Sprintf(inside, "AF_INET", "('127.0.0.1', 0)")+restarted)
	t.Run("outside", func(t *testing.T) {
		s.needHost(t)
		agent{a.Sandbox, t}.expect("alarm", fmt.Sprintf("peer = ('%v', %d)", s.host, silentTCP(t, s.host.As4()))+interrupt)
	})
}

// testConnectFlipped: a thread that makes a socket blocking while another connects has nobody wait beyond its end.
func (s *suite) testConnectFlipped(t *testing.T) {
	a := s.agent(t, func(spec *sandbox.Spec) { // the listener stays
		spec.Argv[len(spec.Argv)-1] = "import socket\nl = socket.socket(socket.AF_UNIX); l.bind('\\0full'); l.listen(0)\n" + agentProgram
	})
	a.host(`
import fcntl, threading
full = socket.socket(socket.AF_UNIX); full.connect('\0full')
def flip(c):
    while True: fcntl.fcntl(c, fcntl.F_SETFL, os.O_RDWR)
def connect(c):
    while True: c.connect_ex('\0full')
for _ in range(4):
    c = socket.socket(socket.AF_UNIX)
    for do in flip, connect: threading.Thread(target=do, args=(c,), daemon=True).start()
time.sleep(0.3)`)
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.expect("ok", "result = 'ok'")
}

// testConnectPaths: a path leads a connect where it leads the process itself, whose own stat the kernel executes.
func (s *suite) testConnectPaths(t *testing.T) {
	a := s.withLibc(t)
	const paths = `
import errno, os, signal, socket
os.makedirs('/tmp/outer/inner'); os.chdir('/tmp/outer/inner')
l = socket.socket(socket.AF_UNIX); l.bind('s'); l.listen(100)
here, up = os.open('.', os.O_RDONLY), os.open('..', os.O_PATH)
os.symlink('/proc/self/cwd', '/tmp/cwd'); os.symlink('loop', '/tmp/loop')
ready, w = os.pipe()
other = os.fork()
if other == 0: os.chdir('/tmp/outer'); dll.prctl(4, shown, 0, 0, 0); os.write(w, b'!'); signal.pause()
os.read(ready, 1)
leads = {}
def connect(path):
    try: os.stat(path); want = 0
    except OSError as e: want = e.errno
    got = socket.socket(socket.AF_UNIX).connect_ex(path)
    leads[path] = got
    if got != want: raise Exception('%s: %s, not %s' % (path, errno.errorcode.get(got), errno.errorcode.get(want)))
def connect_all():
    for path in ['s', '/tmp/outer/inner/s', '/proc/self/cwd/s', '/proc/self/root/tmp/outer/inner/s', '/proc/self/fd/%d/s' % here, '/dev/fd/%d/s' % here,
        '/proc/thread-self/fd/%d/inner/s' % up, '/proc/thread-self/cwd/../inner/s', '/proc/%d/task/%d/cwd/s' % (os.getpid(), os.getpid()), '/tmp/cwd/s', '/tmp/loop/s',
        '/proc/self/fd/999/s', '/proc/self/cwd/s/', '/proc/self/fd/../cwd/s', '/proc/net/../cwd/s', '/proc/%d/root/../../tmp/outer/inner/s' % other,
        '/proc/%d/cwd/inner/s' % other, '/proc/999999/cwd/s']:
        connect(path)
`
	const end = `
os.kill(other, 9); os.waitpid(other, 0)
result = ' '.join(str(leads[p]) for p in ('s', '/tmp/outer/inner/s', '/proc/self/cwd/s', '/dev/fd/%d/s' % here, '/proc/%d/cwd/inner/s' % other))
`
	for what, c := range map[string][3]string{
		"open":                 {"0 0 0 0 0", "shown = 1", "connect_all()"},
		"below a closed one":   {"0 13 0 0 13", "shown = 1", "os.chmod('/tmp/outer', 0); connect_all(); os.chmod('/tmp/outer', 0o700)"},
		"removed":              {"2 2 2 2 2", "shown = 1", "os.unlink('s'); os.rmdir('/tmp/outer/inner'); connect_all()"},
		"another hides itself": {"0 0 0 0 13", "shown = 0", "connect_all()"},
	} {
		a.expect(c[0], libc+c[1]+paths+c[2]+end+"# "+what)
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.expect("0 0 0 2", libc+`
import os, socket
os.chdir('/tmp'); l = socket.socket(socket.AF_UNIX); l.bind('s'); l.listen(9)
dll.prctl(4, 0, 0, 0, 0) # as while code is loaded
here = os.open('.', os.O_RDONLY)
result = '%d %d %d %d' % tuple(socket.socket(socket.AF_UNIX).connect_ex(p) for p in ('/proc/self/cwd/s', '/proc/self/root/tmp/s', '/dev/fd/%d/s' % here, '/proc/self/fd/999/s'))`)
}

// testNamesAgain: a socket whose connect or listen has returned is nobody else's:
// when it is closed its name is free, also on processors that are busy.
func (s *suite) testNamesAgain(t *testing.T) {
	var over atomic.Bool
	var busy sync.WaitGroup
	defer busy.Wait()
	defer over.Store(true)
	for range 2 * runtime.NumCPU() {
		busy.Go(func() {
			for !over.Load() {
			}
		})
	}
	s.agent(t).expect("0 0 0", `
import socket
def taken(family, kind, name, use):
    n = 0
    for _ in range(1000):
        s = socket.socket(family, kind)
        try:
            s.bind(name); use(s)
        except OSError as e: n += e.errno == 98
        s.close()
    return n
result = '%d %d %d' % (
    taken(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', 8080), lambda s: s.listen()),
    taken(socket.AF_UNIX, socket.SOCK_STREAM, '\0again', lambda s: s.connect('\0none')),
    taken(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', 8080), lambda s: s.connect(('127.0.0.1', 9))))`)
}
