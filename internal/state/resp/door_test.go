package resp_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
	"forerun.dev/forerun/internal/state/resp"
)

// session is the simplest that there can be: everything goes to one space of a store.
type session struct {
	store state.Store
	space string
}

func (s session) Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error) {
	return s.store.Do(ctx, state.Command{Space: s.space, Args: args})
}

func (s session) Exec(ctx context.Context, expect []state.Expect, commands [][][]byte) ([]state.Reply, forerun.Version, error) {
	return state.ExecIn(ctx, s.store, s.space, expect, commands)
}

func (s session) Versions(ctx context.Context, keys []forerun.Key) ([]state.Expect, error) {
	return s.store.Versions(ctx, keys...)
}

func (s session) Hold(_ context.Context, _ *forerun.Reason, begin func()) error {
	if begin != nil {
		begin()
	}
	return nil
}

func (s session) Space() string { return s.space }

func (s session) Listens(bool) {}

func (s session) Waits() context.Context { return context.Background() }

func (s session) Durable(ctx context.Context, v forerun.Version) error {
	return s.store.Durable(ctx, v)
}

// door is a server on loopback, over a store in memory.
type door struct {
	address string
	store   state.Store
	hub     *resp.Hub
	held    *atomic.Int64 // times that something was to wait for its turn
	why     *atomic.Value // the last time, a string
}

// holding is a session that counts what is to wait for its turn.
type holding struct {
	session
	times *atomic.Int64
	why   *atomic.Value
}

func (h holding) Hold(ctx context.Context, why *forerun.Reason, begin func()) error {
	h.why.Store(why.String())
	h.times.Add(1)
	return h.session.Hold(ctx, why, begin)
}

func open(t testing.TB) door { return openWith(t, resp.Options{}, vfs.NewMem()) }

// openWith opens a door; whoever comes has a session unless the options ask for a password.
func openWith(t testing.TB, options resp.Options, fs vfs.FS) door {
	t.Helper()
	dir := "store"
	if fs == nil {
		dir = t.TempDir()
	}
	store, err := embedded.Open(dir, embedded.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hub, held, why := resp.NewHub(store, nil), new(atomic.Int64), new(atomic.Value)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() {
		served <- resp.NewServer(hub, options).Serve(ctx, ln, func(ctx context.Context, _ net.Conn) (context.Context, resp.Session) {
			if options.Authenticate != nil {
				return ctx, nil
			}
			return ctx, holding{session{store, "tests"}, held, why}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := errors.Join(hub.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return door{ln.Addr().String(), store, hub, held, why}
}
