package guard

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Who watches a file (inotify) is told when others open it. Sandboxes have files of the host in common: a function would learn what another
// tenant's does, ahead of its turn too. So only what is the sandbox's own can be watched, and the supervisor has the kernel do so, for the
// very file that it has looked at.

// watch executes the inotify_add_watch that is held in n.
func (s *Supervisor) watch(n notification) {
	number, errno := s.watched(n)
	s.listener.send(answer{id: n.id, value: int64(number), errno: -int32(errno)})
}

// watched returns the number of the watch.
func (s *Supervisor) watched(n notification) (number int, errno unix.Errno) {
	path, errno := n.text(n.args[1])
	if errno != 0 {
		return 0, errno
	}
	if path == "" {
		return 0, unix.ENOENT
	}
	watcher, errno := s.copyOf(n, int(int32(n.args[0])))
	if errno != 0 {
		return 0, errno
	}
	defer unix.Close(watcher)
	errno = s.inTurn(nil, func() unix.Errno {
		file, errno := s.find(n, path)
		if errno != 0 {
			return errno
		}
		defer unix.Close(file)
		if !isInside(int(n.pid), file) {
			return unix.EACCES
		}
		// The link's own is not meant, but what was found at its end.
		mask := uint32(n.args[2]) &^ unix.IN_DONT_FOLLOW
		return s.asUser(func() (errno unix.Errno) {
			number, errno = addWatch(watcher, file, mask)
			return errno
		})
	})
	return number, errno
}

func addWatch(watcher, file int, mask uint32) (number int, errno unix.Errno) {
	number, err := unix.InotifyAddWatch(watcher, fmt.Sprintf("/proc/self/fd/%d", file), mask)
	return max(0, number), errnoOf(err)
}

// isInside reports whether a file is on one of the file systems that the sandbox of a thread has for itself.
func isInside(thread, file int) bool {
	var is, own unix.Stat_t
	if unix.Fstat(file, &is) != nil {
		return false
	}
	for _, folder := range []string{"/", "/action", "/tmp", "/dev/shm"} {
		if unix.Stat(fmt.Sprintf("/proc/%d/root%s", thread, folder), &own) == nil && own.Dev == is.Dev {
			return true
		}
	}
	return false
}

// text copies a path out of the caller's memory.
func (n notification) text(address uint64) (string, unix.Errno) {
	page := uint64(os.Getpagesize())
	var text []byte
	for len(text) < unix.PathMax {
		part, errno := n.memory(address, int(page-address%page)) // what is behind its end may be nobody's
		if errno != 0 {
			return "", errno
		}
		begin, _, whole := bytes.Cut(part, []byte{0})
		if text = append(text, begin...); whole {
			return string(text), 0
		}
		address += uint64(len(part))
	}
	return "", unix.ENAMETOOLONG
}
