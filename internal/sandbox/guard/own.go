package guard

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// Processes of a sandbox have one user, so the kernel lets each set what another may use: its limits, its priority, its
// processors. What a handler did so to the initializer, all later ones would inherit, and what it did to a spare, the next
// activation would have. So a handler sets what is its own process's.

// target is the process, or thread, that a held call names whose settings it changes, as numbered in the sandbox.
func (n *notification) target() (pid int, ok bool) {
	switch n.number {
	case unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER:
		return int(int32(n.args[0])), true
	case unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET:
		return int(int32(n.args[1])), true
	}
	return 0, false
}

// isOwn reports whether a thread's process has a number in the sandbox, or has a thread with it. The sandbox's own /proc knows, at the same
// cost however many threads there are.
func isOwn(thread, number int) bool {
	status, err := proc.ReadStatus(thread)
	if err != nil { // it has ended
		return false
	}
	_, err = os.Lstat(fmt.Sprintf("/proc/%d/root/proc/%d/task/%d", thread, status.Innermost("NStgid"), number))
	return err == nil
}
