package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestReadTask(t *testing.T) {
	self, ok := ReadTask("/proc/self/stat")
	if !ok || self.HasEnded() || self.Exits() || self.Threads < 1 {
		t.Errorf("of this process: %+v, %v", self, ok)
	}
	ended := exec.Command("true")
	out, err := ended.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/proc/%d/stat", ended.Process.Pid)
	_, _ = out.Read(make([]byte, 1)) // it closes it on its way out
	for task, ok := ReadTask(path); !task.Exits(); task, ok = ReadTask(path) {
		if !ok {
			t.Fatal("it is not there, and nobody has waited for it")
		}
	}
	if err := ended.Wait(); err != nil {
		t.Fatal(err)
	}
	if task, ok := ReadTask(path); ok {
		t.Errorf("nothing of it is left, and it is %+v", task)
	}
}

func TestNamesHoldAnything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "stat")
	for line, want := range map[string]Task{
		"7 (a) Z 1 (b) R 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 5\n": {State: 'R', Flags: 4194560, Work: 110 * time.Millisecond, Threads: 3},
		"7 (a\nb) S 1 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 5\n":            {State: 'S', Flags: 4, Work: 110 * time.Millisecond, Threads: 1},
	} {
		if err := os.WriteFile(path, []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := ReadTask(path); !ok || got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
	if err := os.WriteFile(path, []byte("7 (a) R 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := ReadTask(path); ok {
		t.Errorf("half a line is %+v", got)
	}
}

// waiting starts a process that reads until end.
func waiting(t *testing.T) (pid int, end func()) {
	t.Helper()
	waits := exec.Command("cat")
	in, err := waits.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	return waits.Process.Pid, func() {
		_ = in.Close()
		if err := waits.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestReadCall(t *testing.T) {
	pid, end := waiting(t)
	path := fmt.Sprintf("/proc/%d/syscall", pid)
	for call, ok := ReadCall(path); !ok || call != syscall.SYS_READ; call, ok = ReadCall(path) {
		if t.Context().Err() != nil {
			t.Fatal(call, ok)
		}
	}
	end()
	if call, ok := ReadCall(path); ok {
		t.Errorf("nothing of it is left, and it waits in call %d", call)
	}
}

func TestIsStopped(t *testing.T) {
	pid, end := waiting(t)
	for _, c := range []struct {
		sent syscall.Signal
		want bool
	}{{0, false}, {syscall.SIGSTOP, true}, {syscall.SIGCONT, false}} {
		if err := syscall.Kill(pid, c.sent); err != nil {
			t.Fatal(err)
		}
		if got := IsStopped(pid); got != c.want { // without waiting for it to notice
			t.Errorf("after signal %d it is stopped: %v", c.sent, got)
		}
	}
	end()
	if IsStopped(pid) {
		t.Error("what has ended is stopped")
	}
}
