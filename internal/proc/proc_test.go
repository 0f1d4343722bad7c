package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, size := range []int{0, 1, 2047, 2048, 2049, 10_000} {
		want := bytes.Repeat([]byte("a"), size)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("of %d bytes: %d, %v", size, len(got), err)
		}
	}
	if _, err := ReadFile(path + "s"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
}

func TestNames(t *testing.T) {
	path := t.TempDir()
	var want []string
	for i := range 300 { // more than are told at once
		name := fmt.Sprintf("a name of some length, number %d", i)
		if err := os.Mkdir(filepath.Join(path, name), 0o700); err != nil {
			t.Fatal(err)
		}
		want = append(want, name)
	}
	folder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	got, err := Names(int(folder.Fd()))
	slices.Sort(got)
	slices.Sort(want)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d names, %v", len(got), err)
	}
}

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

func TestDelayed(t *testing.T) {
	if Delayed(0) != 0 || Delayed(-1) != 0 {
		t.Error("a process that is none was delayed")
	}
	if _, err := os.ReadFile("/proc/self/schedstat"); err != nil {
		t.Skipf("this kernel does not count delays: %v", err)
	}
	before := Delayed(os.Getpid())
	if before < 0 || Delayed(os.Getpid()) < before {
		t.Errorf("%v, and less later", before)
	}
}
