package harness

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// SystemCalls counts the system calls of running processes, with all their threads, by perf(1).
type SystemCalls struct {
	perf *exec.Cmd
	told bytes.Buffer
}

// CountSystemCalls begins to count. It fails where perf is not installed, or may not count.
func CountSystemCalls(ctx context.Context, pids ...string) (*SystemCalls, error) {
	s := new(SystemCalls)
	s.perf = exec.CommandContext(ctx, "perf", "stat", "--field-separator=,", "--event=raw_syscalls:sys_enter", "--pid="+strings.Join(pids, ","))
	s.perf.Env = append(os.Environ(), "LC_ALL=C")
	s.perf.Stderr = &s.told
	return s, s.perf.Start()
}

// End returns how many there were.
func (s *SystemCalls) End() (int64, error) {
	_ = s.perf.Process.Signal(os.Interrupt) // if it has ended, it says why
	_ = s.perf.Wait()                       // it was interrupted
	return callsIn(s.told.String())
}

// callsIn reads the number from what perf tells: "45556,,raw_syscalls:sys_enter,754449259,100.00,,".
func callsIn(told string) (int64, error) {
	for line := range strings.Lines(told) {
		if number, _, _ := strings.Cut(line, ","); strings.Contains(line, ",raw_syscalls:sys_enter,") {
			return strconv.ParseInt(number, 10, 64)
		}
	}
	return 0, fmt.Errorf("perf counts no system calls: %s", strings.TrimSpace(told))
}
