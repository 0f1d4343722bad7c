package native

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// belongings looks through what a thread that only ends has open. It is closed last, after the memory was given back, and the next
// activation might notice some of it: locks, names of sockets, files that were removed but have their space still.
type belongings struct {
	folder  *os.File // of the descriptors, in /proc
	infos   *os.File // of what is said of them
	thread  int      // its pidfd
	devices []uint64 // of the folders that handlers write to
	buffer  []byte
}

// unnoticed reports whether all that a thread of a process has open can be closed later. known is false if that could not be seen: it is
// being closed.
func (c *cell) unnoticed(pid, tid int) (unnoticed, known bool) {
	own := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
	folder, err := os.Open(own + "fd")
	if err != nil {
		return false, false
	}
	defer folder.Close()
	infos, err := os.Open(own + "fdinfo")
	if err != nil {
		return false, false
	}
	defer infos.Close()
	b := belongings{folder: folder, infos: infos, buffer: make([]byte, 4096)}
	flags := unix.PIDFD_THREAD // which older kernels do not know
	if tid == pid {
		flags = 0
	}
	if b.thread, err = unix.PidfdOpen(tid, flags); err != nil {
		return false, true
	}
	defer unix.Close(b.thread)
	for _, f := range c.folders {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) != nil {
			return false, true
		}
		b.devices = append(b.devices, st.Dev)
	}
	names, err := folder.Readdirnames(-1)
	if err != nil || len(names) == 0 {
		return false, false
	}
	for _, name := range names {
		if may, known := b.mayStay(name); !may {
			return false, known
		}
	}
	return true, true
}

func readNames(folder string) ([]string, error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// mayStay looks at one descriptor.
func (b *belongings) mayStay(name string) (may, known bool) {
	var st unix.Stat_t
	if unix.Fstatat(int(b.folder.Fd()), name, &st, 0) != nil {
		return false, false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		return b.plain(name)
	case 0: // what counts or waits for events is its own
		return true, true
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
	fd, err := unix.Openat(int(b.infos.Fd()), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b.buffer)
	if err != nil || n <= 0 {
		return false, false
	}
	return n == len(b.buffer) || bytes.Contains(b.buffer[:n], []byte("\nlock:")), true
}

// plain reports whether a socket has no name which another could want: it is a connection, or unnamed. The copy of the descriptor is
// closed at once.
func (b *belongings) plain(name string) (plain, known bool) {
	number, err := strconv.Atoi(name)
	if err != nil {
		return false, false
	}
	fd, err := unix.PidfdGetfd(b.thread, number, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(fd)
	address, err := unix.Getsockname(fd)
	if err != nil {
		return false, false
	}
	if named, ok := address.(*unix.SockaddrUnix); ok {
		return named.Name == "@", true // so it reads without a name
	}
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO) // fails if it is none of TCP
	return err == nil && (info.State == unix.BPF_TCP_ESTABLISHED || info.State == unix.BPF_TCP_CLOSE_WAIT), true
}
