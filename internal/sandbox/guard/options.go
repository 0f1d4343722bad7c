package guard

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// option executes a held setsockopt, of a value of so many bytes: by do, on the caller's socket.
func (s *Supervisor) option(n notification, size int, do func(c caller, value []byte) unix.Errno) unix.Errno {
	value, errno := n.memory(n.args[3], size)
	if errno != 0 {
		return errno
	}
	c, errno := s.caller(n)
	if errno != 0 {
		return errno
	}
	defer c.close()
	return do(c, value)
}

// linger executes the setsockopt of SO_LINGER that is held in n.
//
// With it, who closes a TCP socket last waits until the other side has taken what was sent, for as long as the option says: hours. That
// may be the server, to which a function has sent it, or the helper, which has a copy of it; and nothing ends that wait. So no socket of a
// sandbox is closed in this way. What was sent goes on its way behind the close, as without the option.
func (s *Supervisor) linger(n notification) {
	s.listener.finish(n.id, s.lingered(n))
}

func (s *Supervisor) lingered(n notification) unix.Errno {
	const size = 8 // of struct linger
	if int32(n.args[4]) < size {
		return unix.EINVAL
	}
	return s.option(n, size, func(c caller, value []byte) unix.Errno {
		l := unix.Linger{Onoff: int32(binary.NativeEndian.Uint32(value)), Linger: int32(binary.NativeEndian.Uint32(value[4:]))}
		if l.Linger != 0 { // else the close waits for nothing: it resets the connection
			l = unix.Linger{}
		}
		return errnoOf(unix.SetsockoptLinger(c.socket, unix.SOL_SOCKET, unix.SO_LINGER, &l))
	})
}

// optionAtMost bounds an option of groups: a filter of sources is the longest.
const optionAtMost = 4096

// group executes the setsockopt of groups (multicast) that is held in n.
//
// A machine tells its network which groups it wants to hear (IGMP, MLD), and everybody there hears that. A socket that the supervisor has put
// into a sandbox would have the host tell it, for whom no address is checked, and ahead of its turn. It is TCP, and hears nothing of a group
// anyway. Of what a sandbox's own sockets want to hear its own loopback is told.
func (s *Supervisor) group(n notification) {
	s.listener.finish(n.id, s.grouped(n))
}

func (s *Supervisor) grouped(n notification) unix.Errno {
	length := int32(n.args[4])
	if length <= 0 || length > optionAtMost {
		return unix.EINVAL
	}
	return s.option(n, int(length), func(c caller, value []byte) unix.Errno {
		if c.hosts() {
			return unix.EPROTO // as the kernel says of the older options
		}
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(c.socket), uintptr(n.args[1]), uintptr(n.args[2]), uintptr(unsafe.Pointer(&value[0])), uintptr(length), 0)
		return errno
	})
}
