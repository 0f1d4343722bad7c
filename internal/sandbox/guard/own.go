package guard

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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

// isOwn reports whether a thread's process has a thread with a number in the sandbox.
func isOwn(thread, number int) bool {
	statuses, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(thread), "task", "*", "status")) // fails for a wrong pattern only
	for _, path := range statuses {
		if status, err := os.ReadFile(path); err == nil && innermostID(string(status)) == number {
			return true
		}
	}
	return false
}

// innermostID is a thread's number in its own namespace; 0: it has ended.
func innermostID(status string) int {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "NSpid:"); ok {
			if ids := strings.Fields(rest); len(ids) > 0 {
				id, _ := strconv.Atoi(ids[len(ids)-1]) // the kernel writes numbers
				return id
			}
		}
	}
	return 0
}
