package native

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bits of PR_SET_SECUREBITS: user 0 means nothing, no capability comes back by changing ids or by inheritance, and
// all of it is locked.
const secureBits = 1<<0 | 1<<1 | // no root, locked
	1<<5 | // keep capabilities: off and locked
	1<<6 | 1<<7 // no ambient capabilities, locked

// limitSelf sets what concerns the process itself and is inherited by all handlers.
func limitSelf(p plan) error {
	if err := unix.Sethostname([]byte(hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	limits := map[int]unix.Rlimit{
		unix.RLIMIT_MSGQUEUE: {},
		unix.RLIMIT_NICE:     {}, // of its own share of the processors alone
		unix.RLIMIT_RTPRIO:   {}, // as above
	}
	if p.processes > 0 {
		limits[unix.RLIMIT_NPROC] = unix.Rlimit{Cur: uint64(p.processes), Max: uint64(p.processes)}
	}
	for resource, limit := range limits {
		if err := lowerLimit(resource, limit); err != nil {
			return err
		}
	}
	unix.Umask(0o022)
	return os.Chdir("/tmp")
}

// limitFiles is for later: with less than an ordinary user's other sandboxes have sent to themselves, the first stage could pass nothing on.
func limitFiles() error { return lowerLimit(unix.RLIMIT_NOFILE, unix.Rlimit{Cur: 1024, Max: 65536}) }

// lowerLimit never raises: that would need a privilege.
func lowerLimit(resource int, limit unix.Rlimit) error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, resource, nil, &now); err != nil {
		return fmt.Errorf("reading resource limit %d: %w", resource, err)
	}
	limit.Max = min(limit.Max, now.Max)
	limit.Cur = min(limit.Cur, limit.Max)
	if err := unix.Prlimit(0, resource, &limit, nil); err != nil {
		return fmt.Errorf("setting resource limit %d: %w", resource, err)
	}
	return nil
}

// dropPrivileges gives up every capability and, if root is mapped, becomes the function's user. Raw calls change this
// thread alone, which is the one that executes the initializer.
func dropPrivileges(root bool) error {
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, secureBits, 0, 0, 0); err != nil {
		return fmt.Errorf("setting the secure bits: %w", err)
	}
	if err := boundCapabilities(nil); err != nil {
		return err
	}
	if root {
		if err := changeIDs(); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing the ambient capabilities: %w", err)
	}
	header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("giving up the capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	// Changing credentials clears it. The helper that ended in between is noticed at the setup socket.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("setting the parent-death signal: %w", err)
	}
	return nil
}

func changeIDs() error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, 0, uintptr(unsafe.Pointer(nil)), 0); errno != 0 {
		return fmt.Errorf("leaving all supplementary groups: %w", errno)
	}
	for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} {
		if _, _, errno := unix.RawSyscall(call, insideUID, insideUID, insideUID); errno != 0 {
			return fmt.Errorf("becoming user and group %d: %w", insideUID, errno)
		}
	}
	return nil
}
