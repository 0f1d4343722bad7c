package native

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// glance is the server's own view of a sandbox: its processes, and the folders that handlers write to. Most activations leave nothing, and
// then the helper need not be asked to remove it.
type glance struct {
	mu      sync.Mutex // guards the rest
	procs   *os.File   // the list of processes in the v2 hierarchy
	list    view       // of it
	folders []sight
	buffer  []byte
	pids    []int
	user    int // of this process
}

// sight is a folder of a glance. Each activation is followed by a look at it, so one that has not changed since it was found empty is not
// read again: what puts something into a folder, or notes something on it, changes its ctime, which nothing inside can set. The kernel takes
// a ctime from its coarse clock. Only once that is past the folder's ctime does each further change show.
type sight struct {
	file  *os.File
	since unix.Timespec // the ctime with which it was found empty; zero: it is to be read
}

// sights opens the files of a glance, in the helper: descriptors of their own, as they have a position. Without a v2
// hierarchy there are none.
func (c *helperSandbox) sights() (files []*os.File, err error) {
	if c.group.procs == nil {
		return nil, nil
	}
	procs, err := os.Open(filepath.Join(c.group.folders[""], "cgroup.procs"))
	if err != nil {
		return nil, err
	}
	files = append(files, procs)
	for _, f := range c.folders {
		fd, err := unix.Openat(int(f.Fd()), ".", openFolder, 0)
		if err != nil {
			closeAll(files)
			return nil, fmt.Errorf("opening a folder of the sandbox again: %w", err)
		}
		files = append(files, os.NewFile(uintptr(fd), "folder"))
	}
	return files, nil
}

// newGlance takes over the files of sights. It is nil if there are none.
func newGlance(files []*os.File) *glance {
	if len(files) == 0 {
		return nil
	}
	g := &glance{procs: files[0], list: viewOf(files[0]), buffer: make([]byte, viewed), user: os.Geteuid()}
	for _, f := range files[1:] {
		g.folders = append(g.folders, sight{file: f})
	}
	return g
}

// nothing reports whether there is nothing but the initializer and the processes in keep, and nothing in the folders.
// When it cannot be told, there is something.
func (g *glance) nothing(keep []int) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.nobody(keep) {
		return false
	}
	now := coarseClock()
	for i := range g.folders {
		if !g.empty(&g.folders[i], now) {
			return false
		}
	}
	return true
}

// nobody reads the list of processes, and reports whether all of them are kept. The initializer is always on it: its sandbox ends with it.
func (g *glance) nobody(keep []int) bool {
	n, err := g.list.read(g.buffer)
	if err != nil || n == 0 || n > len(g.buffer)/2 { // there may be more
		return false
	}
	g.pids = g.pids[:0]
	for rest := g.buffer[:n]; len(rest) > 0; {
		end := slices.Index(rest, '\n')
		if end < 0 {
			return false
		}
		pid, err := strconv.Atoi(string(rest[:end]))
		if err != nil {
			return false
		}
		g.pids, rest = append(g.pids, pid), rest[end+1:]
	}
	if len(g.pids) != len(keep)+1 {
		return false
	}
	for _, pid := range keep {
		if !slices.Contains(g.pids, pid) {
			return false
		}
	}
	return true
}

// coarseClock is the clock of ctimes. It stands between ticks, and longer where the processor that counts them is held up.
func coarseClock() (now unix.Timespec) {
	_ = unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) // without it now is 0, and folders are read each time
	return now
}

// empty reports whether a folder is, and is as it was made. now is the coarse clock from before the call.
func (g *glance) empty(s *sight, now unix.Timespec) bool {
	folder := int(s.file.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(folder, &st); err != nil {
		return false
	}
	if s.since == st.Ctim {
		return true
	}
	s.since = unix.Timespec{}
	if st.Mode&0o7777 != folderMode || int(st.Uid) == g.user && g.marked(folder) || !g.holdsNothing(folder) {
		return false
	}
	if now.Nano() > st.Ctim.Nano() {
		s.since = st.Ctim
	}
	return true
}

// holdsNothing reads a folder, and reports whether it is empty.
func (g *glance) holdsNothing(folder int) bool {
	if _, err := unix.Seek(folder, 0, 0); err != nil {
		return false
	}
	for {
		n, err := unix.ReadDirent(folder, g.buffer)
		if err != nil || n == 0 {
			return err == nil
		}
		if _, count, _ := unix.ParseDirent(g.buffer[:n], 1, nil); count > 0 { // . and .. are not counted
			return false
		}
	}
}

// marked reports whether something was noted on a folder that is this user's, as all in the sandbox is then.
func (g *glance) marked(folder int) bool {
	names, err := attributes(folder, g.buffer)
	return !errors.Is(err, unix.EOPNOTSUPP) && (err != nil || len(names) > 0)
}

func (g *glance) close() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	files := []*os.File{g.procs}
	for _, s := range g.folders {
		files = append(files, s.file)
	}
	closeAll(files)
}
