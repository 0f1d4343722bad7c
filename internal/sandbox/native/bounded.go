package native

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"
)

// helperCapabilities are those that the helper uses when root starts it. In the user namespace of a sandbox the first stage has all, which
// count there alone.
func helperCapabilities() []uintptr {
	return []uintptr{
		unix.CAP_SYS_ADMIN,                                 // namespaces, mounts, filters
		unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, // user ids of sandboxes, and to act as their users
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, // outputs and folders of sandboxes
		unix.CAP_KILL, unix.CAP_SYS_PTRACE, // processes of sandboxes, what they have, and memory of held calls
		unix.CAP_SYS_NICE, // the runtime's monitor thread
	}
}

// startBounded starts the helper so that it can never have other capabilities. The bounding set is of a thread, which ends afterwards.
func startBounded(cmd *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return cmd.Start()
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := boundCapabilities(helperCapabilities())
		if err == nil || errors.Is(err, unix.EPERM) { // a root without CAP_SETPCAP has what it was given
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// boundCapabilities takes all others from what this thread, and what it starts, can ever have.
func boundCapabilities(keep []uintptr) error {
	for c := uintptr(0); ; c++ {
		if slices.Contains(keep, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err == unix.EINVAL {
			return nil // past the last capability
		} else if err != nil {
			return fmt.Errorf("dropping capability %d from the bounding set: %w", c, err)
		}
	}
}
