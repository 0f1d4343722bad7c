package service

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"

	"forerun.dev/forerun/internal/audit"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/resp"
	"forerun.dev/forerun/internal/worker"
)

// room is how many connections the doors to the outside have.
type room struct{ http, httpStrangers, redis, redisStrangers int }

// roomIn is the room in so many files and sockets as the process may have open. Of the six sixteenths that the worker leaves one is kept
// for the server's own: clients of one door cannot keep those of the other out, nor the server from working.
func roomIn(files int) room {
	part := files / 32
	return room{
		http: min(4*part, gateway.MaxConns), httpStrangers: min(2*part, gateway.MaxStrangers),
		redis: min(3*part, resp.MaxConns), redisStrangers: min(part, resp.MaxStrangers),
	}
}

// redisDoor is what programs outside reach the state of functions through, with a tenant's key.
func redisDoor(store state.Store, hub *resp.Hub, tenants *registry.Registry, notes *audit.Log, has room) *resp.Server {
	return resp.NewServer(hub, resp.Options{MaxBulk: command.MaxString, MaxConns: has.redis, MaxStrangers: has.redisStrangers, Authenticate: func(ctx context.Context, user, password string) (resp.Session, error) {
		if user == "default" { // a client that has only a password gives both in it
			user, password, _ = strings.Cut(password, ":")
		}
		tenant, err := tenants.Authenticate(ctx, user, password)
		conn, ok := ctx.Value(keyedConnKey{}).(*keyedConn)
		if err != nil {
			if kind := forerun.KindOf(err); kind == forerun.Unauthorized || kind == forerun.Forbidden {
				e := audit.Entry{Who: audit.KeyOf(user), Namespace: tenant.Namespace, Action: audit.Authenticate, Object: "redis", Status: kind.HTTPStatus()}
				if ok {
					e.Peer = conn.RemoteAddr().String()
				}
				notes.Note(e)
			}
			return nil, err
		}
		session := &tenantSession{store, tenants, user, worker.StateSpace(tenant.Namespace)}
		if ok {
			conn.holdTo(tenants, user)
		}
		return session, session.check(ctx) // it may have become void before it was held to
	}})
}

// tenantSession implements resp.Session: it operates on the state of a tenant.
type tenantSession struct {
	store   state.Store
	tenants *registry.Registry
	uuid    string // of the key that it was opened with
	space   string
}

func (s *tenantSession) Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error) {
	if err := s.check(ctx); err != nil {
		return state.Reply{}, 0, err
	}
	return s.store.Do(ctx, state.Command{Space: s.space, Args: args})
}

func (s *tenantSession) Exec(ctx context.Context, expect []state.Expect, commands [][][]byte) ([]state.Reply, forerun.Version, error) {
	if err := s.check(ctx); err != nil {
		return nil, 0, err
	}
	return state.ExecIn(ctx, s.store, s.space, expect, commands)
}

func (s *tenantSession) Versions(ctx context.Context, keys []forerun.Key) ([]state.Expect, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	return s.store.Versions(ctx, keys...)
}

// Hold: clients do not run ahead.
func (s *tenantSession) Hold(_ context.Context, _ *forerun.Reason, begin func()) error {
	if begin != nil {
		begin()
	}
	return nil
}

func (s *tenantSession) Space() string { return s.space }

// Listens: the connection belongs to no activation.
func (s *tenantSession) Listens(bool) {}

// Waits does not end: the connection itself ends when the key is void.
func (s *tenantSession) Waits() context.Context { return context.Background() }

// check demands that the key is still good.
func (s *tenantSession) check(ctx context.Context) error {
	valid, err := s.tenants.ValidKey(ctx, s.uuid)
	if err == nil && !valid {
		return resp.Refusal("NOAUTH The key that this connection was opened with is void: connect with the new one.")
	}
	return err
}

func (s *tenantSession) Durable(ctx context.Context, v forerun.Version) error {
	return s.store.Durable(ctx, v)
}

// openRedisDoor serves Redis clients from outside, if an address for them is given.
func (s *server) openRedisDoor(context.Context) error {
	if s.redis == nil {
		return nil
	}
	ctx, shut := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		anyone := func(ctx context.Context, c net.Conn) (context.Context, resp.Session) {
			return context.WithValue(ctx, keyedConnKey{}, c), nil
		}
		if err := redisDoor(s.store, s.hub, s.registry, s.audit, roomIn(sandbox.Descriptors())).Serve(ctx, keyedListener{s.redisListener()}, anyone); err != nil {
			s.broken <- err
		}
	}()
	s.onClose(func() error {
		shut()
		<-ended
		return nil
	})
	return nil
}

// redisListener speaks TLS if the listener is secure.
func (s *server) redisListener() net.Listener {
	if config := s.tlsOf(s.redis); config != nil {
		return shaken{s.redis, config}
	}
	return s.redis
}

// keyedListener accepts connections that end when the key that they were authenticated with is void.
type keyedListener struct{ net.Listener }

func (l keyedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &keyedConn{Conn: c}, nil
}

// keyedConn is such a connection; in its context it lies under keyedConnKey.
type keyedConn struct {
	net.Conn
	mu     sync.Mutex // guards the rest
	closed bool
	stop   func() // ends the wait for the key to be void; nil while there is no key
}

type keyedConnKey struct{}

// SyscallConn implements syscall.Conn.
func (c *keyedConn) SyscallConn() (syscall.RawConn, error) {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// holdTo has the connection end when a key is void, and not when the key before it is.
func (c *keyedConn) holdTo(tenants *registry.Registry, uuid string) {
	stop := tenants.WhenVoid(uuid, c.cut)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
	if c.stop = stop; c.closed {
		stop()
	}
}

// cut ends the connection at once: Close of TLS waits a while for a client that does not read.
func (c *keyedConn) cut() {
	if secure, ok := c.Conn.(interface{ NetConn() net.Conn }); ok {
		_ = secure.NetConn().Close()
		return
	}
	_ = c.Conn.Close()
}

// Close ends the connection.
func (c *keyedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed = true; c.stop != nil {
		c.stop()
	}
	return c.Conn.Close()
}
