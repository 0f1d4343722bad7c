package sandboxtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

func (s *suite) testIdentity(t *testing.T) {
	a := s.agent(t)
	a.expect("1000 1000 fn /tmp /tmp", "import os\nresult = '%d %d %s %s %s' % (os.getuid(), os.getgid(), os.uname().nodename, os.getcwd(), os.environ['HOME'])")
	a.expect("CapInh 0 CapPrm 0 CapEff 0 CapBnd 0 CapAmb 0 NoNewPrivs 1 Seccomp 2", `
lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
result = " ".join("%s %x" % (n, int(lines[n], 16)) for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp"))`)
	a.expect("[0, 1, 2, 3, 4, 5]", `# the last two are the agent's own
import os
found = []
for fd in range(1024):
    try: os.fstat(fd); found.append(fd)
    except OSError: pass
result = found`)
	a.expect("0 False False", `
import signal
blocked = [line.split()[1] for line in open("/proc/self/status") if line.startswith("SigBlk")][0]
result = "%x %s %s" % (int(blocked, 16), signal.getsignal(signal.SIGTERM) == signal.SIG_IGN, signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)`)
	a.expect("True", "import resource\nsoft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)\nresult = soft <= 1024 and hard <= 65536")
	a.expect(cores(t), "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0)); resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))\nresult = resource.getrlimit(resource.RLIMIT_CORE)")
	t.Run("Groups", func(t *testing.T) {
		s.enforced(t, "no supplementary groups")
		agent{a.Sandbox, t}.expect("True", "import os\nresult = set(os.getgroups()) <= {1000}")
	})
}

// cores is the limit of core dumps that keeps also programs from them that the host has for dumps, if this user may set it.
func cores(t *testing.T) string {
	t.Helper()
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &own); err != nil {
		t.Fatal(err)
	}
	if own.Max == 0 && os.Geteuid() != 0 {
		return "(0, 0)"
	}
	return "(1, 1)"
}

func (s *suite) testFiles(t *testing.T) {
	a := s.agent(t)
	names := strings.Fields(a.do("import os\nresult = ' '.join(sorted(os.listdir('/')))"))
	allowed := []string{"action", "bin", "dev", "etc", "lib", "lib64", "opt", "proc", "tmp", "usr", "var"}
	for _, b := range s.python.binds() {
		allowed = append(allowed, strings.Split(b.Inside, "/")[1])
	}
	for _, n := range names {
		if !slices.Contains(allowed, n) {
			t.Errorf("the root holds %q, which is not on the list", n)
		}
	}
	a.expect("hello True", "import os\nf = '/opt/fn/hello.txt'\nresult = open(f).read() + ' ' + str(os.stat(f).st_mode & 0o777 == 0o444)")
	a.expect("ok", "for f in ('/tmp/x', '/dev/shm/x', '/action/x', '/dev/null'):\n    open(f, 'w').write('x')\nresult = 'ok'")
	a.expect("['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']", "import os\nresult = sorted(os.listdir('/dev'))")
	a.expect("nameserver 127.0.0.1", "result = open('/etc/resolv.conf').read().strip()")
	hidden, err := os.CreateTemp("", "hidden")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(hidden.Name())
	hidden.Close()
	for _, path := range []string{hidden.Name(), "/etc/shadow", "/etc/hostname.host", "/root/.bashrc", "/home", "/sys", "/var/lib", "/run", "/boot", "/dev/sda", "/dev/tty", "/dev/kmsg", "/proc/1/root/../home"} {
		a.expect("False", fmt.Sprintf("import os\nresult = os.path.exists(%q)", path))
	}
}

// fill makes a folder with a file that says something.
func fill(t *testing.T, folder, says string) {
	t.Helper()
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "says"), []byte(says), 0o644); err != nil {
		t.Fatal(err)
	}
}

// testReplaced has a folder of the host removed and made anew, as a build does.
func (s *suite) testReplaced(t *testing.T) {
	show := func(spec *sandbox.Spec) {
		spec.Binds = append(spec.Binds, sandbox.Bind{Host: s.replaced, Inside: "/opt/shown"})
	}
	s.agent(t, show).expect("before", "result = open('/opt/shown/says').read()")
	if err := os.RemoveAll(s.replaced); err != nil {
		t.Fatal(err)
	}
	spec := s.spec("")
	show(&spec)
	if box, err := s.maker.Start(t.Context(), spec); err == nil {
		box.Close()
		t.Error("a sandbox starts without a folder that it shall see")
	}
	fill(t, s.replaced, "after")
	s.agent(t, show).expect("after", "result = open('/opt/shown/says').read()")
}

func (s *suite) testUnwritable(t *testing.T) {
	a := s.agent(t)
	for _, path := range []string{
		"/x", "/usr/bin/x", "/usr/lib/x", "/etc/passwd", "/etc/x", "/opt/fn/hello.txt", "/dev/x", "/var/empty/x", "/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/proc/self/oom_score_adj", "/proc/self/mem", "/proc/1/mem", "/proc/self/uid_map",
		"/proc/sysrq-trigger", "/proc/self/setgroups",
	} {
		got := a.do(fmt.Sprintf("import os\nos.open(%q, os.O_WRONLY | os.O_CREAT)\nresult = 'opened'", path))
		if !strings.Contains(got, "[Errno 30]") && !strings.Contains(got, "[Errno 13]") && !strings.HasPrefix(path, "/proc/sysrq") { // which some kernels lack, and which is /dev/null
			t.Errorf("writing to %s: %s", path, got)
		}
	}
	for _, path := range []string{"/dev/null", "/dev/urandom"} { // which all sandboxes and the host have in common
		if got := a.do(fmt.Sprintf("import os\nos.utime(%q)\nresult = 'set'", path)); !strings.Contains(got, "[Errno 30]") {
			t.Errorf("setting the times of %s: %s", path, got)
		}
	}
}

// testProc: of the host's /proc a sandbox reads what runtimes need, by name, and nothing else.
func (s *suite) testProc(t *testing.T) {
	a := s.agent(t)
	a.expect("[]", `
import os
needed = {"cgroups", "cpuinfo", "filesystems", "loadavg", "meminfo", "mounts", "net", "self", "stat", "swaps", "sys", "thread-self", "uptime", "version", "vmstat"}
def says(path):
    try:
        return bool(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1))
    except OSError:
        return False
paths = [f"/proc/{name}" for name in os.listdir("/proc") if not name.isdigit() and name not in needed]
paths += ["/proc/sys/kernel/random/boot_id", "/proc/sys/fs/file-nr", "/proc/sys/fs/inode-nr", "/proc/sys/fs/inode-state", "/proc/sys/fs/dentry-state"]
result = sorted(filter(says, paths))
`)
}

// testMounts: of the host's paths the mounts name the folders that the sandbox sees, and no others.
func (s *suite) testMounts(t *testing.T) {
	a := s.agent(t, func(spec *sandbox.Spec) {
		spec.Binds = append(spec.Binds, sandbox.Bind{Host: s.replaced, Inside: "/opt/shown"})
	})
	shown := map[string]string{"/opt/shown": s.replaced}
	for _, b := range s.python.binds() {
		shown[b.Inside] = b.Host
	}
	for line := range strings.Lines(a.do("result = open('/proc/self/mountinfo').read()")) {
		f := strings.Fields(line)
		root, at := f[3], f[4]
		host, ok := shown[at]
		if !ok {
			host = at // of the folders that all sandboxes see
		}
		masks := strings.HasPrefix(at, "/proc/") && (root == "/null" || root == "/var/empty")
		if root != "/" && !masks && !strings.HasSuffix(host, root) { // the host may have its file system mounted somewhere
			t.Errorf("the mount at %s names %s; want the end of %s", at, root, host)
		}
	}
}

// testSealed has the folder of the code made read-only.
func (s *suite) testSealed(t *testing.T) {
	a := s.agent(t)
	a.expect("ok", "import os\nos.mkdir('/action/lib')\nopen('/action/lib/x', 'w').write('x')\nresult = 'ok'")
	if sealed, err := a.Seal(t.Context()); err != nil || !sealed {
		t.Fatal(sealed, err)
	}
	for what, code := range map[string]string{
		"create":   "open('/action/y', 'w')",
		"write":    "open('/action/lib/x', 'a')",
		"remove":   "os.remove('/action/lib/x')",
		"truncate": "os.truncate('/action/lib/x', 0)",
		"rename":   "os.rename('/action/lib', '/action/gone')",
		"mode":     "os.chmod('/action/lib/x', 0o777)",
		"link":     "os.symlink('/tmp', '/action/tmp')",
	} {
		if got := a.do("import os\n" + code); !strings.Contains(got, "[Errno 30]") {
			t.Errorf("%s: %s", what, got)
		}
	}
	a.expect("x", "result = open('/action/lib/x').read()")
	a.expect("ok", "open('/tmp/x', 'w').write('x')\nresult = 'ok'")
	open := s.agent(t)
	open.host("kept = open('/action/x', 'w')")
	if sealed, err := open.Seal(t.Context()); err != nil || sealed {
		t.Errorf("a folder that cannot be sealed: %v, %v", sealed, err)
	}
}

func (s *suite) testProcesses(t *testing.T) {
	a := s.agent(t)
	a.expect("1", "import os\nresult = os.getppid()")
	a.expect("True", "import os\nresult = all(int(p) < 100 for p in os.listdir('/proc') if p.isdigit())")
	a.expect("ProcessLookupError: [Errno 3] No such process", fmt.Sprintf("import os\nos.kill(%d, 0)", os.Getpid()+100_000))
	a.expect("True", "import os\nos.kill(1, 9)\nresult = True") // nothing inside can end the initializer this way
	a.expect("1000", "import os\nresult = os.getuid()")
	other := s.agent(t)
	pid := other.host("")
	a.expect("ProcessLookupError: [Errno 3] No such process", fmt.Sprintf("import os\nos.kill(%d, 0)", pid))
}

// systemCalls are called with zeros; each must fail with the given error.
var systemCalls = map[string]struct {
	number int
	errno  unix.Errno
}{
	"mount": {unix.SYS_MOUNT, unix.EPERM}, "umount2": {unix.SYS_UMOUNT2, unix.EPERM}, "pivot_root": {unix.SYS_PIVOT_ROOT, unix.EPERM},
	"setns": {unix.SYS_SETNS, unix.EPERM}, "unshare": {unix.SYS_UNSHARE, unix.EPERM}, "ptrace": {unix.SYS_PTRACE, unix.EPERM},
	"process_vm_readv": {unix.SYS_PROCESS_VM_READV, unix.EPERM}, "process_vm_writev": {unix.SYS_PROCESS_VM_WRITEV, unix.EPERM},
	"pidfd_getfd": {unix.SYS_PIDFD_GETFD, unix.EPERM}, "kcmp": {unix.SYS_KCMP, unix.EPERM}, "bpf": {unix.SYS_BPF, unix.EPERM},
	"perf_event_open": {unix.SYS_PERF_EVENT_OPEN, unix.EPERM}, "userfaultfd": {unix.SYS_USERFAULTFD, unix.EPERM},
	"io_uring_setup": {unix.SYS_IO_URING_SETUP, unix.EPERM}, "io_uring_enter": {unix.SYS_IO_URING_ENTER, unix.EPERM}, "io_setup": {unix.SYS_IO_SETUP, unix.EPERM},
	"keyctl": {unix.SYS_KEYCTL, unix.EPERM}, "add_key": {unix.SYS_ADD_KEY, unix.EPERM}, "request_key": {unix.SYS_REQUEST_KEY, unix.EPERM},
	"fsopen": {unix.SYS_FSOPEN, unix.EPERM}, "fsmount": {unix.SYS_FSMOUNT, unix.EPERM}, "open_tree": {unix.SYS_OPEN_TREE, unix.EPERM},
	"move_mount": {unix.SYS_MOVE_MOUNT, unix.EPERM}, "mount_setattr": {unix.SYS_MOUNT_SETATTR, unix.EPERM}, "swapon": {unix.SYS_SWAPON, unix.EPERM},
	"reboot": {unix.SYS_REBOOT, unix.EPERM}, "init_module": {unix.SYS_INIT_MODULE, unix.EPERM}, "finit_module": {unix.SYS_FINIT_MODULE, unix.EPERM},
	"kexec_load": {unix.SYS_KEXEC_LOAD, unix.EPERM}, "shmget": {unix.SYS_SHMGET, unix.EPERM}, "semget": {unix.SYS_SEMGET, unix.EPERM},
	"msgget": {unix.SYS_MSGGET, unix.EPERM}, "mq_open": {unix.SYS_MQ_OPEN, unix.EPERM}, "memfd_secret": {unix.SYS_MEMFD_SECRET, unix.EPERM},
	"open_by_handle_at": {unix.SYS_OPEN_BY_HANDLE_AT, unix.EPERM}, "fanotify_init": {unix.SYS_FANOTIFY_INIT, unix.EPERM},
	"acct": {unix.SYS_ACCT, unix.EPERM}, "syslog": {unix.SYS_SYSLOG, unix.EPERM}, "settimeofday": {unix.SYS_SETTIMEOFDAY, unix.EPERM},
	"clock_settime": {unix.SYS_CLOCK_SETTIME, unix.EPERM}, "quotactl": {unix.SYS_QUOTACTL, unix.EPERM}, "move_pages": {unix.SYS_MOVE_PAGES, unix.EPERM},
	"clone3": {unix.SYS_CLONE3, unix.ENOSYS}, "a call of tomorrow": {9999, unix.ENOSYS},
}

func (s *suite) testSystemCalls(t *testing.T) {
	a := s.withLibc(t)
	numbers := map[string]int{}
	for name, c := range systemCalls {
		numbers[name] = c.number
	}
	list, _ := json.Marshal(numbers) // always possible
	var got map[string]int
	answer := a.do(libc + "import json\nresult = json.dumps({name: call(n, 0, 0, 0, 0, 0, 0) for name, n in json.loads('" + string(list) + "').items()})")
	if err := json.Unmarshal([]byte(answer), &got); err != nil {
		t.Fatalf("%v in %q", err, answer)
	}
	for name, c := range systemCalls {
		if unix.Errno(got[name]) != c.errno {
			t.Errorf("%s: %v; want %v", name, unix.Errno(got[name]), c.errno)
		}
	}
	for flag, name := range map[int]string{unix.CLONE_NEWUSER: "user", unix.CLONE_NEWNET: "net", unix.CLONE_NEWNS: "mount"} {
		a.expect("1", libc+fmt.Sprintf("result = call(%d, %d, 0, 0, 0, 0) # a %s namespace", unix.SYS_CLONE, flag|int(unix.SIGCHLD), name))
	}
	a.expect("1", libc+fmt.Sprintf("result = call(%d, 1, 0, 0, 0, 0) # the parent-death signal", unix.SYS_PRCTL))
	if x32 := 0x40000000; unix.SYS_GETPID == 39 {
		a.expect("killed by signal 31", libc+fmt.Sprintf("result = call(%d)", x32|unix.SYS_GETPID))
	}
}
