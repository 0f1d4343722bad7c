package guard

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// The kernel would follow the path of a unix socket for its caller: from the caller's own root and folder, and by links of /proc that lead
// nobody else there. The supervisor does so in its place, a name at a time: none is looked at twice, so nothing changes in between.

// find opens what a path names, as the caller of the held call n sees it.
func (s *Supervisor) find(n notification, path string) (file int, errno unix.Errno) {
	w, err := newWalk(int(n.pid), s.user, path)
	if err != nil {
		return -1, errnoOf(err)
	}
	defer w.end()
	if !s.listener.valid(n.id) { // else it may be another process's root
		return -1, unix.EINTR
	}
	if errno := w.follow(s.asUser); errno != 0 {
		return -1, errno
	}
	file, w.at = w.at, -1
	return file, 0
}

// walk is a path that is being followed.
type walk struct {
	root, at        int // opened: the caller's root, and where the walk has come
	caller          int // pidfd of its process
	process, thread int // the caller's, as numbered in the sandbox
	user            int // of the sandbox's processes
	left            []string
	names, links    int  // so far
	jumps           bool // the next name is a process's in /proc, which only the supervisor can follow
}

// linksAtMost is how many links the kernel follows in a path.
const linksAtMost = 40

// namesAtMost is how many names are followed, in links, too. The kernel takes more, at the caller's expense.
const namesAtMost = 256

// procRoot is the inode of /proc itself.
const procRoot = 1

func newWalk(thread, user int, path string) (*walk, error) {
	status, err := proc.ReadStatus(thread)
	if err != nil {
		return nil, err
	}
	w := &walk{
		root: -1, at: -1, caller: -1, user: user, left: namesOf(path),
		process: status.Innermost("NStgid"), thread: status.Innermost("NSpid"),
	}
	folder := "/proc/" + strconv.Itoa(thread)
	from := "/cwd"
	if strings.HasPrefix(path, "/") {
		from = "/root"
	}
	if w.root, err = unix.Open(folder+"/root", unix.O_PATH|unix.O_CLOEXEC, 0); err == nil {
		w.at, err = unix.Open(folder+from, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		w.caller, err = unix.PidfdOpen(int(status.Number("Tgid")), 0)
	}
	if err != nil {
		w.end()
		return nil, err
	}
	return w, nil
}

// namesOf are a path's. Of those in a row that lead nowhere one is enough: it asks whether there is a folder.
func namesOf(path string) []string {
	return slices.CompactFunc(strings.Split(path, "/"), func(a, b string) bool { return stays(a) && stays(b) })
}

func stays(name string) bool { return name == "" || name == "." }

func (w *walk) end() {
	unix.Close(w.root)
	unix.Close(w.at)
	unix.Close(w.caller)
}

// follow goes to the end of the path, as the user but for jumps.
func (w *walk) follow(asUser func(func() unix.Errno) unix.Errno) (errno unix.Errno) {
	for errno == 0 && len(w.left) > 0 {
		if w.jumps {
			errno = errnoOf(w.jump())
		} else {
			errno = asUser(w.proceed)
		}
	}
	return errno
}

func (w *walk) proceed() unix.Errno {
	for len(w.left) > 0 && !w.jumps {
		if err := w.step(); err != nil {
			return errnoOf(err)
		}
	}
	return 0
}

// step takes the next name.
func (w *walk) step() error {
	if w.names++; w.names > namesAtMost {
		return unix.ELOOP
	}
	name := w.left[0]
	if name == "" || name == ".." && same(w.at, w.root) {
		name = "."
		w.left[0] = name
	}
	next, err := unix.Openat(w.at, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == unix.EACCES && inProc(w.at) {
		w.jumps = true
		return nil
	}
	if err != nil {
		return err
	}
	var is unix.Stat_t
	if err := unix.Fstat(next, &is); err != nil || is.Mode&unix.S_IFMT != unix.S_IFLNK {
		w.move(next)
		return err
	}
	defer unix.Close(next)
	return w.link(next)
}

// move goes to what was opened for the next name.
func (w *walk) move(to int) {
	unix.Close(w.at)
	w.at, w.left = to, w.left[1:]
}

// link goes on with what a symbolic link says.
func (w *walk) link(link int) error {
	if w.links++; w.links > linksAtMost {
		return unix.ELOOP
	}
	text, err := w.text(link)
	if err != nil || w.jumps {
		return err
	}
	names := append(namesOf(text), w.left[1:]...)
	if len(names) > namesAtMost-w.names { // it could not come to its end
		return unix.ELOOP
	}
	if strings.HasPrefix(text, "/") {
		root, err := unix.FcntlInt(uintptr(w.root), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return err
		}
		w.move(root)
	}
	w.left = names
	return nil
}

// text is what the link of the next name says. Some of /proc say something else to each process, others nothing.
func (w *walk) text(link int) (string, error) {
	if inProc(link) {
		var folder unix.Stat_t
		if err := unix.Fstat(w.at, &folder); err != nil {
			return "", err
		}
		switch {
		case folder.Ino != procRoot:
			w.jumps = true
			return "", nil
		case w.left[0] == "self":
			return strconv.Itoa(w.process), nil
		case w.left[0] == "thread-self":
			return fmt.Sprintf("%d/task/%d", w.process, w.thread), nil
		}
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", text)
	return string(text[:max(0, n)]), err
}

// jump goes to what a process has: its root, its working directory, what it has opened. The kernel lets the caller do so with its own
// process, and with those of its user that hide nothing, whose files there belong to the user.
func (w *walk) jump() error {
	w.jumps = false
	var link unix.Stat_t
	err := unix.Fstatat(w.at, w.left[0], &link, unix.AT_SYMLINK_NOFOLLOW)
	if err == unix.EACCES {
		return w.take()
	}
	if err != nil {
		return err
	}
	if int(link.Uid) != w.user && !w.own() {
		return unix.EACCES
	}
	next, err := unix.Openat(w.at, w.left[0], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.move(next)
	return nil
}

// take goes to what the caller's process has opened where only itself, and root, may look into the folder of that, as it hides itself.
func (w *walk) take() error {
	folder, err := unix.Openat(w.root, fmt.Sprintf("proc/%d/fd", w.process), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(folder)
	number, err := strconv.Atoi(w.left[0])
	if err != nil || !same(w.at, folder) {
		return unix.EACCES
	}
	opened, err := unix.PidfdGetfd(w.caller, number, 0)
	if errors.Is(err, unix.EBADF) {
		return unix.ENOENT
	}
	if err != nil {
		return err
	}
	defer unix.Close(opened)
	next, err := unix.Open("/proc/self/fd/"+strconv.Itoa(opened), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	w.move(next)
	return nil
}

// own reports whether the walk has come to a folder of the caller's process in /proc.
func (w *walk) own() bool {
	for _, name := range []string{"status", "../status"} {
		if status, err := proc.ReadFileAt(w.at, name); err == nil {
			return proc.Status(status).Number("Tgid") == uint64(w.process)
		}
	}
	return false
}

func inProc(fd int) bool {
	var is unix.Statfs_t
	return unix.Fstatfs(fd, &is) == nil && is.Type == unix.PROC_SUPER_MAGIC
}

// same reports whether two descriptors are of the same file, folder or socket.
func same(a, b int) bool {
	var one, other unix.Stat_t
	return unix.Fstat(a, &one) == nil && unix.Fstat(b, &other) == nil && one.Dev == other.Dev && one.Ino == other.Ino
}
