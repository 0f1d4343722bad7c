package embedded

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestWhatIsLeftWritesNothing: a step whose context ends in its midst ends, and nothing of it is written.
func TestWhatIsLeftWritesNothing(t *testing.T) {
	var leave atomic.Pointer[context.CancelFunc] // called when the time is asked for, as is done before the commands
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time {
		if f := leave.Load(); f != nil {
			(*f)()
		}
		return time.Now()
	}})
	defer closed(t, s)
	defer s.Watch(func(forerun.Key, forerun.Version) {})()
	many, members := words("MSET"), words("SADD", "set")
	for i := range 5000 {
		many = append(many, fmt.Append(nil, "k", i), nil)
		members = append(members, fmt.Append(nil, i))
	}
	op := func(args ...string) state.Command { return state.Command{Space: "s", Args: words(args...)} }
	all := []state.Command{op("SET", "a", "1"), op("SUNIONSTORE", "b", "set")}
	if _, _, err := s.Exec(t.Context(), nil, []state.Command{{Space: "s", Args: many}, {Space: "s", Args: members}}); err != nil {
		t.Fatal(err)
	}
	do := func(args ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, _, err := s.Do(ctx, op(args...))
			return err
		}
	}
	for name, step := range map[string]func(context.Context) error{
		"walk":  do("SUNIONSTORE", "a", "set"),
		"look":  do("KEYS", "*x"),
		"flush": do("FLUSHALL"),
		"Exec": func(ctx context.Context) error {
			_, _, err := s.Exec(ctx, nil, all)
			return err
		},
		"Observe": func(ctx context.Context) error {
			_, err := s.Observe(ctx, nil, all)
			return err
		},
		"Apply": func(ctx context.Context) error {
			_, err := s.Apply(ctx, state.Txn{Ops: all})
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		leave.Store(&cancel)
		err := step(ctx)
		leave.Store(nil)
		if reply, _, failed := s.Do(t.Context(), op("EXISTS", "a", "b", "set", "k0", "k4999")); !errors.Is(err, context.Canceled) || failed != nil || reply.Int != 3 {
			t.Errorf("%s: %v; of the records there are %d, %v", name, err, reply.Int, failed)
		}
		cancel()
	}
}
