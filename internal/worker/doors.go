package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/state"
)

// tenure is a time in which the doors of a sandbox are one activation's, or nobody's: while its code is loaded, and
// between activations. A connection belongs to the tenure in which it was made and ends with it, unless the handler that
// made it stays: then it is the next tenure's, and what is asked for on it between two activations waits.
type tenure struct {
	activation forerun.ActivationID // empty: nobody's
	between    bool                 // nobody's, between two activations of a handler that stays
	over       atomic.Bool          // no operation may begin any more
	timedOut   atomic.Bool          // the action's time limit ended it
	line       uint64               // the same as of the tenures that it has connections of; set before it lasts
	handler    atomic.Pointer[spare]
	bridge     state.Bridge  // that executes its commands on state; nil: the store does
	squashed   chan struct{} // closed when it was, of a speculative activation
	done       chan struct{} // closed when the activation is over
	ctx        context.Context
	cancel     context.CancelFunc

	working sync.RWMutex  // read-held during each operation, so that the end can wait for them
	settled chan struct{} // closed when its connections are closed, or the next one's

	mu    sync.Mutex // guards conns
	conns map[*doorConn]struct{}
}

func newTenure(id forerun.ActivationID) *tenure {
	t := &tenure{activation: id, done: make(chan struct{}), settled: make(chan struct{}), conns: make(map[*doorConn]struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// keep notes a connection, and reports false if the tenure is over, or has all that it may have.
func (t *tenure) keep(c *doorConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.Load() || len(t.conns) >= maxDoorConns {
		return false
	}
	t.conns[c] = struct{}{}
	return true
}

// maxDoorConns is how many connections the doors of one sandbox hold: descriptors of the server are for all.
const maxDoorConns = 512

// isFull reports whether the tenure has all the connections that it may have.
func (t *tenure) isFull() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns) >= maxDoorConns
}

// listens reports whether messages come on a connection of the tenure.
func (t *tenure) listens() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for c := range t.conns {
		if c.listens.Load() {
			return true
		}
	}
	return false
}

func (t *tenure) drop(c *doorConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// end waits for operations that were begun, and cuts the tenure's connections, or passes them on if there is a next
// tenure to have them.
func (t *tenure) end(next *tenure) {
	t.over.Store(true)
	t.cancel()
	t.working.Lock()
	t.mu.Lock()
	conns := slices.Collect(maps.Keys(t.conns))
	t.mu.Unlock()
	t.working.Unlock()
	for _, c := range conns {
		if next == nil || !c.passTo(next) {
			_ = c.Close()
		}
	}
	close(t.settled)
}

// doors are a sandbox's listeners, accepted on for the tenure that lasts.
type doors struct {
	b         *box
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
	full  string // what a connection is told that is one too many
}

// What clients of each door understand.
const (
	stateIsFull = "-ERR max number of clients reached\r\n"
	apiIsFull   = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" +
		`{"error":"This function has too many connections open: close those that it does not need."}`
)

// openDoors begins to accept on the box's doors, for nobody yet.
func openDoors(b *box) (*doors, error) {
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
		return nil, errors.New("it is no TCP listener")
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
		case t.isFull() || !d.b.mayConnect():
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

// end makes them nobody's. The connections of a handler that stays wait for its next activation.
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

// part puts the tenure aside that lasts, with all connections that were asked for in it: who has them asks for no more. From now on
// connections are those of another process, which has no activation.
func (d *doors) part() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takeIn(true)
	d.aside, d.current = d.current, newTenure("")
	d.newLine(d.current)
}

// rejoin has the tenure last again that was put aside, and returns the one between, with all connections that were asked for in it.
func (d *doors) rejoin() (between *tenure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.takeIn(true)
	between, d.current, d.aside = d.current, d.aside, nil
	return between
}

// adopt passes the connections of a tenure on to the activation that the doors are for, or to the next one in the place of all others.
func (d *doors) adopt(t *tenure) {
	d.mu.Lock()
	before := d.current
	if before.activation == "" {
		d.current = newTenure("")
		d.current.line = t.line
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

// doorConn is a connection from inside a sandbox.
type doorConn struct {
	net.Conn
	raw       syscall.RawConn
	namespace string
	all       *sandbox.Shares        // it counts in
	tenure    atomic.Pointer[tenure] // that it belongs to
	listens   atomic.Bool            // messages come on it
	requests  atomic.Int32           // in progress that are not waited for at the tenure's end; raised under tenure.working
	ctx       context.Context        // ends with the connection
	cancel    context.CancelFunc
	closed    sync.Once
}

// mayConnect counts one more connection of the box's tenant, if that may have it.
func (b *box) mayConnect() bool { return b.w.connections.Take(b.pool().key.namespace) }

// newDoorConn makes a connection of an accepted socket, which counts until it is closed. It returns nil if that cannot be used.
func newDoorConn(fd int, b *box) *doorConn {
	c := &doorConn{namespace: b.pool().key.namespace, all: b.w.connections}
	if err := c.open(fd); err != nil {
		c.all.Count(c.namespace, -1)
		return nil
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *doorConn) open(fd int) (err error) {
	file := os.NewFile(uintptr(fd), "door")
	defer file.Close()
	if c.Conn, err = net.FileConn(file); err != nil {
		return err
	}
	if c.raw, err = c.Conn.(syscall.Conn).SyscallConn(); err != nil {
		_ = c.Conn.Close()
	}
	return err
}

// passTo makes the connection a tenure's. It reports false if that is over, or full; or, of one that was another's before, if the
// other end is gone, or something is being answered on it.
func (c *doorConn) passTo(t *tenure) bool {
	before := c.tenure.Load()
	if before != nil && (c.requests.Load() > 0 || !c.isEstablished()) {
		return false
	}
	if !t.keep(c) {
		return false
	}
	c.tenure.CompareAndSwap(before, t) // if it has changed, t is over already and has passed the connection on
	return true
}

// isEstablished reports whether the other end is open. What comes from a process that is gone is nobody's.
func (c *doorConn) isEstablished() (is bool) {
	err := c.raw.Control(func(fd uintptr) { is = established(fd) })
	return err == nil && is
}

func established(fd uintptr) bool {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	return err == nil && info.State == unix.BPF_TCP_ESTABLISHED
}

// enter begins an operation: it returns the tenure that this belongs to, whose working is read-held. If there is none,
// refusal says why. Between two activations of a handler that stays it waits, until ctx ends.
func (c *doorConn) enter(ctx context.Context) (t *tenure, refusal string) {
	for ctx.Err() == nil {
		t = c.tenure.Load()
		t.working.RLock()
		over := t.over.Load()
		if !over && t.activation != "" {
			return t, ""
		}
		t.working.RUnlock()
		if !over && !t.between {
			return nil, "no activation is running: state can be reached while the function runs, not while its code is loaded"
		}
		select {
		case <-t.settled:
		case <-c.ctx.Done():
		case <-ctx.Done():
		}
		if c.ctx.Err() != nil || c.tenure.Load() == t {
			break
		}
	}
	return nil, "the activation that made this connection is over"
}

// SyscallConn implements syscall.Conn.
func (c *doorConn) SyscallConn() (syscall.RawConn, error) { return c.raw, nil }

// Close closes the connection, once, and takes it off its tenure's list.
func (c *doorConn) Close() error {
	if c == nil {
		return nil
	}
	err := net.ErrClosed
	c.closed.Do(func() {
		c.cancel()
		err = c.Conn.Close()
		c.all.Count(c.namespace, -1)
		if t := c.tenure.Load(); t != nil {
			t.drop(c)
		}
	})
	return err
}
