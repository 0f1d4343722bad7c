package sandboxtest

import (
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// running reports whether a process of the host lives and is no zombie.
func running(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	for i := len(b) - 1; i > 0; i-- {
		if b[i] == ')' {
			return b[i+2] != 'Z' && b[i+2] != 'X'
		}
	}
	return false
}

func (s *suite) testResetProcesses(t *testing.T) {
	a := s.agent(t)
	spare := a.host("")
	grandchild := a.host("os.setsid()\nif os.fork() != 0: os._exit(0)\nos.setsid()")
	deaf := a.host("import signal\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass")
	if !running(spare) || !running(grandchild) || !running(deaf) {
		t.Fatal("the processes do not run")
	}
	if _, err := a.Reset(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	if running(grandchild) || running(deaf) {
		t.Error("a process has outlived the reset")
	}
	if !running(spare) {
		t.Error("the reset has ended the process that it should keep")
	}
	if _, err := a.Reset(t.Context(), spare, 1, os.Getpid()); err != nil { // strangers in keep mean nothing
		t.Fatal(err)
	}
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if running(spare) {
		t.Error("a process that is not kept has outlived the reset")
	}
	a.expect("ok", "result = 'ok'")
}

func (s *suite) testResetFiles(t *testing.T) {
	a := s.agent(t)
	a.expect("ok", `
import os, socket
open('/action/code', 'w').write('stays')
for top in ('/tmp', '/dev/shm'):
    os.chdir(top)
    os.symlink('/etc', 'etc'); os.symlink('/action', 'action'); os.symlink('.', 'self'); os.symlink('nowhere', 'dangling')
    os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket')
    os.mkdir('a'); open('a/file', 'w').write('x'); os.link('a/file', 'hard')
    os.symlink('../../action', 'a/link'); os.mkdir('a/moved-1'); os.mkdir('moved-1'); os.mkdir('a/b'); open('a/b/c', 'w')
    open('new\nline', 'w'); open('.hidden', 'w'); open('-rf', 'w'); open(b'\xff\xfe', 'w')
    os.mkdir('closed'); os.mkdir('closed/inner'); open('closed/inner/file', 'w'); os.chmod('closed/inner', 0); os.chmod('closed', 0)
    for n in range(500): open('many%d' % n, 'w')
    os.mkdir('deep'); os.chdir('deep')
    for _ in range(3000): os.mkdir('d'); os.chdir('d')
    open('bottom', 'w')
try: os.chmod('/tmp', 0)
except PermissionError: pass
result = 'ok'`)
	begin := time.Now()
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("wiped in %v", time.Since(begin))
	a.expect("[] [] ['code'] stays", "import os\nresult = '%s %s %s %s' % (os.listdir('/tmp'), os.listdir('/dev/shm'), os.listdir('/action'), open('/action/code').read())")
	a.expect("ok", "open('/tmp/x', 'w')\nresult = 'ok'")
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.expect("[]", "import os\nresult = os.listdir('/tmp')")
}

// testResetLittle leaves one thing at a time, and nothing.
func (s *suite) testResetLittle(t *testing.T) {
	a := s.agent(t)
	spare := a.host("")
	for _, leave := range []string{
		"", "open('/tmp/x', 'w')", "open('/dev/shm/.x', 'w')", "os.mkdir('/tmp/x')", "os.symlink('nowhere', '/dev/shm/x')",
		"os.mkfifo('/tmp/x')", "", "try: os.chmod('/tmp', 0o755)\nexcept PermissionError: pass", "",
		"try: os.setxattr('/tmp', 'user.x', b'x')\nexcept OSError: pass", "try: os.setxattr('/dev/shm', 'user.x', b'x')\nexcept OSError: pass",
		"try: os.setxattr('/tmp', 'system.posix_acl_default', struct.pack('<I' + 3 * 'HHI', 2, 1, 0, 0, 4, 0, 0, 32, 0, 0))\nexcept OSError: pass",
	} {
		a.expect("ok", "import os, struct\n"+leave+"\nresult = 'ok'")
		if _, err := a.Reset(t.Context(), spare); err != nil {
			t.Fatal(err)
		}
		a.expect("[] [] 1777", "import os\nresult = '%s %s %o' % (os.listdir('/tmp'), os.listdir('/dev/shm'), os.stat('/tmp').st_mode & 0o7777)")
		a.expect("[]", "import os\nresult = [n for f in ('/tmp', '/dev/shm') for n in os.listxattr(f) if not n.startswith('security.')]")
	}
	child := a.host("")
	if _, err := a.Reset(t.Context(), spare); err != nil {
		t.Fatal(err)
	}
	if running(child) || !running(spare) {
		t.Errorf("after the reset the child runs: %v, and the spare: %v", running(child), running(spare))
	}
}

// testResetConnections: of a connection inside nothing is left for the next activation, which gets its port.
func (s *suite) testResetConnections(t *testing.T) {
	var settings unix.Statfs_t
	if err := unix.Statfs("/proc/sys", &settings); err != nil || settings.Flags&unix.ST_RDONLY != 0 {
		t.Skipf("this machine's settings cannot be written: %v", err)
	}
	a := s.agent(t)
	for range 2 {
		a.expect("done", `
import socket
l = socket.socket(); l.bind(('127.0.0.1', 8080)); l.listen(1)
c = socket.create_connection(('127.0.0.1', 8080)); s, _ = l.accept()
s.close(); c.recv(1); c.close()
result = 'done'`)
		if _, err := a.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.expect("0", "result = sum(':1F90 ' in line for line in open('/proc/net/tcp'))")
}

func (s *suite) testResetForkBomb(t *testing.T) {
	a := s.agent(t, func(spec *sandbox.Spec) { spec.Processes = 100 })
	spare := a.host("") // beside the others none may be left to start
	a.host(`
if os.fork() == 0:
    os.setsid()
    while True:
        try:
            if os.fork() == 0: continue
            os._exit(0)
        except OSError: pass`)
	for range 3 {
		if _, err := a.Reset(t.Context(), spare); err != nil {
			t.Fatal(err)
		}
	}
	if !running(spare) {
		t.Error("the spare was ended")
	}
	a.expect("3", "import os\nresult = len([p for p in os.listdir('/proc') if p.isdigit() and open('/proc/%s/stat' % p).read().rsplit(')')[-1].split()[0] not in 'ZX'])")
}
