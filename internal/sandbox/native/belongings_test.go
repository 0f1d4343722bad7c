package native

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBelongings: a squash waits for all open files of an ending process that another process could notice.
func TestBelongings(t *testing.T) {
	temporary, listener := t.TempDir(), listening(t, "tcp", "127.0.0.1:0")
	for name, c := range map[string]struct {
		open   func() (int, error)
		folder string // that handlers write to
		want   bool
	}{
		"a pipe": {func() (int, error) {
			var p [2]int
			err := unix.Pipe2(p[:], unix.O_CLOEXEC)
			_ = unix.Close(p[1])
			return p[0], err
		}, temporary, true},
		"a device":                 {func() (int, error) { return unix.Open(os.DevNull, unix.O_RDWR, 0) }, temporary, true},
		"a file":                   {func() (int, error) { return unix.Open("/proc/self/exe", unix.O_RDONLY, 0) }, "/proc", true},
		"a file of a handler":      {func() (int, error) { return unix.Open(temporary, unix.O_RDONLY, 0) }, temporary, false},
		"a file in memory":         {func() (int, error) { return unix.MemfdCreate("x", 0) }, "/proc", false},
		"a locked file":            {func() (int, error) { return locked("/proc/self/exe") }, "/proc", false},
		"a locked device":          {func() (int, error) { return locked(os.DevNull) }, temporary, false},
		"an epoll":                 {func() (int, error) { return unix.EpollCreate1(0) }, temporary, true},
		"a TCP connection":         {func() (int, error) { return dialled(listener) }, temporary, false},
		"a listener":               {func() (int, error) { return descriptorOf(listener.(*net.TCPListener)) }, temporary, false},
		"a new TCP socket":         {func() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0) }, temporary, false},
		"a UDP socket":             {func() (int, error) { return unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0) }, temporary, false},
		"an unnamed socket":        {func() (int, error) { return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0) }, temporary, true},
		"one that was sent a file": {sentTo, temporary, false},
		"a named socket":           {func() (int, error) { return bound(fmt.Sprintf("@%d-%s", os.Getpid(), t.Name())) }, temporary, false},
		"nothing, as it seems":     {func() (int, error) { return -1, nil }, temporary, false},
	} {
		t.Run(name, func(t *testing.T) {
			fd, err := c.open()
			if err != nil {
				t.Fatal(err)
			}
			if fd >= 0 {
				defer unix.Close(fd)
			}
			var st unix.Stat_t
			if err := unix.Stat(c.folder, &st); err != nil {
				t.Fatal(err)
			}
			folder, infos := openIn(t, "fd"), openIn(t, "fdinfo")
			b := newBelongings(int(folder.Fd()), int(infos.Fd()), "/proc/self/net/")
			b.devices = []uint64{st.Dev}
			may, known := b.mayStay(strconv.Itoa(fd))
			if may = may && b.plain(); may != c.want || known != (fd >= 0) {
				t.Errorf("it may stay open: %v; known: %v", may, known)
			}
		})
	}
}

// TestPrivatePipes: a lock on a pipe matters only where others may have that.
func TestPrivatePipes(t *testing.T) {
	output, other := pipe(t), pipe(t)
	for _, f := range []*os.File{output, other} {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_SH); err != nil {
			t.Fatal(err)
		}
	}
	outputs, err := outputsOf(output)
	if err != nil {
		t.Fatal(err)
	}
	own, infos := openIn(t, "fd"), openIn(t, "fdinfo")
	for _, c := range []struct {
		of            *os.File
		private, want bool
	}{{other, true, true}, {other, false, false}, {output, true, false}} {
		b := newBelongings(int(own.Fd()), int(infos.Fd()), "/proc/self/net/")
		b.private, b.outputs = c.private, outputs
		if may, known := b.mayStay(strconv.Itoa(int(c.of.Fd()))); may != c.want || !known {
			t.Errorf("the output: %v; private: %v: it may stay: %v; known: %v", c.of == output, c.private, may, known)
		}
	}
}

// sentTo is a socket to which a descriptor is on its way.
func sentTo() (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(pair[1])
	return pair[0], unix.Sendmsg(pair[1], []byte{0}, unix.UnixRights(pair[1]), nil, 0)
}

func pipe(t *testing.T) (writes *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll([]*os.File{r, w}) })
	return w
}

// openIn opens a folder of this thread's in /proc.
func openIn(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/self/task/%d/%s", unix.Gettid(), name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func listening(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func locked(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_RDONLY, 0)
	if err != nil {
		return fd, err
	}
	return fd, unix.Flock(fd, unix.LOCK_SH)
}

func bound(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return fd, err
	}
	return fd, unix.Bind(fd, &unix.SockaddrUnix{Name: name})
}

func dialled(l net.Listener) (int, error) {
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return -1, err
	}
	defer c.Close()
	return descriptorOf(c.(*net.TCPConn))
}

func descriptorOf(s interface{ File() (*os.File, error) }) (int, error) {
	f, err := s.File()
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.Dup(int(f.Fd()))
}
