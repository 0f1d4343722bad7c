package sandboxtest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// testGroups: the host tells its network of no group that a function wants to hear, on a socket that was opened for something else. What is
// the sandbox's own hears what it wants.
func (s *suite) testGroups(t *testing.T) {
	s.needHost(t)
	_, port := echoTCP(t, s.host.String())
	a := s.agent(t)
	const prepare = `
import os, socket, struct
def want(s, option, value):
    try: s.setsockopt(socket.IPPROTO_IP, option, value); return 0
    except OSError as e: return e.errno
loopback, group, one = 1, socket.inet_aton('239.55.0.1'), socket.inet_aton('232.55.0.1')
either = struct.pack('=I4xHH4s', loopback, socket.AF_INET, 0, group) + bytes(120)
`
	a.send(prepare + fmt.Sprintf(`
s = socket.create_connection(('%v', %d))
source = one + socket.inet_aton('%[1]v') + socket.inet_aton('10.55.0.9')
os.write(1, b'%%d %%d' %% (want(s, %[3]d, either), want(s, %[4]d, source)))
os.read(s.fileno(), 1)`, s.host, port, unix.MCAST_JOIN_GROUP, unix.IP_ADD_SOURCE_MEMBERSHIP))
	stdout, _ := a.Output()
	b := make([]byte, 64)
	n, err := stdout.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b[:n]); got != "71 71" {
		t.Errorf("wanting to hear groups: errno %s", got)
	}
	groups, err := os.ReadFile("/proc/net/igmp")
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range []string{"010037EF", "010037E8"} { // in the byte order of the machines that there are
		if strings.Contains(string(groups), group) {
			t.Errorf("the host wants to hear the group %s:\n%s", group, groups)
		}
	}
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.receive()
	a.expect("0 0 0 98 22", prepare+fmt.Sprintf(`
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own = group + socket.inet_aton('127.0.0.1')
result = '%%d %%d %%d %%d %%d' %% tuple(want(s, option, value) for option, value in
    ((%[1]d, own), (%[2]d, own), (%[1]d, own), (%[1]d, own), (%[1]d, b'x')))`, unix.IP_ADD_MEMBERSHIP, unix.IP_DROP_MEMBERSHIP))
}

// testWatches: a function is told what happens to its own files, and nothing of those that all sandboxes and the host have in common.
func (s *suite) testWatches(t *testing.T) {
	a := s.withLibc(t)
	prepare := libc + `
import os, struct
def watch(path, mask=0x100): # what is made there
    n = dll.inotify_add_watch(w, path, mask)
    return n if n > 0 else -ctypes.get_errno()
w = dll.inotify_init1(0)
os.chdir('/tmp')
`
	a.expect("[-13, -13, -13, -13, -13, -2, -2, -36]", prepare+`
os.symlink('/usr/lib', 'away'); os.mkdir('shut', 0)
result = [watch(p) for p in (b'/usr/lib', b'/dev/null', b'/tmp/away', b'/proc/self/root/usr/lib', b'shut', b'none', b'', b'x' * 5000)]`)
	a.expect("[1, 2, 3, 4] 2 True", prepare+`
os.mkdir('d'); os.symlink('d', 'link')
watches = [watch(p) for p in (b'/tmp', b'd', b'/action', b'/dev/shm')]
open('/tmp/x', 'w')
made = os.read(w, 4096)
result = '%s %s %s' % (watches, watch(b'link'), struct.unpack_from('iIII', made)[0] == 1 and b'x' in made)`)
	a.expect("-9 -22", prepare+"w, kept = 999, w; result = watch(b'/tmp')\nw = 1; result = '%d %d' % (result, watch(b'/tmp'))")
	a.expect("22 22", prepare+fmt.Sprintf("f = os.open('/usr/lib', os.O_RDONLY)\nresult = '%%d %%d' %% (call(%d, f, %d, 1), call(%[1]d, f, %[3]d, 0))", unix.SYS_FCNTL, unix.F_NOTIFY, unix.F_SETLEASE))
}

// testCounts has a function take all that its user may have of what the kernel counts: the host, and other sandboxes, have theirs.
func (s *suite) testCounts(t *testing.T) {
	s.enforced(t, "user ids of its own")
	a, other := s.withLibc(t), s.withLibc(t)
	most := fmt.Sprintf("def take():\n    n = 0\n    while n < 900 and call(%d, 0) == 0: n += 1\n    return n\n", unix.SYS_INOTIFY_INIT1)
	a.host(libc + most + "take()")
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Errorf("of those that watch files the host's root has none any more: %v", err)
	} else {
		unix.Close(fd)
	}
	other.expect("True", libc+most+"result = take() > 0")
}

// testSentDescriptors has a function with more descriptors on their way than a process may have: others are started all the same.
func (s *suite) testSentDescriptors(t *testing.T) {
	a := s.agent(t)
	a.host(`
x, y = socket.socketpair()
null = os.open('/dev/null', os.O_RDONLY)
try:
    for _ in range(5): socket.send_fds(x, [b'x'], [null] * 253)
except OSError: pass # there are as many as may be`)
	s.agent(t).expect("ok", "result = 'ok'")
}
