package guard

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Some kernels let only root attach a packet filter to a socket of the host's network. Where sockets that are put
// into a sandbox cannot be locked to their peer, one whose connection has failed could listen to anybody. So there listen
// is held too.

// CanLock reports whether this process may attach packet filters, so that the guard need not be careful.
func CanLock() bool {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(socket)
	return attachFilter(socket, []bpf.Instruction{bpf.RetConstant{Val: 0xffffffff}}) == nil
}
