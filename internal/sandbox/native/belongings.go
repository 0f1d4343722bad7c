package native

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/proc"
)

// belongings looks through the open files of a thread that is ending. The kernel closes them last, after it took back the memory. The next
// activation might notice some of them: locks, names of sockets, removed files that still take space.
type belongings struct {
	folder  int      // of the descriptors, in /proc
	infos   int      // of what the kernel says about them
	net     string   // the tables of the sandbox's sockets
	devices []uint64 // of the folders that handlers write to
	private bool     // pipes are its own, but for the outputs
	outputs outputs
	sockets map[string]bool
	buffer  []byte
}

func newBelongings(folder, infos int, net string) *belongings {
	return &belongings{folder: folder, infos: infos, net: net, sockets: map[string]bool{}, buffer: make([]byte, 4096)}
}

// unnoticed reports whether all open files of a process's thread can be closed later. known is false if that could not be seen, because
// they are being closed.
func (c *helperSandbox) unnoticed(pid, tid int) (unnoticed, known bool) {
	own := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	folder, err := unix.Open(own+"fd", openFolder, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(folder)
	infos, err := unix.Open(own+"fdinfo", openFolder, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(infos)
	b := newBelongings(folder, infos, fmt.Sprintf("/proc/%d/net/", c.process.Pid))
	b.private, b.outputs = c.unshared, c.outputs
	if b.devices, err = c.devices(); err != nil {
		return false, true
	}
	names, err := proc.Names(folder)
	if err != nil || len(names) == 0 {
		return false, false
	}
	for _, name := range names {
		if may, known := b.mayStay(name); !may {
			return false, known
		}
	}
	return b.plain(), true
}

// mayStay looks at one descriptor.
func (b *belongings) mayStay(name string) (may, known bool) {
	var st unix.Stat_t
	if unix.Fstatat(b.folder, name, &st, 0) != nil {
		return false, false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		b.sockets[strconv.FormatUint(st.Ino, 10)] = true
		told := b.told(name)
		return bytes.Contains(told, []byte("\nscm_fds: 0\n")), told != nil // else it holds descriptors that were sent to it
	case 0: // what counts or waits for events is its own
		return true, true
	case unix.S_IFIFO:
		if b.private && b.outputs.hasOther(&st) { // no process is left that could notice a lock
			return true, true
		}
	case unix.S_IFREG, unix.S_IFDIR:
		if st.Nlink == 0 || slices.Contains(b.devices, st.Dev) {
			return false, true
		}
	}
	locked, known := b.locked(name)
	return known && !locked, known
}

// locked reports whether a file is locked by way of one descriptor.
func (b *belongings) locked(name string) (locked, known bool) {
	told := b.told(name)
	return len(told) == len(b.buffer) || bytes.Contains(told, []byte("\nlock:")), told != nil
}

// told is the kernel's description of a descriptor, as far as there is room for it; nil if that could not be seen.
func (b *belongings) told(name string) []byte {
	fd, err := unix.Openat(b.infos, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b.buffer)
	if err != nil || n <= 0 {
		return nil
	}
	return b.buffer[:n]
}

// Columns of the kernel's table of Unix sockets: a name is behind the inode.
const (
	unixInode = 6
	unnamed   = 7
)

// plain reports whether all sockets are Unix sockets without a name. It does not look for TCP sockets, some of which may listen: the
// kernel takes longer to list them than a process to end.
func (b *belongings) plain() bool {
	if len(b.sockets) == 0 {
		return true
	}
	table, err := proc.ReadFile(b.net + "unix")
	if err != nil {
		return false
	}
	for line := range bytes.Lines(table) {
		if f := bytes.Fields(line); len(f) == unnamed {
			delete(b.sockets, string(f[unixInode]))
		}
	}
	return len(b.sockets) == 0
}

// devices are the devices of the folders that handlers write to.
func (c *helperSandbox) devices() (devices []uint64, err error) {
	for _, f := range c.folders {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return nil, err
		}
		devices = append(devices, st.Dev)
	}
	return devices, nil
}
