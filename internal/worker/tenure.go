package worker

import (
	"context"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// tenure is a period in which the doors of a sandbox belong to one activation. While code is loaded, and between
// activations, a tenure belongs to none. A connection belongs to the tenure in which it was made and ends with it. If
// the handler that made it stays, the connection goes to the next tenure. A request on it between two activations waits.
type tenure struct {
	activation forerun.ActivationID // empty: no activation
	between    bool                 // no activation, between two activations of a handler that stays
	over       atomic.Bool          // no operation may begin any more
	timedOut   atomic.Bool          // the action's time limit ended it
	line       uint64               // the same as of the tenures that it has connections of; set before it lasts
	handler    atomic.Pointer[spare]
	bridge     state.Bridge  // that executes its commands on state; nil: the store does
	ahead      func() bool   // whether the activation is; nil: it never was
	noter      state.Bridge  // has notes of the activation for the store; nil: it needs none
	wrote      atomic.Bool   // the store has them
	squashed   chan struct{} // closed when it was, of a speculative activation
	done       chan struct{} // closed when the activation is over
	unsent     func()        // what was held when the handler's leftovers were killed; guarded by pooledSandbox.reseting
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

// notes are the commands that keep notes of the activation, if one of these is the first that may write to state.
func (t *tenure) notes(commands ...[][]byte) []state.Command {
	if t.noter == nil || t.wrote.Load() || !slices.ContainsFunc(commands, mayWrite) {
		return nil
	}
	return t.noter.Notes(t.activation)
}

func mayWrite(args [][]byte) bool {
	spec, _ := command.Find(args)
	return spec != nil && spec.Flags&command.Write != 0
}

func (t *tenure) isDone() bool { return isClosed(t.done) }

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

// doorConn is a connection from inside a sandbox.
type doorConn struct {
	net.Conn
	raw       syscall.RawConn
	namespace string
	turns     *scheduler
	all       *sandbox.Shares        // it counts in
	tenure    atomic.Pointer[tenure] // that it belongs to
	listens   atomic.Bool            // messages come on it
	requests  atomic.Int32           // in progress that are not waited for at the tenure's end; raised under tenure.working
	ctx       context.Context        // ends with the connection
	cancel    context.CancelFunc
	closed    sync.Once
}

// mayConnect counts one more connection of the sandbox's tenant, if the tenant's limit allows it.
func (b *pooledSandbox) mayConnect() bool { return b.w.connections.Take(b.pool().key.namespace) }

// mayConnectIn is mayConnect for a tenure. A speculative activation has a lower limit, so that some connections remain
// for activations in order. At the limit it is not refused but runs again in order, when there may be more.
func (b *pooledSandbox) mayConnectIn(t *tenure) bool {
	r := b.aheadIn(t)
	if r == nil {
		return b.mayConnect()
	}
	if b.w.connections.TakeHalf(b.pool().key.namespace) {
		return true
	}
	b.wantAgain(r, forerun.ReasonNoConnection)
	select {
	case <-r.promoted.Done():
		return b.mayConnect()
	case <-t.squashed:
	case <-t.done:
	case <-b.dead:
	}
	return false
}

// aheadIn is the run of a tenure if it is speculative, else nil.
func (b *pooledSandbox) aheadIn(t *tenure) *run {
	b.w.mu.Lock()
	defer b.w.mu.Unlock()
	if r := b.current; r != nil && r.tenure == t && r.isAhead() && !r.isParked() {
		return r
	}
	return nil
}

// newDoorConn makes a connection of an accepted socket, which counts until it is closed. It returns nil if that cannot be used.
func newDoorConn(fd int, b *pooledSandbox) *doorConn {
	c := &doorConn{namespace: b.pool().key.namespace, turns: b.w.turns, all: b.w.connections}
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

// isEstablished reports whether the other end is open. Data of a process that is gone belongs to no activation.
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
