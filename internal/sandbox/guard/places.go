package guard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The socket of a connection to the outside takes the place of the one with which the program has called. That may have other places in its
// process: copies of the descriptor, and epolls that were told of it before it connected. The new one takes these, too.

// How much of a process is looked through for them: the names of some 1,300 descriptors, and what the kernel says of its epolls; and how many
// places a socket gets. A process that has more is not looked through again: what the kernel says has no bound, and a place costs a thread.
const (
	namesBytes   = 32 << 10
	noticesBytes = 64 << 10
	placesAtMost = 16
)

// places are where a process has a socket.
type places struct {
	numbers []int // of its descriptors
	notices []notice
}

// notice is what an epoll was told of a socket, when that had a number.
type notice struct {
	epoll  int // its descriptor
	number int
	event  unix.EpollEvent
}

// take puts a socket in the places of the caller's. Another thread may have closed that while it waited, and its number may be another file's by
// now. The connection of a socket that has no place left ends with this process's descriptor, as it would have ended without the guard.
func (s *Supervisor) take(n notification, c caller, socket int) unix.Errno {
	p := s.placesOf(int(n.pid), c)
	if !slices.Contains(p.numbers, c.number) { // its process hides them
		p.numbers = append(p.numbers, c.number)
	}
	for _, number := range p.numbers {
		closes := closesOnExec(int(n.pid), number)
		there, errno := s.isAt(n, number, c.socket) // just before
		if there {
			errno = s.listener.replace(n.id, socket, number, closes)
		}
		if errno != 0 {
			return errno
		}
	}
	for _, told := range p.notices {
		if epoll, errno := s.copyOf(n, told.epoll); errno == 0 {
			inOwnTable(func() { told.pass(epoll, c.socket, socket) })
			unix.Close(epoll)
		}
	}
	return 0
}

// isAt reports whether a descriptor of the caller is of a socket.
func (s *Supervisor) isAt(n notification, number, socket int) (there bool, errno unix.Errno) {
	now, errno := s.copyOf(n, number)
	switch errno {
	case 0:
		defer unix.Close(now)
		return same(now, socket), 0
	case unix.EBADF:
		return false, 0
	}
	return false, errno
}

// scratch is what the kernel's answers are read into, for each connection.
type scratch struct {
	names   [namesBytes]byte
	notices [noticesBytes]byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// placesOf finds those of the caller's socket. What cannot be seen is none.
func (s *Supervisor) placesOf(thread int, c caller) places {
	l := lookout{thread: thread, room: noticesBytes}
	if s.crowded.Load() || unix.Fstat(c.socket, &l.socket) != nil {
		return l.found
	}
	l.target = fmt.Appendf(nil, "socket:[%d]", l.socket.Ino)
	folder, err := unix.Open(fmt.Sprintf("/proc/%d/fd", thread), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return l.found
	}
	defer unix.Close(folder)
	l.scratch = scratches.Get().(*scratch)
	defer scratches.Put(l.scratch)
	size, _ := unix.ReadDirent(folder, l.names[:])
	for rest := l.names[:max(0, size)]; len(rest) > direntName && !l.full(); {
		length := int(binary.NativeEndian.Uint16(rest[direntLength:]))
		name, _, _ := bytes.Cut(rest[direntName:length], []byte{0})
		l.look(folder, string(name))
		rest = rest[length:]
	}
	if size > namesBytes-unix.NAME_MAX || l.room <= 0 || l.full() { // there may be more
		s.crowded.Store(true)
	}
	return l.found
}

// Where a directory's entry has its length and its name: struct linux_dirent64.
const (
	direntLength = int(unsafe.Offsetof(unix.Dirent{}.Reclen))
	direntName   = int(unsafe.Offsetof(unix.Dirent{}.Name))
)

// eventPoll is what the descriptor of an epoll leads to.
var eventPoll = []byte("anon_inode:[eventpoll]")

// lookout looks for the places of a socket.
type lookout struct {
	*scratch
	thread int
	socket unix.Stat_t
	target []byte // what its descriptors lead to
	room   int    // for what the kernel says of epolls
	found  places
	link   [64]byte
}

// full reports whether it has found as many as there may be.
func (l *lookout) full() bool { return len(l.found.numbers)+len(l.found.notices) >= placesAtMost }

// look looks at one descriptor, in the folder of them.
func (l *lookout) look(folder int, name string) {
	size, err := unix.Readlinkat(folder, name, l.link[:])
	if err != nil {
		return // it was closed
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		return
	}
	switch target := l.link[:size]; {
	case bytes.Equal(target, l.target):
		l.found.numbers = append(l.found.numbers, number)
	case bytes.Equal(target, eventPoll):
		l.ask(number)
	}
}

// ask has the kernel say what an epoll was told.
func (l *lookout) ask(epoll int) {
	file, err := unix.Open(fmt.Sprintf("/proc/%d/fdinfo/%d", l.thread, epoll), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil || l.room <= 0 {
		return
	}
	defer unix.Close(file)
	text := l.notices[:l.room]
	size, _ := unix.Read(file, text)
	text = text[:max(0, size)]
	l.room -= len(text)
	for line := range bytes.Lines(text) {
		if told, ok := parseNotice(line, &l.socket); ok && !l.full() {
			told.epoll = epoll
			l.found.notices = append(l.found.notices, told)
		}
	}
}

// parseNotice reads "tfd: 5 events: 8000001d data: 5 pos:0 ino:2a1f sdev:8", if it is of a socket.
func parseNotice(line []byte, socket *unix.Stat_t) (told notice, ok bool) {
	f := bytes.Fields(line)
	if len(f) < 9 || string(f[0]) != "tfd:" || string(f[7]) != fmt.Sprintf("ino:%x", socket.Ino) ||
		string(f[8]) != fmt.Sprintf("sdev:%x", unix.Major(socket.Dev)<<20|unix.Minor(socket.Dev)) {
		return told, false
	}
	number, err1 := strconv.Atoi(string(f[1]))
	events, err2 := strconv.ParseUint(string(f[3]), 16, 32)
	data, err3 := strconv.ParseUint(string(f[5]), 16, 64)
	told = notice{number: number, event: unix.EpollEvent{Events: uint32(events), Fd: int32(data), Pad: int32(data >> 32)}}
	return told, errors.Join(err1, err2, err3) == nil
}

// pass has the epoll know of the new socket what it knows of the old one. It knows them by their numbers, too, so that each gets that for a
// moment, in a table that is this thread's own.
func (told notice) pass(epoll, old, fresh int) {
	for _, fd := range []*int{&epoll, &old, &fresh} {
		aside, err := unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, told.number+1)
		if err != nil {
			return
		}
		*fd = aside
	}
	if unix.Dup3(old, told.number, unix.O_CLOEXEC) == nil {
		_ = unix.EpollCtl(epoll, unix.EPOLL_CTL_DEL, told.number, nil) // its own descriptor may have been closed, and with it this
	}
	if unix.Dup3(fresh, told.number, unix.O_CLOEXEC) == nil {
		_ = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, told.number, &told.event) // it is there if the epoll has two descriptors
	}
}

// inOwnTable does something in a thread that has a copy of this process's descriptors, which ends with it. Nothing that waits may be done there.
func inOwnTable(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with its goroutine
		if unix.Gettid() == unix.Getpid() {
			inOwnTable(do) // the first thread never ends
			runtime.UnlockOSThread()
			return
		}
		if unix.Unshare(unix.CLONE_FILES) == nil {
			do()
		}
	}()
	<-done
}
