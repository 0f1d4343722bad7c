package guard

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// With SO_LINGER, who closes a TCP socket last waits until the other side has taken what was sent, for as long as the option says: hours. That
// may be the server, to which a function has sent it, or the helper, which has a copy of it; and nothing ends that wait. So no socket of a
// sandbox is closed in this way. What was sent goes on its way behind the close, as without the option.

// linger executes the setsockopt of SO_LINGER that is held in n.
func (s *Supervisor) linger(n notification) {
	s.listener.finish(n.id, s.lingered(n))
}

func (s *Supervisor) lingered(n notification) unix.Errno {
	const size = 8 // of struct linger
	if int32(n.args[4]) < size {
		return unix.EINVAL
	}
	b, errno := n.memory(n.args[3], size)
	if errno != 0 {
		return errno
	}
	c, errno := s.caller(n)
	if errno != 0 {
		return errno
	}
	defer c.close()
	l := unix.Linger{Onoff: int32(binary.NativeEndian.Uint32(b)), Linger: int32(binary.NativeEndian.Uint32(b[4:]))}
	if l.Linger != 0 { // else the close waits for nothing: it resets the connection
		l = unix.Linger{}
	}
	return errnoOf(unix.SetsockoptLinger(c.socket, unix.SOL_SOCKET, unix.SO_LINGER, &l))
}
