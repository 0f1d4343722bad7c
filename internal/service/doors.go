package service

import (
	"context"
	"net"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/resp"
	"forerun.dev/forerun/internal/worker"
)

// redisDoor is what programs outside reach the state of functions through, with a tenant's key.
func redisDoor(store state.Store, tenants *registry.Registry) *resp.Server {
	return resp.NewServer(resp.Options{MaxBulk: command.MaxString, Authenticate: func(ctx context.Context, user, password string) (resp.Session, error) {
		if user == "default" { // a client that has only a password gives both in it
			user, password, _ = strings.Cut(password, ":")
		}
		tenant, err := tenants.Authenticate(ctx, user, password)
		if err != nil {
			return nil, err
		}
		return &tenantSession{store, tenants, user, worker.StateSpace(tenant.Namespace)}, nil
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
	valid, err := s.tenants.ValidKey(ctx, s.uuid)
	if err != nil {
		return state.Reply{}, 0, err
	}
	if !valid {
		return state.Reply{Kind: state.Error, Text: []byte("NOAUTH The key that this connection was opened with is void: connect with the new one.")}, 0, nil
	}
	return s.store.Do(ctx, state.Command{Space: s.space, Args: args})
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
		anyone := func(ctx context.Context, _ net.Conn) (context.Context, resp.Session) { return ctx, nil }
		if err := redisDoor(s.store, s.registry).Serve(ctx, s.redis, anyone); err != nil {
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
