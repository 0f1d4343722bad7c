package runtimewire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
)

// pair returns two connected sockets.
func pair(t testing.TB) (a, b *net.UnixConn) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]*net.UnixConn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		c, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		ends[i] = c.(*net.UnixConn)
		t.Cleanup(func() { _ = c.Close() })
	}
	return ends[0], ends[1]
}

func TestConnCarriesFrames(t *testing.T) {
	a, b := pair(t)
	server, runtime := NewConn(a, all), NewConn(b, all)
	payload := bytes.Repeat([]byte("x"), 1<<20)
	go func() {
		_ = server.Write(TypeFork, nil, nil)
		_ = server.Write(TypeRun, Run{Limit: 7}, payload)
		_ = server.Close()
	}()
	if f, err := runtime.Read(); err != nil || f.Type != TypeFork {
		t.Errorf("%+v, %v", f, err)
	}
	f, err := runtime.Read()
	var run Run
	if err != nil || f.Decode(&run) != nil || run.Limit != 7 || !bytes.Equal(f.Payload, payload) {
		t.Errorf("%s, %d bytes, %v", f.Header, len(f.Payload), err)
	}
	if _, err := runtime.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestDescriptorsAndCredentials(t *testing.T) {
	a, b := pair(t)
	server, initializer := NewConn(a, all), NewConn(b, all)
	c, d := pair(t)
	handed, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.SetsockoptInt(int(handed.Fd()), syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1); err != nil {
		t.Fatal(err)
	}
	if err := NewConn(d, all).Write(TypeReady, nil, nil); err != nil {
		t.Fatal(err)
	}
	for pid := range 2 {
		if err := initializer.WriteFiles(Handler{PID: pid + 1}, handed); err != nil {
			t.Fatal(err)
		}
	}
	for pid := range 2 {
		f, err := server.Read()
		var h Handler
		if err != nil || f.Decode(&h) != nil || h.PID != pid+1 || len(f.Files) != 1 {
			t.Fatalf("%+v, %v", f, err)
		}
		defer f.Files[0].Close()
		if pid == 1 {
			continue
		}
		conn, err := FileConn(f.Files[0], all)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if ready, err := conn.Read(); err != nil || ready.PID != os.Getpid() {
			t.Errorf("%+v, %v; want the process id %d", ready, err, os.Getpid())
		}
	}
}

func TestDescriptorsWithoutAFrameAreClosed(t *testing.T) {
	for name, data := range map[string][]byte{
		"of another frame":      {byte(TypeExit), 0, 0, 0, 0, 0, 0, 0},
		"of an incomplete one":  {byte(TypeHandler), 0, 0},
		"of one over the limit": {byte(TypeHandler), 255, 255, 255, 0, 0, 0, 0},
	} {
		a, b := pair(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.WriteMsgUnix(data, syscall.UnixRights(int(w.Fd())), nil); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Close(), b.Close()
		if _, err := NewConn(a, all).Read(); err == nil {
			t.Errorf("a descriptor %s was read", name)
		}
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a descriptor %s is still open: %v", name, err)
		}
		_ = r.Close()
	}
}

func TestTooManyDescriptors(t *testing.T) {
	a, b := pair(t)
	fds := make([]int, 64)
	if _, _, err := b.WriteMsgUnix([]byte{byte(TypeHandler), 0, 0, 0, 0, 0, 0, 0}, syscall.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	if f, err := NewConn(a, all).Read(); err == nil {
		t.Errorf("%+v was read", f)
	}
}

func TestFileConnWantsAUnixSocket(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := FileConn(r, all); err == nil {
		t.Error("a pipe was taken for a socket")
	}
}

// TestUnread: a handler that ends before it has read what it was sent is told from one that has.
func TestUnread(t *testing.T) {
	for _, read := range []bool{false, true} {
		ours, theirs := pair(t)
		c := NewConn(ours, Limits{Header: 1 << 10, Payload: 1 << 10})
		if err := c.Run(Run{}, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if read {
			if _, err := NewConn(theirs, Limits{Header: 1 << 10, Payload: 1 << 10}).Read(); err != nil {
				t.Fatal(err)
			}
		}
		_ = theirs.Close()
		if _, err := c.Read(); err == nil || c.Unread(err) == read {
			t.Errorf("read %v: %v, unread %v", read, err, c.Unread(err))
		}
	}
}

// TestTellWaitsForNobody: a runtime that reads nothing keeps nobody waiting who tells it something.
func TestTellWaitsForNobody(t *testing.T) {
	a, b := pair(t)
	server, runtime := NewConn(a, all), NewConn(b, all)
	told := 0
	for server.Tell(TypeContinue, Continue{PID: 7}) == nil {
		told++
	}
	for range told {
		var c Continue
		if f, err := runtime.Read(); err != nil || f.Type != TypeContinue || f.Decode(&c) != nil || c.PID != 7 {
			t.Fatalf("of %d frames came %+v, %v", told, f, err)
		}
	}
	if err := server.Tell(TypeFork, nil); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	b.Close()
	if server.Tell(TypeFork, nil) == nil {
		t.Error("somebody was told who has gone")
	}
}
