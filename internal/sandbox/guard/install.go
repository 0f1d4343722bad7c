package guard

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Install puts the filter on the calling thread, which must be locked and about to execute the sandbox's program, and
// returns the listener of held calls. no_new_privs must be set.
func Install() (listener int, err error) {
	program, err := filter()
	if err != nil {
		return -1, fmt.Errorf("assembling the system-call filter: %w", err)
	}
	// WAIT_KILLABLE_RECV (Linux 5.19): a held call is not restarted by signals such as a runtime's timer.
	const listen = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
	listener, err = setFilter(program, listen|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if errors.Is(err, unix.EINVAL) {
		listener, err = setFilter(program, listen)
	}
	if err != nil {
		return -1, fmt.Errorf("installing the system-call filter: %w", err)
	}
	return listener, nil
}

func setFilter(program []bpf.RawInstruction, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// Supported reports, as a sentence, what this kernel lacks for the guard; nil if nothing.
func Supported() error {
	action := uint32(retHold)
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return fmt.Errorf("this kernel cannot hold system calls for a supervisor (seccomp user notification): use Linux 5.12 or newer with CONFIG_SECCOMP_FILTER: %w", errno)
	}
	if _, err := unix.PidfdGetfd(-1, 0, 0); err == unix.ENOSYS {
		return fmt.Errorf("this kernel cannot copy a descriptor of another process (pidfd_getfd): use Linux 5.12 or newer: %w", err)
	}
	if _, err := hostCookie(); err != nil {
		return fmt.Errorf("this kernel cannot tell whose network a socket belongs to (SO_NETNS_COOKIE): use Linux 5.14 or newer: %w", err)
	}
	return nil
}
