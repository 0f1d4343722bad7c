package native

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// The kernel counts some resources of a user also for the user who made its user namespace, and so on up. Examples are instances of
// inotify (mostly 128 for a user), pending signals and processes. If root made the sandboxes, one sandbox could take the resources of all,
// and of the host's root. So each sandbox is made by a user of its own.

// noFixup is SECBIT_NO_SETUID_FIXUP: a thread that changes its user keeps its capabilities.
const noFixup = 1 << 2

// startApart starts the first stage of a sandbox in its namespaces. The first of the sandbox's users makes them. The forking thread calls
// it.
func (h *helper) startApart(c *helperSandbox, attr *os.ProcAttr) (p *os.Process, err error) {
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

// setEffective changes the effective user of this thread only; x/sys would change it for all threads.
func setEffective(user int) error {
	const unchanged = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(user), unchanged); errno != 0 {
		return fmt.Errorf("becoming user %d: %w", user, errno)
	}
	return nil
}
