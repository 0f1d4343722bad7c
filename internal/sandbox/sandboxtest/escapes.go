package sandboxtest

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// libc calls the kernel; 0, or the number of the error. It needs ctypes, which an isolated python finds with its site module only.
const libc = "import ctypes\ndll = ctypes.CDLL(None, use_errno=True)\ndef call(*n):\n    return ctypes.get_errno() if dll.syscall(*n) == -1 else 0\n"

// withLibc starts an agent whose programs can begin with libc.
func (s *suite) withLibc(t *testing.T) agent {
	t.Helper()
	a := s.agent(t, func(spec *sandbox.Spec) {
		spec.Argv = slices.DeleteFunc(spec.Argv, func(s string) bool { return s == "-S" })
	})
	if got := a.do(libc + "result = 'ok'"); got != "ok" {
		t.Skipf("this python has no ctypes: %s", got)
	}
	return a
}

// errno is the start of a program that ends with the number of the error of what follows, indented.
const errno = "import os\ntry:\n    %s\n    result = 'done'\nexcept OSError as e:\n    result = e.errno"

// testUsers tries to be somebody else.
func (s *suite) testUsers(t *testing.T) {
	a := s.agent(t)
	for _, try := range []string{
		"os.setuid(0)", "os.setgid(0)", "os.setgroups([0])", "os.setresuid(1, 1, 1)", "os.setresgid(1, 1, 1)", "os.chroot('/tmp')",
		"open('/tmp/x', 'w').close(); os.chown('/tmp/x', 0, 0)", "os.mknod('/tmp/null', 0o20666, os.makedev(1, 3))", "os.nice(-5)", "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
		"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))", "import socket; socket.sethostname('x')",
	} {
		got := a.do(fmt.Sprintf(errno, try))
		if got != fmt.Sprint(int(unix.EPERM)) && got != fmt.Sprint(int(unix.EINVAL)) && !strings.HasPrefix(got, "ValueError: not allowed") { // EINVAL: there is no such user here
			t.Errorf("%s: %s", try, got)
		}
	}
	a.expect("[]", `
import os
result = [folder for folder in ('/', '/usr', '/tmp', '/action', '/dev/shm', '/opt/fn') if os.path.exists(folder) and not os.statvfs(folder).f_flag & os.ST_NOSUID]`)
	a.expect("False", "import os\nf = '/tmp/x'\nopen(f, 'w').close()\nos.chmod(f, 0o6777)\nresult = os.stat(f).st_uid == 0")
}

// testFilterStays tries to get rid of the system-call filter, and to become its supervisor.
func (s *suite) testFilterStays(t *testing.T) {
	a := s.withLibc(t)
	program := libc + fmt.Sprintf(`
class Filter(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]
allow = (ctypes.c_uint64 * 1)(0x7fff000000000006)
filter = Filter(1, ctypes.addressof(allow))
load = lambda flags: call(%d, 1, flags, ctypes.byref(filter))
`, unix.SYS_SECCOMP)
	if got := a.do(program + "result = load(8)"); got == "0" { // SECCOMP_FILTER_FLAG_NEW_LISTENER
		t.Error("a function supervises its own system calls")
	}
	a.expect("1", program+fmt.Sprintf("load(0)\nresult = call(%d, 0, 0, 0, 0, 0)", unix.SYS_MOUNT))
	a.expect("13", program+"load(0)\nimport socket\nresult = socket.socket().connect_ex(('169.254.169.254', 80))")
}

// testOtherProcesses looks into what is not the program's own: the namespaces' links and what the kernel tells of the host.
func (s *suite) testOtherProcesses(t *testing.T) {
	a := s.agent(t)
	hidden := a.do("import os\nresult = ' '.join(p for p in os.listdir('/proc') if p.isdigit())")
	for _, pid := range strings.Fields(hidden) {
		if _, err := fmt.Sscan(pid, new(int)); err != nil || len(pid) > 2 {
			t.Errorf("process %s is seen", pid)
		}
	}
	for _, path := range []string{"/proc/1/ns/net", "/proc/self/ns/user"} {
		inside := a.do(fmt.Sprintf("import os\nresult = os.readlink(%q)", path))
		if outside, err := os.Readlink("/proc/self/ns/" + filepath.Base(path)); err == nil && inside == outside {
			t.Errorf("%s is the host's", path)
		}
	}
	for _, path := range []string{"/proc/self/net/tcp", "/proc/self/net/unix", "/proc/self/net/route"} {
		if lines := strings.Count(a.do(fmt.Sprintf("result = open(%q).read()", path)), "\n"); lines > 20 {
			t.Errorf("%s has %d lines: are they the host's?", path, lines)
		}
	}
}

// testEscapesByAddress names forbidden places in every form that an address has.
func (s *suite) testEscapesByAddress(t *testing.T) {
	a := s.agentOf(t, s.closed)
	places := []string{
		"::ffff:169.254.169.254", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254", "fe80::1", "::ffff:192.168.0.1", "ff02::1",
		"64:ff9b::7f00:1", "2002:7f00:1::1", "::ffff:0:7f00:1",
	}
	if s.host.IsValid() {
		places = append(places, netip.AddrFrom16(s.host.As16()).String())
	}
	if s.host6.IsValid() {
		places = append(places, s.host6.String())
	}
	for _, place := range places {
		got := a.do(fmt.Sprintf("import socket\ns = socket.socket(socket.AF_INET6)\ns.settimeout(5)\nresult = s.connect_ex((%q, 80))", place))
		if got != "13" {
			t.Errorf("connecting to %s: errno %s", place, got)
		}
	}
	_, port := echoTCP(t, "127.0.0.1")
	for _, place := range []string{"::1", "::ffff:127.0.0.1", "::ffff:127.1.2.3", "::"} { // the sandbox's own
		got := a.do(fmt.Sprintf("import socket\ns = socket.socket(socket.AF_INET6)\ns.settimeout(5)\nresult = s.connect_ex((%q, %d))", place, port))
		if got == "0" {
			t.Errorf("connecting to %s reaches the host's loopback", place)
		}
	}
}
