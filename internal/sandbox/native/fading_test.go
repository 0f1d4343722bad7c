package native

import (
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLastThread(t *testing.T) {
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Skip("there is no sleep here")
	}
	if lastThread(child.Process.Pid) != 0 || lastThread(os.Getpid()) != 0 {
		t.Error("a process that lives is taken for one that ends")
	}
	fd := pidfd(t, child.Process.Pid)
	defer unix.Close(fd)
	if hasEnded(fd, 0) {
		t.Error("it has ended")
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for !hasEnded(fd, longestWait) {
	}
	if lastThread(child.Process.Pid) != child.Process.Pid { // its parent has not heard of it yet
		t.Error("a process that was killed is taken for one that lives")
	}
	_ = child.Wait()
	if lastThread(child.Process.Pid) != 0 {
		t.Error("there is something about a process that is not there")
	}
}

func TestFadingAreNotListed(t *testing.T) {
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Skip("there is no sleep here")
	}
	pid, own := child.Process.Pid, os.Getpid()
	f := fading{pid: pidfd(t, pid)}
	list := func() ([]int, error) { return []int{own, pid}, nil }
	if pids, err := f.others(list); err != nil || len(pids) != 1 || pids[0] != own {
		t.Errorf("%v, %v", pids, err)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if pids, err := f.others(list); err != nil || len(pids) != 2 || len(f) != 0 { // the number may be another's
		t.Errorf("%v, %v; fading %v", pids, err, f)
	}
}

func TestIsLittle(t *testing.T) {
	own := os.Getpid()
	for _, c := range []struct {
		pids []int
		mib  int
		want bool
	}{
		{nil, 0, true}, {[]int{own}, 1 << 20, true}, {[]int{own}, 1, false}, {[]int{own, -1}, 1 << 20, false},
	} {
		if got := isLittle(c.pids, c.mib); got != c.want {
			t.Errorf("%v of %d MiB: %v", c.pids, c.mib, got)
		}
	}
}

func pidfd(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}
