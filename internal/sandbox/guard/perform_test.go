package guard

import (
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

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
