package proc

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestRelaxMonitor(t *testing.T) {
	if err := RelaxMonitor(); errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("only with CAP_SYS_NICE:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	monitor, err := monitorThread()
	if err != nil {
		t.Fatal(err)
	}
	slack, err := ReadFile(slackPath(monitor))
	if err != nil || strings.TrimSpace(string(slack)) != fmt.Sprint(monitorSlack.Nanoseconds()) {
		t.Errorf("its slack is %q ns, %v", slack, err)
	}
	if !naps(t, monitor) {
		t.Errorf("thread %s never naps while there is something to do: it is not the monitor", monitor)
	}
}

// naps reports whether a thread of this process is seen in nanosleep while a goroutine is busy, as the runtime's monitor alone is.
func naps(t *testing.T, thread string) bool {
	t.Helper()
	var seen atomic.Bool
	go func() {
		for !seen.Load() { // keeps the monitor from a long rest
		}
	}()
	defer seen.Store(true)
	nanosleep := fmt.Sprint(unix.SYS_NANOSLEEP, " ")
	for begin := time.Now(); time.Since(begin) < 2*time.Minute; {
		in, err := ReadFile("/proc/self/task/" + thread + "/syscall")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(in), nanosleep) {
			return true
		}
	}
	return false
}
