package guard

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// A machine tells its network which groups it wants to hear (IGMP, MLD), and everybody there hears that. A socket that the supervisor has put
// into a sandbox would have the host tell it, for whom no address is checked, and ahead of its turn. It is TCP, and hears nothing of a group
// anyway. Of what a sandbox's own sockets want to hear its own loopback is told.

// optionAtMost bounds an option that is executed here: a filter of sources is the longest.
const optionAtMost = 4096

// group executes the setsockopt of groups that is held in n.
func (s *Supervisor) group(n notification) {
	s.listener.finish(n.id, s.grouped(n))
}

func (s *Supervisor) grouped(n notification) unix.Errno {
	length := int32(n.args[4])
	if length <= 0 || length > optionAtMost {
		return unix.EINVAL
	}
	b, errno := n.memory(n.args[3], int(length))
	if errno != 0 {
		return errno
	}
	c, errno := s.caller(n)
	if errno != 0 {
		return errno
	}
	defer c.close()
	if c.hosts() {
		return unix.EPROTO // as the kernel says of the older options
	}
	_, _, errno = unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(c.socket), uintptr(n.args[1]), uintptr(n.args[2]), uintptr(unsafe.Pointer(&b[0])), uintptr(length), 0)
	return errno
}
