package guard

import (
	"encoding/binary"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// lent is a socket that was put into the sandbox. Somebody in there has it until the kernel says that it is nobody's: a
// descriptor may also be on its way from one process to another, where no process's folder shows it.
type lent struct {
	domain      int
	inode       uint32
	local, peer netip.AddrPort
	untold      bool // the kernel does not say
	permitted   bool // its peer's address was
	closing     bool // it is nobody's, and the kernel has yet to send what is left in it
}

// lentSocket is the socket that is about to be put into the sandbox; ok is false if it is connected no more.
func lentSocket(socket int, to netip.AddrPort) (l lent, ok bool) {
	var st unix.Stat_t
	name, err := unix.Getsockname(socket)
	if err == nil {
		err = unix.Fstat(socket, &st)
	}
	l = lent{inode: uint32(st.Ino), peer: to, untold: err != nil} // the numbers of sockets have no more bits
	switch name := name.(type) {
	case *unix.SockaddrInet4:
		l.domain, l.local = unix.AF_INET, netip.AddrPortFrom(netip.AddrFrom4(name.Addr), uint16(name.Port))
	case *unix.SockaddrInet6:
		l.domain, l.local = unix.AF_INET6, netip.AddrPortFrom(netip.AddrFrom16(name.Addr), uint16(name.Port))
	}
	if !l.gone() && !l.closing {
		return l, true
	}
	l.untold, l.closing = true, false // it is open, unless it has failed meanwhile
	return l, tcpState(socket) != tcpClose
}

// gone reports whether the kernel has nothing of the socket any more but its port, and looks whether somebody has it, with its connection.
// When it cannot be told, somebody has.
func (l *lent) gone() bool {
	if l.untold {
		return false
	}
	inode, unsent, err := diagnose(l.request())
	if err != nil || inode != 0 && inode == l.inode {
		return false
	}
	l.closing = inode == 0 && unsent > 1 // its end is as one byte
	return !l.closing
}

// request is a struct inet_diag_req_v2 behind its header: for one socket.
func (l lent) request() []byte {
	const size, every, anyCookie = unix.NLMSG_HDRLEN + 56, 0xffffffff, 0xffffffff
	b := make([]byte, unix.NLMSG_HDRLEN, size)
	binary.NativeEndian.PutUint32(b, size)
	binary.NativeEndian.PutUint16(b[4:], unix.SOCK_DIAG_BY_FAMILY)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b = append(b, byte(l.domain), unix.IPPROTO_TCP, 0, 0)
	b = binary.NativeEndian.AppendUint32(b, every)
	b = binary.BigEndian.AppendUint16(b, l.local.Port())
	b = binary.BigEndian.AppendUint16(b, l.peer.Port())
	for _, a := range []netip.Addr{l.local.Addr(), l.peer.Addr()} {
		var field [16]byte
		copy(field[:], a.AsSlice())
		b = append(b, field[:]...)
	}
	b = binary.NativeEndian.AppendUint32(b, 0) // whatever device
	b = binary.NativeEndian.AppendUint32(b, anyCookie)
	return binary.NativeEndian.AppendUint32(b, anyCookie)
}

// diagnosis asks the kernel about sockets.
type diagnosis struct {
	mu     sync.Mutex // guards socket
	socket int        // a netlink one; 0: none is open
}

// sockets is this process's.
var sockets diagnosis

// ask has a request answered.
func (d *diagnosis) ask(request []byte) (answer []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.socket == 0 {
		if d.socket, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG); err != nil {
			d.socket = 0
			return nil, err
		}
	}
	answer = make([]byte, 512)
	n := 0
	if err = unix.Sendto(d.socket, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err == nil {
		n, _, err = unix.Recvfrom(d.socket, answer, unix.MSG_DONTWAIT) // it is there: the kernel gives it in the sending
	}
	if err != nil { // what comes late is not another's
		unix.Close(d.socket)
		d.socket = 0
	}
	return answer[:max(0, n)], err
}

// diagnose asks the kernel for the inode of a socket, 0 if no process has it, and how many bytes of it have yet to reach the other side; 0 if
// there is none.
func diagnose(request []byte) (inode, unsent uint32, err error) {
	const atUnsent, atInode = unix.NLMSG_HDRLEN + 60, unix.NLMSG_HDRLEN + 68 // in struct inet_diag_msg
	b, err := sockets.ask(request)
	switch n := len(b); {
	case err != nil:
		return 0, 0, err
	case n >= atInode+4 && binary.NativeEndian.Uint16(b[4:]) == unix.SOCK_DIAG_BY_FAMILY:
		return binary.NativeEndian.Uint32(b[atInode:]), binary.NativeEndian.Uint32(b[atUnsent:]), nil
	case n >= unix.NLMSG_HDRLEN+4 && binary.NativeEndian.Uint16(b[4:]) == unix.NLMSG_ERROR:
		if errno := unix.Errno(-int32(binary.NativeEndian.Uint32(b[unix.NLMSG_HDRLEN:]))); errno != unix.ENOENT {
			return 0, 0, errno
		}
		return 0, 0, nil
	}
	return 0, 0, unix.EBADMSG
}
