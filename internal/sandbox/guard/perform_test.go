package guard

import (
	"encoding/binary"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPromptly: a connect that would wait does not, and leaves the socket as it was.
func TestPromptly(t *testing.T) {
	address := unix.SockaddrUnix{Name: filepath.Join(t.TempDir(), "full")}
	raw := append(binary.NativeEndian.AppendUint16(nil, unix.AF_UNIX), address.Name...)
	listener := unixSocket(t)
	if err := errors.Join(unix.Bind(listener, &address), unix.Listen(listener, 0)); err != nil {
		t.Fatal(err)
	}
	if errno := promptly(unixSocket(t), raw); errno != 0 {
		t.Fatal(errno)
	}
	socket := unixSocket(t)
	if errno := promptly(socket, raw); errno != unix.EAGAIN {
		t.Errorf("with a full queue: %v", errno)
	}
	if flags, err := unix.FcntlInt(uintptr(socket), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("then the socket is non-blocking: %#x, %v", flags, err)
	}
}

func unixSocket(t *testing.T) int {
	t.Helper()
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(socket) })
	return socket
}

// TestDrop: closing a socket waits for nobody, although it has SO_LINGER and the other side takes nothing.
func TestDrop(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(socket, sockaddr(listener.Addr().(*net.TCPAddr).AddrPort())); err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(socket, true); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = unix.Write(socket, make([]byte, 1<<20))
	}
	const hours = 3600
	if err := unix.SetsockoptLinger(socket, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: hours}); err != nil {
		t.Fatal(err)
	}
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		drop(socket)
	}()
	select {
	case <-dropped:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
	if _, err := unix.FcntlInt(uintptr(socket), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("it is open: %v", err)
	}
}
