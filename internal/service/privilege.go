package service

import (
	"syscall"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/forerun"
)

// dropPrivileges makes the whole process an ordinary user's for good: no group but the user's own, and no way back
// through any program that it executes.
func dropPrivileges(uid int) error {
	steps := []struct {
		name string
		run  func() error
	}{
		{"setgroups", func() error { return syscall.Setgroups(nil) }},
		{"setresgid", func() error { return syscall.Setresgid(uid, uid, uid) }},
		{"setresuid", func() error { return syscall.Setresuid(uid, uid, uid) }},
		{"no_new_privs", noNewPrivileges},
	}
	for _, step := range steps {
		if err := step.run(); err != nil {
			return forerun.Errorf(forerun.Internal, step.name, "The server cannot become user %d: %w", uid, err)
		}
	}
	return nil
}

// noNewPrivileges is asked for where Go can do it on all threads: in a binary without cgo.
func noNewPrivileges() error {
	_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0)
	if errno != 0 && errno != syscall.ENOTSUP {
		return errno
	}
	return nil
}
