package resp

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// earAfter is how long a command is at work before anybody listens whether its client is still there.
const earAfter = time.Second

// ear hears that the client leaves while a command of its is at work, so that nothing goes on for nobody. What comes in meanwhile is left to who
// reads next. Like the connection's, its methods are called one at a time.
type ear struct {
	conn  net.Conn
	raw   syscall.RawConn // nil: of this connection it cannot be told
	after time.Duration
	left  func()        // ends what is at work
	timer *time.Timer   // begins to listen; nil: there was no command yet
	done  chan struct{} // gets one when nobody listens any more
}

func newEar(conn net.Conn, after time.Duration, left func()) ear {
	e := ear{conn: conn, after: after, left: left, done: make(chan struct{}, 1)}
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			e.raw = raw
		}
	}
	return e
}

// open says that a command begins.
func (e *ear) open() {
	switch {
	case e.raw == nil:
	case e.timer == nil:
		e.timer = time.AfterFunc(e.after, e.listen)
	default:
		e.timer.Reset(e.after)
	}
}

// shut says that it has ended.
func (e *ear) shut() {
	if e.raw == nil || e.timer.Stop() {
		return
	}
	_ = e.conn.SetReadDeadline(time.Unix(1, 0)) // a connection that has none is gone
	<-e.done
	_ = e.conn.SetReadDeadline(time.Time{})
}

// listen waits until the client leaves, or it is no matter any more.
func (e *ear) listen() {
	left := false
	_ = e.raw.Read(func(fd uintptr) bool { // it fails where it is no matter any more
		left = hasLeft(fd)
		return left
	})
	if left {
		e.left()
	}
	e.done <- struct{}{}
}

// hasLeft reports whether the other end is closed, whatever has come from it.
func hasLeft(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
