package native

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// belongings looks through what a thread that only ends has open. It is closed last, after the memory was given back, and the next
// activation might notice some of it: locks, names of sockets, files that were removed but have their space still.
type belongings struct {
	folder  string // of the thread, in /proc
	net     string // the tables of the sandbox's sockets
	devices []uint64
	buffer  []byte
	sockets map[string]bool // inodes
}

// unnoticed reports whether all that a thread of a process has open can be closed later.
func (c *cell) unnoticed(pid, tid int) bool {
	b := belongings{
		folder: fmt.Sprintf("/proc/%d/task/%d/", pid, tid), net: fmt.Sprintf("/proc/%d/net/", c.process.Pid),
		buffer: make([]byte, 1024), sockets: map[string]bool{},
	}
	for _, f := range c.folders {
		var st unix.Stat_t
		if unix.Fstat(int(f.Fd()), &st) != nil {
			return false
		}
		b.devices = append(b.devices, st.Dev)
	}
	names, err := readNames(b.folder + "fd")
	if err != nil || len(names) == 0 { // they are being closed
		return false
	}
	for _, name := range names {
		if !b.mayStay(name) {
			return false
		}
	}
	return b.plain()
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
func (b *belongings) mayStay(name string) bool {
	var st unix.Stat_t
	if unix.Stat(b.folder+"fd/"+name, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
		b.sockets[strconv.FormatUint(st.Ino, 10)] = true
	case unix.S_IFREG, unix.S_IFDIR:
		for _, device := range b.devices {
			if st.Dev == device {
				return false
			}
		}
		if st.Nlink == 0 {
			return false
		}
	}
	return !b.locks(name)
}

// locks reports whether a descriptor's file is locked through it.
func (b *belongings) locks(name string) bool {
	fd, err := unix.Open(b.folder+"fdinfo/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, b.buffer)
	info := b.buffer[:max(n, 0)]
	return err != nil || len(info) == len(b.buffer) || bytes.Contains(info, []byte("\nlock:"))
}

// tables of the sockets of a network, in which those are looked for that have no name which another could want: connections, and the
// unnamed.
var tables = []struct {
	name  string
	inode int // the column
	plain func(columns int, state []byte) bool
}{
	{"unix", 6, func(columns int, _ []byte) bool { return columns == 7 }},
	{"tcp", 9, isConnected},
	{"tcp6", 9, isConnected},
}

// isConnected reports whether a TCP socket's state is ESTABLISHED or CLOSE_WAIT.
func isConnected(_ int, state []byte) bool { return string(state) == "01" || string(state) == "08" }

// plain reports whether all sockets are found there.
func (b *belongings) plain() bool {
	for _, table := range tables {
		if len(b.sockets) == 0 {
			return true
		}
		text, err := os.ReadFile(b.net + table.name)
		if err != nil && !os.IsNotExist(err) { // without IPv6 one is not there
			return false
		}
		for line := range bytes.Lines(text) {
			if f := bytes.Fields(line); len(f) > table.inode && table.plain(len(f), f[3]) {
				delete(b.sockets, string(f[table.inode]))
			}
		}
	}
	return len(b.sockets) == 0
}
