package native

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// reachable is Sandbox.Reachable.
func (c *helperSandbox) reachable(pids []int) (is bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.process == nil {
		return false, fmt.Errorf("the sandbox %q has ended", c.id)
	}
	for _, pid := range pids {
		if is, err = isReachable(pid); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// isReachable looks at copies of a process's sockets. The kernel's tables would also do, but it takes longer to list TCP sockets.
func isReachable(pid int) (is bool, err error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false, fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer unix.Close(process)
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if is || err != nil {
			break
		}
		target, _ := os.Readlink(folder + "/" + e.Name()) // fails if it was closed meanwhile
		if strings.HasPrefix(target, "socket:") {
			is, err = hears(process, e.Name())
		}
	}
	return is, err
}

// hears reports whether others can connect to a socket of a process, or send to it.
func hears(process int, name string) (bool, error) {
	number, err := strconv.Atoi(name)
	if err != nil {
		return false, err
	}
	socket, err := unix.PidfdGetfd(process, number, 0)
	if errors.Is(err, unix.EBADF) { // closed meanwhile
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("copying a socket: %w", err)
	}
	defer unix.Close(socket)
	own, err := unix.Getsockname(socket)
	if err != nil {
		return false, err
	}
	switch own := own.(type) {
	case *unix.SockaddrUnix:
		if own.Name != noName {
			return true, nil
		}
	default:
		kind, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
		if kind == unix.SOCK_DGRAM || err != nil {
			return err == nil, err
		}
	}
	listens, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	return listens != 0, err
}

// noName is what x/sys says of a Unix socket that has none, or one that begins with two zeros.
const noName = "@"
