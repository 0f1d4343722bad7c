package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// link is one end of a SOCK_SEQPACKET pair: frames with descriptors. One goroutine may receive, any may send.
type link struct{ conn *net.UnixConn }

// linkPair returns two connected sockets that do not survive an execve unless they are passed on.
func linkPair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	return os.NewFile(uintptr(fds[0]), "link"), os.NewFile(uintptr(fds[1]), "link"), nil
}

// newLink takes over f.
func newLink(f *os.File) (*link, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	conn, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %q is a %T, not a unix socket", f.Name(), c)
	}
	return &link{conn: conn}, nil
}

// send passes copies of files along; the caller keeps its own.
func (l *link) send(b []byte, files ...*os.File) error {
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	_, _, err := l.conn.WriteMsgUnix(b, rights, nil)
	return err
}

// receive returns the next frame and the files that came with it; io.EOF when the other side has gone.
func (l *link) receive(buffer []byte) (b []byte, files []*os.File, err error) {
	var oob [1024]byte
	n, on, flags, _, err := l.conn.ReadMsgUnix(buffer, oob[:])
	if err != nil {
		return nil, nil, err
	}
	files, err = receivedFiles(oob[:on])
	switch {
	case err != nil:
		return nil, nil, err
	case n == 0 && on == 0:
		return nil, nil, io.EOF
	case flags&unix.MSG_TRUNC != 0:
		closeAll(files)
		return nil, nil, errors.New("a frame is longer than it may be")
	case flags&unix.MSG_CTRUNC != 0: // this process has no descriptors left: only the frame's request fails
		closeAll(files)
		files = nil
	}
	return buffer[:n], files, nil
}

func receivedFiles(oob []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SCM_RIGHTS {
			continue
		}
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			closeAll(files)
			return nil, err
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
