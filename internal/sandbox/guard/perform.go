package guard

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A connect that continued could be turned by another thread, after it was looked at, on a socket of the host's network.
// The kernel would have that forget its connection and ask any address for another. So the supervisor executes it itself, on the very
// socket that it has looked at. A listen likewise, with which such a socket would wait for anybody.

// perform executes a held connect that stays inside, or listen, in the place of the caller.
func (s *Supervisor) perform(n notification, raw []byte) {
	killed := make(chan struct{}, 1)
	defer s.waiting.begin(n.id, func() { signal(killed) })() // before caller looks whether it lives: nothing is executed for it after a Sweep
	s.listener.finish(n.id, s.executed(n, raw, killed))
}

// executed is how that ended. The caller is told when nobody else has its socket any more: it may close that, and want its name again.
func (s *Supervisor) executed(n notification, raw []byte, killed <-chan struct{}) unix.Errno {
	c, errno := s.caller(n)
	if errno != 0 {
		return errno
	}
	defer c.close()
	switch {
	case c.hosts():
		return unix.EACCES // it has its connection and nothing else
	case c.domain == unix.AF_NETLINK:
		return unix.EPERM // the supervisor could connect it with another process, which the sandbox cannot
	case n.number == unix.SYS_LISTEN:
		return s.listen(c, int(int32(n.args[1])))
	case c.domain == unix.AF_UNIX && isPath(raw):
		return s.connectPath(n, c, raw, killed)
	default:
		return s.connectAs(n, c, raw, killed)
	}
}

// listen has the kernel note, for those who connect, whose a unix socket is.
func (s *Supervisor) listen(c caller, backlog int) unix.Errno {
	if c.domain != unix.AF_UNIX {
		return errnoOf(unix.Listen(c.socket, backlog))
	}
	return s.asUser(func() unix.Errno { return errnoOf(unix.Listen(c.socket, backlog)) })
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
var hostCookie = sync.OnceValues(func() (uint64, error) {
	own, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(own)
	return netnsCookie(own)
})

// How long a connect waits before it asks again a unix listener whose queue was full: nothing tells when it no longer is.
const (
	shortestPause = time.Millisecond
	longestPause  = 50 * time.Millisecond
)

// connectAs connects the caller's own socket. The caller waits, the supervisor does not: the socket is non-blocking
// meanwhile, unless it carries datagrams, whose connect does not wait, but whose receivers would see it.
func (s *Supervisor) connectAs(n notification, c caller, raw []byte, killed <-chan struct{}) unix.Errno {
	if c.nonblocking || c.kind == unix.SOCK_DGRAM {
		return s.attempt(c, raw, killed)
	}
	defer func() { _ = unix.SetNonblock(c.socket, false) }()
	begin := time.Now()
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		if err := unix.SetNonblock(c.socket, true); err != nil {
			return errnoOf(err)
		}
		errno := s.attempt(c, raw, killed)
		if errno == unix.EINPROGRESS || errno == unix.EALREADY {
			return s.settle(n, c, raw, errno, killed)
		}
		if errno != unix.EAGAIN || c.domain != unix.AF_UNIX { // of others, no port is free
			return errno
		}
		if limit := c.sendTimeout(); limit > 0 {
			left := limit - time.Since(begin)
			if left <= 0 {
				return unix.EAGAIN
			}
			pause = min(pause, left)
		}
		select {
		case <-killed:
		case <-time.After(pause):
		}
		if !s.listener.valid(n.id) {
			return unix.EINTR
		}
		if signalled(int(n.pid)) {
			return c.interrupted()
		}
	}
}

// settle waits for the end of an attempt, which this connect or one before has begun, and has the kernel take note of it, as a
// connect that waits does.
func (s *Supervisor) settle(n notification, c caller, raw []byte, begun unix.Errno, killed <-chan struct{}) unix.Errno {
	errno := s.wait(n, c.socket, c.sendTimeout())
	switch errno {
	case unix.EINTR:
	case restart:
		return c.interrupted()
	case unix.EINPROGRESS:
		return begun
	default:
		_ = s.attempt(c, raw, killed)
	}
	return errno
}

// attempt asks the kernel to connect, which looks at who does, and tells the other side, if it is a unix socket.
func (s *Supervisor) attempt(c caller, raw []byte, killed <-chan struct{}) unix.Errno {
	return s.inTurn(killed, func() unix.Errno {
		if c.domain != unix.AF_UNIX {
			return promptly(c.socket, raw)
		}
		return s.asUser(func() unix.Errno { return promptly(c.socket, raw) })
	})
}

// inTurn does what takes a thread when there is one for it, or nothing if the caller has been killed.
func (s *Supervisor) inTurn(killed <-chan struct{}, do func() unix.Errno) unix.Errno {
	select {
	case s.attempts <- struct{}{}:
	case <-killed:
		return unix.EINTR
	}
	defer func() { <-s.attempts }()
	return do()
}

// attemptsAtMost is how many attempts to connect, and to find a socket, of a sandbox are executed at the same time, each by a thread.
// None takes long.
const attemptsAtMost = 16

// promptly connects without waiting, although another thread of the sandbox may make the socket blocking at any moment. The kernel would
// then wait for as long as nobody answers, whatever is killed.
func promptly(socket int, raw []byte) unix.Errno {
	waits := impatience{hasten: func() { _ = unix.SetNonblock(socket, true) }}
	waits.begin()
	errno := unix.EINTR
	for errno == unix.EINTR {
		errno = connect(socket, raw)
	}
	if waits.end() {
		_ = unix.SetNonblock(socket, false) // as it was found
	}
	return errno
}

// impatience interrupts a call of a thread that takes long.
type impatience struct {
	hasten     func() // keeps the call from waiting again
	thread     int
	mu         sync.Mutex // guards the rest
	timer      *time.Timer
	over, ever bool // the call has returned; it took long
}

// begin is followed by end, in the same goroutine.
func (i *impatience) begin() {
	runtime.LockOSThread()
	i.thread = unix.Gettid()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.timer = time.AfterFunc(longestPause, i.interrupt)
}

func (i *impatience) interrupt() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.over {
		return
	}
	i.ever = true
	i.hasten()
	_ = unix.Tgkill(os.Getpid(), i.thread, unix.SIGURG) // the runtime's own
	i.timer.Reset(longestPause)
}

// end reports whether the call was interrupted.
func (i *impatience) end() bool {
	defer runtime.UnlockOSThread()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.timer.Stop()
	return i.ever
}

// asUser does something as the user of the sandbox's processes.
func (s *Supervisor) asUser(do func() unix.Errno) (errno unix.Errno) {
	if s.user == os.Geteuid() {
		return do()
	}
	groups, err := unix.Getgroups()
	if err != nil {
		return errnoOf(err)
	}
	runtime.LockOSThread()
	if errno = leaveRoot(s.user); errno == 0 {
		errno = do()
	}
	if becomeRoot(groups) == 0 {
		runtime.UnlockOSThread()
	} // else the thread ends with its goroutine
	return errno
}

// unchanged leaves an id as it is.
const unchanged = ^uintptr(0)

// leaveRoot changes this thread's ids, unlike x/sys, which changes those of all.
func leaveRoot(id int) unix.Errno {
	if errno := setGroups(nil); errno != 0 {
		return errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, unchanged, uintptr(id), unchanged); errno != 0 {
		return errno
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, uintptr(id), unchanged)
	return errno
}

// becomeRoot undoes leaveRoot.
func becomeRoot(groups []int) unix.Errno {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, unchanged, 0, unchanged); errno != 0 {
		return errno
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, unchanged, uintptr(os.Getgid()), unchanged); errno != 0 {
		return errno
	}
	return setGroups(groups)
}

func setGroups(groups []int) unix.Errno {
	list := make([]uint32, len(groups)+1) // never empty, so that it has an address
	for i, g := range groups {
		list[i] = uint32(g)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&list[0])), 0)
	return errno
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

// connectPath connects to the socket that the caller has named.
func (s *Supervisor) connectPath(n notification, c caller, raw []byte, killed <-chan struct{}) unix.Errno {
	if len(raw) > unix.SizeofSockaddrUnix {
		return unix.EINVAL
	}
	path, _, _ := bytes.Cut(raw[2:], []byte{0})
	file := -1
	errno := s.inTurn(killed, func() (errno unix.Errno) {
		file, errno = s.find(n, string(path))
		return errno
	})
	if errno != 0 {
		return errno
	}
	defer unix.Close(file)
	named := binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX)
	return s.connectAs(n, c, append(fmt.Appendf(named, "/proc/self/fd/%d", file), 0), killed)
}
