package guard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Some kernels let only root attach a packet filter to a socket of the host's network. Where sockets that are put
// into a sandbox cannot be locked to their peer, a call that continues could be turned on one of them by another
// thread, after it was looked at. So there no connect continues, and listen is held too: the supervisor executes them
// itself, on the very socket that it has looked at. What remains to such a socket then is its one connection: its port
// cannot be changed, and its other calls take no address.

// CanLock reports whether this process may attach packet filters, so that the guard need not be careful.
func CanLock() bool {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(socket)
	return attachFilter(socket, []bpf.Instruction{bpf.RetConstant{Val: 0xffffffff}}) == nil
}

// perform executes a held connect that stays inside, or listen, in the place of the caller.
func (s *Supervisor) perform(n notification, raw []byte) {
	c, errno := s.caller(n, int(int32(n.args[0])))
	if errno != 0 {
		s.listener.finish(n.id, errno)
		return
	}
	defer unix.Close(c.socket)
	switch {
	case c.hosts():
		errno = unix.EACCES // it has its connection and nothing else
	case n.number == unix.SYS_LISTEN:
		errno = errnoOf(unix.Listen(c.socket, int(int32(n.args[1]))))
	case c.domain == unix.AF_UNIX && isPath(raw):
		errno = s.connectPath(n, c, raw)
	default:
		errno = s.connectAs(n.id, c, raw)
	}
	s.listener.finish(n.id, errno)
}

// hosts reports whether the socket belongs to the host's network: the supervisor put it there.
func (c caller) hosts() bool {
	host, err1 := hostCookie()
	its, err2 := netnsCookie(c.socket)
	return err1 != nil || err2 != nil || host == its
}

// netnsCookie tells one network namespace from all others.
func netnsCookie(socket int) (uint64, error) {
	return unix.GetsockoptUint64(socket, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// hostCookie is that of this process's own network.
func hostCookie() (uint64, error) {
	own, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(own)
	return netnsCookie(own)
}

// connectAs connects the caller's own socket. The caller waits, the supervisor does not: the socket is non-blocking
// meanwhile.
func (s *Supervisor) connectAs(id uint64, c caller, raw []byte) unix.Errno {
	if !c.nonblocking {
		if err := unix.SetNonblock(c.socket, true); err != nil {
			return errnoOf(err)
		}
		defer func() { _ = unix.SetNonblock(c.socket, false) }()
	}
	for {
		errno := connect(c.socket, raw)
		switch {
		case c.nonblocking || errno != unix.EINPROGRESS && errno != unix.EAGAIN:
			return errno
		case errno == unix.EINPROGRESS:
			return s.wait(id, c.socket, c.sendTimeout())
		case !s.listener.valid(id):
			return unix.EINTR
		}
		time.Sleep(time.Millisecond) // a unix listener's queue is full: nothing tells when it no longer is
	}
}

func connect(socket int, raw []byte) unix.Errno {
	var address unsafe.Pointer
	if len(raw) > 0 {
		address = unsafe.Pointer(&raw[0])
	}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(socket), uintptr(address), uintptr(len(raw)))
	return errno
}

// isPath reports whether a unix address names a file; the others do not depend on who looks them up.
func isPath(raw []byte) bool {
	return len(raw) > 2 && binary.NativeEndian.Uint16(raw) == unix.AF_UNIX && raw[2] != 0
}

// connectPath finds the named socket as the caller sees it.
func (s *Supervisor) connectPath(n notification, c caller, raw []byte) unix.Errno {
	path, _, _ := bytes.Cut(raw[2:], []byte{0})
	from, resolve := "cwd", uint64(unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)
	if path[0] == '/' {
		from, resolve = "root", unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS
	}
	base, err := unix.Open(fmt.Sprintf("/proc/%d/%s", n.pid, from), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(base)
	if !s.listener.valid(n.id) { // else it may be another process's folder
		return unix.EINTR
	}
	file, err := unix.Openat2(base, string(path), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: resolve})
	if err != nil {
		return errnoOf(err)
	}
	defer unix.Close(file)
	named := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	return s.connectAs(n.id, c, append(fmt.Appendf(named, "/proc/self/fd/%d", file), 0))
}
