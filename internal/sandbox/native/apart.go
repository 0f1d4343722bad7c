package native

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Of some things the kernel counts what a user has also for who has made his user namespace, and so on up: of those that watch files, of which a
// user has 128 mostly, of signals that wait, of processes. Were it root that makes the sandboxes, one of them could take what all have,
// and the host's root with them. So each is made by a user of its own.

// noFixup is SECBIT_NO_SETUID_FIXUP: a thread that changes its user keeps its capabilities.
const noFixup = 1 << 2

// startApart starts the first stage of a cell in its namespaces, which are made by the first of its users. It is for the thread that forks.
func (h *helper) startApart(c *cell, attr *os.ProcAttr) (p *os.Process, err error) {
	start := func() {
		p, err = os.StartProcess(h.settings.executable, append([]string{h.settings.executable}, h.settings.initArgs...), attr)
	}
	if !h.root || unix.Prctl(unix.PR_SET_SECUREBITS, noFixup, 0, 0, 0) != nil { // without that, root makes it
		start()
		return p, err
	}
	if err := setEffective(c.firstID()); err != nil {
		return nil, err
	}
	start()
	_ = setEffective(0) // which it may
	return p, err
}

// setEffective changes the effective user of this thread, unlike x/sys, which changes that of all.
func setEffective(user int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(user), unchanged); errno != 0 {
		return fmt.Errorf("becoming user %d: %w", user, errno)
	}
	return nil
}
