package guard

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif.
type notification struct {
	id     uint64
	pid    uint32 // the thread, as numbered where the supervisor lives
	flags  uint32
	number int32
	arch   uint32
	ip     uint64
	args   [6]uint64
}

// answer is struct seccomp_notif_resp.
type answer struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// addfd is struct seccomp_notif_addfd.
type addfd struct {
	id       uint64
	flags    uint32
	source   uint32
	target   uint32
	newFlags uint32
}

// Requests that x/sys does not name.
const (
	ioctlIDValid = 0x40082102
	ioctlAddFD   = 0x40182103
)

// listener is the descriptor on which held calls arrive.
type listener struct {
	file *os.File // non-blocking, so that waiting costs no thread
	raw  rawControl
}

type rawControl interface {
	Control(func(fd uintptr)) error
	Read(func(fd uintptr) (done bool)) error
}

func newListener(fd int) (*listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	f := os.NewFile(uintptr(fd), "seccomp listener")
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &listener{file: f, raw: raw}, nil
}

// next waits for a held call. ok is false when the last process of the sandbox is gone or the listener is closed.
func (l *listener) next() (n notification, ok bool) {
	err := l.raw.Read(func(fd uintptr) bool {
		for {
			// The receiving ioctl would block if nothing waited: ask first.
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if _, err := unix.Poll(poll, 0); err == unix.EINTR {
				continue
			}
			switch {
			case poll[0].Revents&unix.POLLIN != 0:
				n = notification{}
				if ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) == 0 {
					ok = true
					return true
				} // else the caller died in between
			case poll[0].Revents != 0:
				return true
			default:
				return false
			}
		}
	})
	return n, ok && err == nil
}

// valid reports whether the held call still waits: then its thread lives, and what was read by its id is its own.
func (l *listener) valid(id uint64) bool {
	return l.control(ioctlIDValid, unsafe.Pointer(&id)) == 0
}

func (l *listener) proceed(id uint64) {
	l.send(answer{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
}

// finish ends the call without executing it, with an error or, if errno is 0, with the value 0.
func (l *listener) finish(id uint64, errno unix.Errno) {
	l.send(answer{id: id, errno: -int32(errno)})
}

// send ignores failure: it means that the caller was killed meanwhile.
func (l *listener) send(a answer) {
	l.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&a))
}

// replace puts the socket fd at the caller's descriptor number target.
func (l *listener) replace(id uint64, fd, target int, closeOnExec bool) unix.Errno {
	a := addfd{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD, source: uint32(fd), target: uint32(target)}
	if closeOnExec {
		a.newFlags = unix.O_CLOEXEC
	}
	return l.control(ioctlAddFD, unsafe.Pointer(&a))
}

func (l *listener) control(request uintptr, argument unsafe.Pointer) unix.Errno {
	errno := unix.EBADF
	_ = l.raw.Control(func(fd uintptr) { errno = ioctl(fd, request, argument) })
	return errno
}

func ioctl(fd, request uintptr, argument unsafe.Pointer) unix.Errno {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, request, uintptr(argument))
		if errno != unix.EINTR {
			return errno
		}
	}
}
