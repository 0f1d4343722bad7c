package guard

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// helperCalls are the system calls that the helper and the first stage of sandboxes need beside those that functions may make.
func helperCalls() []uint32 {
	return []uint32{
		unix.SYS_CLONE3, unix.SYS_UNSHARE, unix.SYS_SETHOSTNAME, // namespaces
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR, unix.SYS_FSPICK, unix.SYS_FSCONFIG,
		unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_VM_READV, // what callers of held calls have
	}
}

// ConfineHelper puts a filter on all threads of this process, the helper, and on whatever it starts. It keeps the helper from the parts of
// the kernel that it does not use: modules, ptrace, bpf, io_uring, keys, clocks and others. It takes no arguments into account, which the
// filter of a sandbox does. Only root can install it without giving up what the first stage needs.
func ConfineHelper() error {
	program, err := helperFilter()
	if err != nil {
		return fmt.Errorf("assembling the helper's system-call filter: %w", err)
	}
	thread, err := setFilter(program, unix.SECCOMP_FILTER_FLAG_TSYNC)
	if err == nil && thread != 0 {
		err = fmt.Errorf("thread %d has another filter", thread)
	}
	if err != nil {
		return fmt.Errorf("installing the helper's system-call filter: %w", err)
	}
	return nil
}

func helperFilter() ([]bpf.RawInstruction, error) {
	numbers := append(append(commonCalls(), archCalls()...), helperCalls()...)
	for _, c := range closeCalls() {
		numbers = append(numbers, c.number)
	}
	program := append(callConvention(), allowing(numbers)...)
	return bpf.Assemble(append(program, ret(retErrno(unix.EPERM))))
}
