package sandboxtest

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// testSettingsOfOthers: a handler sets its own process's limits, priorities and processors, whichever way it names that; the initializer's,
// which all later handlers would inherit, it does not.
func (s *suite) testSettingsOfOthers(t *testing.T) {
	a := s.withLibc(t)
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	nice := 20 - priority // the system call gives 20 less the nice value, which sandboxes inherit
	const prepare = libc + "import os, resource, threading\nresult = 0\n"
	const aside = prepare + `
def run():
    global result, pid
    try: result = %s
    except OSError as e: result = e.errno
main = threading.get_native_id()
thread = threading.Thread(target=run)
thread.start(); thread.join()`
	for _, set := range []string{
		"resource.prlimit(%s, resource.RLIMIT_NOFILE, (60, 60)) and 0",
		"os.setpriority(os.PRIO_PROCESS, %s, 19) or 0",
		"os.sched_setaffinity(%s, [min(os.sched_getaffinity(0))]) or 0",
		"os.sched_setscheduler(%s, os.SCHED_BATCH, os.sched_param(0)) or 0",
		"os.sched_setparam(%s, os.sched_param(0)) or 0",
		fmt.Sprintf("call(%d, %%s, (ctypes.c_uint32 * 12)(48, 0, 0, 0, %d), 0)", unix.SYS_SCHED_SETATTR, nice),
		fmt.Sprintf("call(%d, 1, %%s, 2 << 13)", unix.SYS_IOPRIO_SET),
	} {
		for who, want := range map[string]string{"0": "0", "os.getpid()": "0", "main": "0", "threading.get_native_id()": "0", "os.getppid()": "1", "-1": "1"} {
			a.expect(want, fmt.Sprintf(aside, fmt.Sprintf(set, who)))
		}
	}
	for _, set := range []string{"os.setpriority(os.PRIO_USER, 0, 19)", "os.setpriority(os.PRIO_PGRP, 0, 19)", fmt.Sprintf("call(%d, 3, 0, 2 << 13)", unix.SYS_IOPRIO_SET)} {
		a.expect("1", fmt.Sprintf(aside, set))
	}
	a.expect("True", prepare+"result = resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)[0] > 60")
	a.expect(fmt.Sprintf("%d 0 True", nice), prepare+"result = '%d %d %s' % (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0) == os.sched_getaffinity(os.getppid()))")
}
