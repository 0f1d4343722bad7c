package sandboxtest

import (
	"strings"
	"testing"

	"forerun.dev/forerun/internal/sandbox"
)

func (s *suite) testMemoryLimit(t *testing.T) {
	s.enforced(t, "memory limit")
	a := s.agent(t, func(spec *sandbox.Spec) { spec.MemoryMiB = 64 })
	a.expect("killed by signal 9", "b = bytearray(256 << 20)\nresult = 'allocated'")
	if kills, err := a.OOMKills(); err != nil || kills < 1 {
		t.Errorf("%d processes were killed for memory, %v", kills, err)
	}
	if bytes, err := a.Memory(); err != nil || bytes <= 0 || bytes > 64<<20 {
		t.Errorf("%d bytes after a kill, %v", bytes, err)
	}
	a.expect("ok", "result = 'ok'")
	if got := a.do("b = b'x' * (1 << 20)\nwith open('/dev/shm/x', 'wb') as f:\n    for _ in range(7): f.write(b)\nresult = 'ok'"); got != "ok" {
		t.Errorf("writing less than the limit to /dev/shm: %s", got)
	}
}

// testChangedLimits gives a sandbox more memory than it was made with, and less again.
func (s *suite) testChangedLimits(t *testing.T) {
	s.enforced(t, "memory limit")
	a := s.agent(t, func(spec *sandbox.Spec) { spec.MemoryMiB = 64 })
	limit := func(mib int) {
		t.Helper()
		if err := a.Limit(t.Context(), sandbox.Limits{MemoryMiB: mib, CPUWeight: 25}); err != nil {
			t.Fatal(err)
		}
	}
	limit(256)
	a.expect("ok", "b = bytearray(128 << 20)\nresult = 'ok'")
	limit(64)
	a.expect("killed by signal 9", "b = bytearray(128 << 20)\nresult = 'allocated'")
	for _, wrong := range []sandbox.Limits{{MemoryMiB: -1}, {CPUWeight: 10_001}} {
		if err := a.Limit(t.Context(), wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := a.Limit(t.Context(), sandbox.Limits{MemoryMiB: 64}); err == nil {
		t.Error("a sandbox that was closed has its limit changed")
	}
}

func (s *suite) testProcessLimit(t *testing.T) {
	a := s.agent(t, func(spec *sandbox.Spec) { spec.Processes = 20 })
	got := a.do(`
import os, time
n = 0
try:
    for n in range(100):
        if os.fork() == 0:
            time.sleep(1000)
except OSError as e:
    result = '%d %d' % (e.errno, n)`)
	if !strings.HasPrefix(got, "11 1") { // EAGAIN after ten and some
		t.Errorf("forking without end: %q", got)
	}
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.expect("ok", "result = 'ok'")
}

func (s *suite) testTmpSize(t *testing.T) {
	a := s.agent(t)
	for _, folder := range []string{"/tmp", "/dev/shm", "/action"} {
		a.expect("28", "try:\n    with open('"+folder+"/big', 'wb') as f:\n        for _ in range(64): f.write(b'x' << 20 if False else bytes(1 << 20))\n    result = 'written'\nexcept OSError as e:\n    result = e.errno")
	}
	if _, err := a.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.expect("ok", "open('/tmp/x', 'wb').write(bytes(7 << 20))\nresult = 'ok'")
}
