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

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// tenure is a time in which the doors of a sandbox are one activation's, or nobody's: while its code is loaded, and
// between activations. A connection belongs to the tenure in which it was made and ends with it.
type tenure struct {
	activation forerun.ActivationID // empty: nobody's
	over       atomic.Bool          // no operation may begin any more
	timedOut   atomic.Bool          // the action's time limit ended it
	handler    atomic.Pointer[spare]
	done       chan struct{} // closed when the activation is over
	ctx        context.Context
	cancel     context.CancelFunc

	working sync.RWMutex // read-held during each operation, so that the end can wait for them

	mu    sync.Mutex // guards conns
	conns map[*doorConn]struct{}
}

func newTenure(id forerun.ActivationID) *tenure {
	t := &tenure{activation: id, done: make(chan struct{}), conns: make(map[*doorConn]struct{})}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t
}

// keep notes a connection, and reports false if the tenure is over.
func (t *tenure) keep(c *doorConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.Load() {
		return false
	}
	t.conns[c] = struct{}{}
	return true
}

func (t *tenure) drop(c *doorConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

// end cuts the tenure's connections and waits for operations that were begun.
func (t *tenure) end() {
	t.over.Store(true)
	t.cancel()
	t.mu.Lock()
	conns := slices.Collect(maps.Keys(t.conns))
	t.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	t.working.Lock()
	defer t.working.Unlock()
}

// doors are a sandbox's listeners, accepted on for the tenure that lasts.
type doors struct {
	b         *box
	listeners []*listener

	mu      sync.Mutex // guards current, and is held while a connection is accepted, so it gets the right tenure
	current *tenure
}

// listener is one door. Its own descriptor of the listening socket lets accepting and looking whose turn it is be one step.
type listener struct {
	file *os.File
	raw  syscall.RawConn
}

// openDoors begins to accept on the box's doors, for nobody yet.
func openDoors(b *box) (*doors, error) {
	d := &doors{b: b, current: newTenure("")}
	serve := map[string]func(*doorConn){sandbox.DoorState: b.w.serveState, sandbox.DoorAPI: b.w.api.take}
	for name, serve := range serve {
		l, err := listen(b.sandbox.Door(name))
		if err != nil {
			d.close()
			return nil, fmt.Errorf("the %s door cannot be opened: %w", name, err)
		}
		d.listeners = append(d.listeners, l)
		b.living.Go(func() { d.accept(l, serve) })
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
	return &listener{file, raw}, nil
}

// accept takes connections until the door is closed, each for the tenure in which it was taken.
func (d *doors) accept(l *listener, serve func(*doorConn)) {
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
		default:
			if c := newDoorConn(fd, t, d.b); c != nil {
				d.b.living.Go(func() { serve(c) })
			}
		}
	}
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
func (d *doors) begin(t *tenure) { d.change(t) }

// end makes them nobody's.
func (d *doors) end() { d.change(newTenure("")) }

func (d *doors) change(t *tenure) {
	d.mu.Lock()
	before := d.current
	d.current = t
	d.mu.Unlock()
	before.end()
}

// discard refuses the connections that processes of an earlier activation asked for before they were killed.
func (d *doors) discard() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.listeners {
		_ = l.raw.Control(func(listening uintptr) {
			for {
				fd, _, err := syscall.Accept4(int(listening), syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK)
				if err != nil {
					return
				}
				_ = syscall.Close(fd)
			}
		})
	}
}

// close shuts the doors for good.
func (d *doors) close() {
	for _, l := range d.listeners {
		_ = l.file.Close()
	}
	d.tenure().end()
}

// doorConn is a connection from inside a sandbox.
type doorConn struct {
	net.Conn
	tenure    *tenure
	namespace string
	closed    sync.Once
}

// newDoorConn makes a connection of an accepted socket. It returns nil if there is nobody any more to serve.
func newDoorConn(fd int, t *tenure, b *box) *doorConn {
	file := os.NewFile(uintptr(fd), "door")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil
	}
	c := &doorConn{Conn: conn, tenure: t, namespace: b.pool.key.namespace}
	if !t.keep(c) {
		_ = conn.Close()
		return nil
	}
	return c
}

// Close closes the connection, once, and takes it off its tenure's list.
func (c *doorConn) Close() error {
	err := net.ErrClosed
	c.closed.Do(func() {
		err = c.Conn.Close()
		c.tenure.drop(c)
	})
	return err
}
