package native

import (
	"io"
	"testing"
	"time"

	"forerun.dev/forerun/internal/sandbox"
)

func TestSmoke(t *testing.T) {
	m, err := StartHelper(Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Enforced() {
		t.Log(e)
	}
	for range 20 {
		b := time.Now()
		s, err := m.Start(t.Context(), sandbox.Spec{ID: "a", Argv: []string{"/bin/sh", "-c", "ls -la /proc/self/fd; id; exit; cat /proc/self/status | grep -iE 'cap|secc|nonew'; cat /proc/mounts /proc/self/cgroup; ls -la / /dev /etc /proc; ls /proc/self/fd"}, Env: []string{"PATH=/usr/bin:/bin"}, MemoryMiB: 128, Processes: 32, TmpMiB: 16, CodeMiB: 16})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Since(b))
		<-s.Done()
		o, e := s.Output()
		x, _ := io.ReadAll(o)
		y, _ := io.ReadAll(e)
		_ = x
		t.Logf("%s\n%s", x, y)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}
