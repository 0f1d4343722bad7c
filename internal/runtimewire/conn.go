package runtimewire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// maxDescriptors is how many may wait for the frames they belong to.
const maxDescriptors = 4

// Conn is one end of a connection between server and runtime. One goroutine may read while others write.
type Conn struct {
	socket *net.UnixConn
	limits Limits

	// Of the one reader:
	buffer  []byte // read from the socket and not consumed
	space   []byte // what buffer is a part of
	control []byte // space for what comes beside the bytes
	files   []*os.File
	pid     int

	write sync.Mutex // held while a frame is written, so that frames do not mix
}

// NewConn makes a connection over socket, which it owns; limits are for what is read.
func NewConn(socket *net.UnixConn, limits Limits) *Conn {
	return &Conn{
		socket: socket, limits: limits,
		space:   make([]byte, 4<<10),
		control: make([]byte, syscall.CmsgSpace(4*maxDescriptors)+syscall.CmsgSpace(syscall.SizeofUcred)),
	}
}

// FileConn makes a connection over the socket behind file, which it closes.
func FileConn(file *os.File, limits Limits) (*Conn, error) {
	defer file.Close()
	c, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("the descriptor is not a Unix socket")
	}
	return NewConn(socket, limits), nil
}

// Socket is the connection's own, for deadlines.
func (c *Conn) Socket() *net.UnixConn { return c.socket }

// Close closes the socket; a read in progress ends.
func (c *Conn) Close() error { return c.socket.Close() }

// Read reads the next frame. A Handler frame has its descriptors, a Ready frame the process id of its sender. After an
// error the connection is of no more use.
func (c *Conn) Read() (Frame, error) {
	f, err := ReadFrame((*stream)(c), c.limits)
	if err != nil {
		c.dropFiles()
		return f, err
	}
	switch {
	case f.Type == TypeReady:
		f.PID = c.pid
	case f.Type == TypeHandler:
		f.Files, c.files = c.files, nil
	case len(c.files) > 0 && len(c.buffer) == 0:
		c.dropFiles()
		return f, fmt.Errorf("%w: a descriptor came with a frame that carries none", ErrMalformed)
	}
	return f, nil
}

// Write writes a frame. A nil header is an empty one.
func (c *Conn) Write(t Type, header any, payload []byte) error {
	buf := make([]byte, 0, PrefixSize+512)
	buf, err := AppendFrame(buf, t, header, len(payload))
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	if len(payload) <= 4<<10 {
		_, err = c.socket.Write(append(buf, payload...))
		return err
	}
	_, err = (&net.Buffers{buf, payload}).WriteTo(c.socket)
	return err
}

// Tell writes a frame without a payload, if the socket has room for it. An initializer that does not read is not waited for, and lives on.
func (c *Conn) Tell(t Type, header any) error {
	buf, err := AppendFrame(make([]byte, 0, PrefixSize+64), t, header, 0)
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	raw, err := c.socket.SyscallConn()
	if err != nil {
		return err
	}
	n := 0
	closed := raw.Write(func(fd uintptr) bool {
		n, err = syscall.Write(int(fd), buf)
		return true
	})
	if err = cmp.Or(closed, err); err == nil && n < len(buf) {
		err = io.ErrShortWrite
	}
	return err
}

// Run writes a Run frame.
func (c *Conn) Run(header Run, input []byte) error { return c.Write(TypeRun, header, input) }

// Unread reports, of the error of a Read, whether the other side has closed the socket before it had read all that was sent.
func (c *Conn) Unread(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

// SetReadDeadline bounds Read.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// WriteFiles writes a Handler frame with descriptors beside it, which stay the caller's. It is what a runtime does.
func (c *Conn) WriteFiles(header Handler, files ...*os.File) error {
	buf, err := AppendFrame(nil, TypeHandler, header, 0)
	if err != nil {
		return err
	}
	c.write.Lock()
	defer c.write.Unlock()
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := c.socket.WriteMsgUnix(buf, syscall.UnixRights(fds...), nil)
	if err == nil && n < len(buf) {
		_, err = c.socket.Write(buf[n:])
	}
	return err
}

// stream reads a Conn's bytes, and keeps what comes beside them.
type stream Conn

func (s *stream) Read(p []byte) (int, error) {
	if len(s.buffer) == 0 && len(p) >= len(s.space) {
		return (*Conn)(s).receive(p)
	}
	if len(s.buffer) == 0 {
		n, err := (*Conn)(s).receive(s.space)
		if n == 0 {
			return 0, err
		}
		s.buffer = s.space[:n]
	}
	n := copy(p, s.buffer)
	s.buffer = s.buffer[n:]
	return n, nil
}

func (c *Conn) receive(p []byte) (int, error) {
	n, oobn, flags, _, err := c.socket.ReadMsgUnix(p, c.control)
	if oobn > 0 {
		if ancillaryErr := c.keepAncillary(c.control[:oobn], flags); err == nil {
			err = ancillaryErr
		}
	}
	if n == 0 && err == nil {
		err = io.EOF
	}
	if err != nil {
		return 0, err
	}
	return n, nil
}

// keepAncillary takes descriptors and credentials out of a control message. The first the kernel has made
// close-on-exec already.
func (c *Conn) keepAncillary(oob []byte, flags int) error {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return err
	}
	for _, m := range messages {
		if m.Header.Level != syscall.SOL_SOCKET {
			continue
		}
		switch m.Header.Type {
		case syscall.SCM_RIGHTS:
			fds, err := syscall.ParseUnixRights(&m)
			if err != nil {
				return err
			}
			for _, fd := range fds {
				c.files = append(c.files, os.NewFile(uintptr(fd), "from the runtime"))
			}
		case syscall.SCM_CREDENTIALS:
			cred, err := syscall.ParseUnixCredentials(&m)
			if err != nil {
				return err
			}
			c.pid = int(cred.Pid)
		}
	}
	if len(c.files) > maxDescriptors || flags&syscall.MSG_CTRUNC != 0 && len(c.files) > 0 {
		c.dropFiles()
		return fmt.Errorf("%w: more descriptors came than frames may carry", ErrMalformed)
	}
	return nil
}

func (c *Conn) dropFiles() {
	for _, f := range c.files {
		_ = f.Close()
	}
	c.files = nil
}
