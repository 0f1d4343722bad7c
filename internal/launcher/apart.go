package launcher

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process that stands by has what its code does when signals come. Those of an activation beside it, which may be squashed, are not
// for it: it would have done so once it takes over.

// forkApart is syscall.ForkExec, of a process that, with its children, can send signals to no others. Kernels before Linux 6.12 cannot
// keep it from that.
func forkApart(program string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread, which is in that cage too, ends with its goroutine
		stayApart()
		pid, err = syscall.ForkExec(program, argv, attr)
	}()
	<-done
	return pid, err
}

// stayApart is for this thread and the processes that it starts.
func stayApart() {
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	cage, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return
	}
	defer unix.Close(int(cage))
	_, _, _ = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, cage, 0, 0)
}
