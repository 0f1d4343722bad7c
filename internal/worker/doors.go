package worker

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
)

// doors are a sandbox's listeners, accepted on for the tenure that lasts.
type doors struct {
	b         *pooledSandbox
	listeners []*listener

	mu      sync.Mutex // guards the rest, and is held while a connection is accepted, so it gets the right tenure
	current *tenure
	aside   *tenure // of a process that is loaded already, while another is; or nil
	lines   uint64  // of tenures that there were
}

// listener is one door. Its own descriptor of the listening socket lets accepting and looking whose turn it is be one step.
type listener struct {
	file *os.File
	raw  syscall.RawConn
	fd   int32 // only to poll it
	door
}

// door is what is behind a listener.
type door struct {
	serve func(*doorConn)
	full  string // the reply to a connection beyond the limit
}

// The replies in the protocol of each door.
const (
	stateIsFull = "-ERR max number of clients reached\r\n"
	apiIsFull   = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
		`{"error":"This function has too many connections open: close those that it does not need."}`
)

// openDoors begins to accept connections on the sandbox's doors. They belong to no activation yet.
func openDoors(b *pooledSandbox) (*doors, error) {
	d := &doors{b: b, current: newTenure("")}
	behind := map[string]door{sandbox.DoorState: {b.w.serveState, stateIsFull}, sandbox.DoorAPI: {b.w.api.take, apiIsFull}}
	for name, door := range behind {
		l, err := listen(b.sandbox.Door(name))
		if err != nil {
			d.close()
			return nil, fmt.Errorf("the %s door cannot be opened: %w", name, err)
		}
		l.door = door
		d.listeners = append(d.listeners, l)
		b.living.Go(func() { d.accept(l) })
	}
	return d, nil
}

func listen(door net.Listener) (*listener, error) {
	tcp, ok := door.(*net.TCPListener)
	if !ok {
		return nil, errors.New("it is not a TCP listener")
	}
	file, err := tcp.File()
	if err != nil {
		return nil, err
	}
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	l := &listener{file: file, raw: raw}
	if err := raw.Control(func(fd uintptr) { l.fd = int32(fd) }); err != nil {
		_ = file.Close()
		return nil, err
	}
	return l, nil
}

// accept takes connections until the door is closed, each for the tenure in which it was taken.
func (d *doors) accept(l *listener) {
	for {
		fd, t, err := d.acceptOne(l)
		switch {
		case errors.Is(err, os.ErrClosed):
			return
		case err != nil: // out of descriptors, or the client was gone already
			select {
			case <-time.After(acceptPause):
			case <-d.b.dead:
				return
			}
		case t.isFull() || !d.b.mayConnectIn(t):
			_, _ = syscall.Write(fd, []byte(l.full)) // it is closed in any case
			_ = syscall.Close(fd)
		default:
			if c := newDoorConn(fd, d.b); !d.admit(l, c, t) {
				_ = c.Close()
			}
		}
	}
}

// admit begins to serve a connection that was accepted in a tenure, or in the one that has just taken over its connections.
func (d *doors) admit(l *listener, c *doorConn, t *tenure) bool {
	if d.serve(l, c, t) {
		return true
	}
	d.mu.Lock()
	lasting := [...]*tenure{d.current, d.aside}
	d.mu.Unlock()
	for _, now := range lasting {
		if now != nil && now != t && now.line == t.line {
			return d.serve(l, c, now)
		}
	}
	return false
}

// acceptPause is how long a door rests after a failed accept.
const acceptPause = 5 * time.Millisecond

// acceptOne waits for a connection, and says whose turn it was at the moment that it was taken.
func (d *doors) acceptOne(l *listener) (fd int, t *tenure, err error) {
	closed := l.raw.Read(func(listening uintptr) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		t = d.current
		fd, _, err = syscall.Accept4(int(listening), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
		return !errors.Is(err, syscall.EAGAIN)
	})
	if closed != nil {
		return 0, nil, os.ErrClosed
	}
	return fd, t, err
}

// tenure is the one that lasts.
func (d *doors) tenure() *tenure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.current
}

// begin makes the doors a run's.
func (d *doors) begin(t *tenure) { d.change(t, d.b.keeps()) }

// end takes the doors from their activation. The connections of a handler that stays wait for its next activation.
func (d *doors) end(handlerStays bool) {
	t := newTenure("")
	t.between = handlerStays
	d.change(t, handlerStays)
}

// cut ends the connections that were kept for a next activation.
func (d *doors) cut() {
	if d.tenure().between {
		d.end(false)
	}
}

func (d *doors) change(t *tenure, passOn bool) {
	d.mu.Lock()
	before := d.current
	if t.line = before.line; !passOn {
		d.newLine(t)
	}
	d.current = t
	d.mu.Unlock()
	if passOn {
		before.end(t)
		return
	}
	before.end(nil)
}

// newLine begins a line of tenures. mu is held.
func (d *doors) newLine(t *tenure) {
	d.lines++
	t.line = d.lines
}

// part sets the current tenure aside, with all its connections. Its process makes no more requests. Later connections
// come from another process, which has no activation.
func (d *doors) part() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.aside = d.detach()
}

// setAside takes the current tenure from the doors, with all its connections, until adopt. Its process makes no request meanwhile.
func (d *doors) setAside() *tenure {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.detach()
}

// detach begins a tenure of no activation, and returns the one that was current. mu is held.
func (d *doors) detach() (before *tenure) {
	d.takeIn(true)
	before, d.current = d.current, newTenure("")
	d.newLine(d.current)
	return before
}

// rejoin has the tenure last again that was put aside, and returns the one between, with all connections that were asked for in it.
func (d *doors) rejoin() (between *tenure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takeIn(true)
	between, d.current, d.aside = d.current, d.aside, nil
	return between
}

// adopt gives the connections of a tenure to the current activation of the doors, or to the next one, in place of all
// others.
func (d *doors) adopt(t *tenure) {
	d.mu.Lock()
	before := d.current
	if before.activation == "" {
		d.current = newTenure("")
		d.current.line, d.current.between = t.line, t.between
	}
	now := d.current
	d.mu.Unlock()
	if now != before {
		before.end(nil)
	}
	t.end(now)
}

// discard refuses the connections that processes of an earlier activation asked for before they were killed.
func (d *doors) discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takeIn(d.current.between)
}

// takeIn accepts what waits for it, to serve it if it is to be kept. mu is held.
func (d *doors) takeIn(keep bool) {
	for _, l := range asked(d.listeners) {
		_ = l.raw.Control(func(listening uintptr) {
			for {
				fd, _, err := syscall.Accept4(int(listening), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
				if err != nil {
					return
				}
				d.sort(l, fd, keep)
			}
		})
	}
}

// fence ends what processes were connected with that were killed, or asked for: they may not have closed their ends yet.
func (d *doors) fence() {
	d.discard()
	if !d.tenure().between {
		d.end(false) // among others, of those that were accepted just before
	}
}

// asked finds where connections wait to be accepted. To try is dearer: accept makes a socket first.
func asked(listeners []*listener) (waiting []*listener) {
	fds := make([]unix.PollFd, len(listeners))
	for i, l := range listeners {
		fds[i] = unix.PollFd{Fd: l.fd, Events: unix.POLLIN}
	}
	n, err := unix.Poll(fds, 0)
	if err != nil {
		return listeners // it cannot be told
	}
	if n == 0 {
		return nil
	}
	for i, l := range listeners {
		if fds[i].Revents != 0 {
			waiting = append(waiting, l)
		}
	}
	return waiting
}

// sort serves a connection that a handler made which stays, and closes it otherwise. mu is held.
func (d *doors) sort(l *listener, fd int, keep bool) {
	if !keep || !established(uintptr(fd)) || !d.b.mayConnect() {
		_ = syscall.Close(fd)
		return
	}
	if c := newDoorConn(fd, d.b); !d.serve(l, c, d.current) {
		_ = c.Close()
	}
}

// serve begins to serve a connection in a tenure, unless that is over, or full.
func (d *doors) serve(l *listener, c *doorConn, t *tenure) bool {
	if c == nil || !c.passTo(t) {
		return false
	}
	d.b.living.Go(func() { l.serve(c) })
	return true
}

// close shuts the doors for good.
func (d *doors) close() {
	for _, l := range d.listeners {
		_ = l.file.Close()
	}
	d.mu.Lock()
	lasting := [...]*tenure{d.current, d.aside}
	d.mu.Unlock()
	for _, t := range lasting {
		if t != nil {
			t.end(nil)
		}
	}
}
