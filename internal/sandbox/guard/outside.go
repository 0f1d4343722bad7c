package guard

import (
	"bytes"
	"cmp"
	"errors"
	"net/netip"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// TCP's states as TCP_INFO has them.
const (
	tcpSynSent = 2
	tcpClose   = 7
)

// liveness is how often a waiting connect looks whether its caller still lives.
const liveness = 200 * time.Millisecond

// open connects in the place of the caller of the held call n and puts the socket at the caller's descriptor. A caller
// that is killed meanwhile gets no answer and the socket is closed. What may take long is done beside the next calls.
func (s *Supervisor) open(n notification, to netip.AddrPort, raw []byte) {
	c, errno := s.caller(n)
	if errno != 0 {
		s.listener.finish(n.id, errno)
		return
	}
	if c.protocol != unix.IPPROTO_TCP { // a datagram socket stays the sandbox's: the relay forwards for it; of others the kernel refuses the address
		errno = connect(c.socket, raw)
		c.close()
		s.listener.finish(n.id, errno)
		return
	}
	end := s.waiting.begin(n.id, func() {}) // before it is looked whether it lives: nothing of it goes on after a Sweep
	connectOutside := func() {
		errno := s.openTCP(n, c, to)
		c.close()
		s.listener.finish(n.id, errno)
		s.gate.leave()
	}
	opened := s.gate.enter(to)
	if opened == nil && !s.listener.valid(n.id) { // it was killed before the gate was lifted, for another activation perhaps
		s.gate.leave()
		c.close()
		end()
		return
	}
	if opened == nil && c.nonblocking {
		connectOutside()
		end()
		return
	}
	s.beside.Go(func() {
		defer end()
		if opened == nil || s.pass(n.id, to, opened) {
			connectOutside()
		} else {
			c.close()
		}
	})
}

func (s *Supervisor) openTCP(n notification, c caller, to netip.AddrPort) unix.Errno {
	errno := c.unconnected()
	if errno == unix.EALREADY && !c.nonblocking {
		switch errno = s.wait(n, c.socket, c.sendTimeout()); errno {
		case unix.EINPROGRESS:
			return unix.EALREADY
		case restart:
			return c.interrupted()
		}
		return errno
	}
	if errno != 0 {
		return errno
	}
	if !s.gate.room() || !s.gate.ownerHasRoom() {
		return unix.EADDRNOTAVAIL // as if the host had no port
	}
	socket, errno := s.begin(c, to)
	if socket < 0 {
		return errno
	}
	defer unix.Close(socket)
	if errno == unix.EINPROGRESS && !c.nonblocking {
		errno = s.wait(n, socket, c.sendTimeout())
	}
	switch errno {
	case 0, unix.EINPROGRESS:
	case restart: // the attempt goes on
		errno = c.interrupted()
	default:
		return errno
	}
	if err := unix.SetNonblock(socket, c.nonblocking); err != nil {
		return errnoOf(err)
	}
	s.gate.lend(socket, to)
	return cmp.Or(s.take(n, c, socket), errno)
}

// begin starts the connection. If the chosen port has lately been used for one to the same peer, another is tried.
func (s *Supervisor) begin(c caller, to netip.AddrPort) (socket int, errno unix.Errno) {
	const attempts = 16
	for range attempts {
		if socket, errno = prepare(c); errno != 0 {
			return -1, errno
		}
		if errno = errnoOf(unix.Connect(socket, sockaddr(to))); errno != unix.EADDRNOTAVAIL {
			return socket, errno
		}
		_ = unix.Close(socket)
	}
	return -1, errno
}

// wait waits until the connection stands or failed; restart means that the caller has a signal to handle first.
func (s *Supervisor) wait(n notification, socket int, limit time.Duration) unix.Errno {
	if tcpState(socket) != tcpSynSent { // as on the loopback
		return outcome(socket)
	}
	f, err := duplicate(socket)
	if err != nil {
		return errnoOf(err)
	}
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return unix.EIO
	}
	defer s.waiting.begin(n.id, func() { _ = f.SetWriteDeadline(time.Now()) })()
	for begin := time.Now(); ; {
		_ = f.SetWriteDeadline(time.Now().Add(liveness))
		if !s.listener.valid(n.id) { // looked at behind the deadline, so that no Sweep's is lost
			return unix.EINTR // goes to nobody
		}
		err := raw.Write(func(fd uintptr) bool { return tcpState(int(fd)) != tcpSynSent })
		switch {
		case err == nil:
			return outcome(socket)
		case limit > 0 && time.Since(begin) > limit:
			return unix.EINPROGRESS // what a blocking connect says when SO_SNDTIMEO has passed
		case signalled(int(n.pid)):
			return restart
		}
	}
}

// outcome is how a connection has failed, told once; 0 if it has not.
func outcome(socket int) unix.Errno {
	code, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return errnoOf(err)
	}
	return unix.Errno(code)
}

// duplicate returns a pollable file of the socket, so that the two can be closed apart.
func duplicate(socket int) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(socket), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}

// caller is the socket with which a held call was made.
type caller struct {
	number      int // of its descriptor there
	socket      int // our own descriptor of it
	domain      int
	kind        int // SOCK_STREAM for example
	protocol    int
	nonblocking bool
	counted     func() // ends that the copy is
}

// close closes our own descriptor.
func (c caller) close() {
	unix.Close(c.socket)
	c.counted()
}

// caller copies the descriptor with which the thread that waits in n has called.
func (s *Supervisor) caller(n notification) (caller, unix.Errno) {
	counted, ok := s.gate.copying()
	if !ok {
		return caller{}, unix.ENFILE
	}
	number := int(int32(n.args[0]))
	socket, errno := s.copyOf(n, number)
	if errno != 0 {
		counted()
		return caller{}, errno
	}
	c := caller{number: number, socket: socket, counted: counted}
	flags, err1 := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0)
	domain, err2 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_DOMAIN)
	kind, err3 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_TYPE)
	protocol, err4 := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	c.nonblocking, c.domain, c.kind, c.protocol = flags&unix.O_NONBLOCK != 0, domain, kind, protocol
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			c.close()
			return caller{}, errnoOf(err)
		}
	}
	return c, 0
}

// copyOf copies a descriptor of the thread that waits in n.
func (s *Supervisor) copyOf(n notification, number int) (fd int, errno unix.Errno) {
	process, err := openProcess(int(n.pid))
	if err != nil {
		return -1, unix.ESRCH
	}
	defer unix.Close(process)
	if fd, err = unix.PidfdGetfd(process, number, 0); err != nil {
		return -1, errnoOf(err)
	}
	if !s.listener.valid(n.id) { // the number may be another process's by now
		unix.Close(fd)
		return -1, unix.ESRCH
	}
	return fd, 0
}

// openProcess opens a pidfd of the thread, or of its process where threads have none (before Linux 6.9).
func openProcess(thread int) (int, error) {
	if fd, err := unix.PidfdOpen(thread, unix.PIDFD_THREAD); err == nil {
		return fd, nil
	}
	status, err := proc.ReadStatus(thread)
	if err != nil {
		return -1, err
	}
	return unix.PidfdOpen(int(status.Number("Tgid")), 0)
}

// closesOnExec reads the descriptor's own flag, which a copy does not carry.
func closesOnExec(thread, fd int) bool {
	file, err := unix.Open("/proc/"+strconv.Itoa(thread)+"/fdinfo/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true // the safer of the two
	}
	defer unix.Close(file)
	var info [256]byte // it begins with pos and flags
	n, _ := unix.Read(file, info[:])
	for line := range bytes.Lines(info[:max(0, n)]) {
		if text, ok := bytes.CutPrefix(line, []byte("flags:")); ok {
			flags, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 8, 32)
			return err != nil || flags&unix.O_CLOEXEC != 0
		}
	}
	return true
}

// unconnected answers as the kernel would for a socket on which a connect was made before.
func (c caller) unconnected() unix.Errno {
	switch tcpState(c.socket) {
	case tcpClose:
		return outcome(c.socket) // of the attempt that failed; 0 lets a new one begin
	case tcpSynSent:
		return unix.EALREADY
	default:
		return unix.EISCONN
	}
}

// sendTimeout is SO_SNDTIMEO, which also limits a connect; 0 if there is none.
func (c caller) sendTimeout() time.Duration {
	limit, err := unix.GetsockoptTimeval(c.socket, unix.SOL_SOCKET, unix.SO_SNDTIMEO)
	if err != nil {
		return 0
	}
	return time.Duration(limit.Nano())
}

func tcpState(socket int) uint8 {
	info, err := unix.GetsockoptTCPInfo(socket, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return tcpClose
	}
	return info.State
}

func errnoOf(err error) unix.Errno {
	if err == nil {
		return 0
	}
	errno := unix.EIO
	errors.As(err, &errno)
	return errno
}
