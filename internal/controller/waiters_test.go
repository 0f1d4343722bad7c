package controller

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/resp"
)

// client is a session of a client of the state.
type client struct{ state.Store }

func (c client) Do(ctx context.Context, args [][]byte) (state.Reply, forerun.Version, error) {
	return c.Store.Do(ctx, state.Command{Space: "ns", Args: args})
}

func (c client) Exec(ctx context.Context, expect []state.Expect, commands [][][]byte) ([]state.Reply, forerun.Version, error) {
	return state.ExecIn(ctx, c.Store, "ns", expect, commands)
}

func (c client) Versions(ctx context.Context, keys []forerun.Key) ([]state.Expect, error) {
	return c.Store.Versions(ctx, keys...)
}

func (client) Hold(_ context.Context, _ *forerun.Reason, begin func()) error {
	if begin != nil {
		begin()
	}
	return nil
}

func (client) Listens(bool) {}

func (client) Space() string { return "ns" }

func (client) Waits() context.Context { return context.Background() }

// queues are those of a town, at which clients wait.
type queues struct {
	*resp.Hub
	*waiting
}

// newQueues lets clients wait for what functions of a town write.
func newQueues(t *testing.T, w *waiting) *queues {
	q := &queues{resp.NewHub(w.State, nil), w}
	t.Cleanup(func() { _ = q.Close() })
	w.Waiters = q.Hub
	return q
}

// pop has a client wait for what comes into a list; what it is told is to come.
func (q *queues) pop(tb testing.TB) (reply <-chan string) {
	ours, theirs := net.Pipe()
	go resp.NewServer(q.Hub, resp.Options{}).ServeConn(tb.Context(), theirs, client{q.State})
	if _, err := io.WriteString(ours, "BLPOP q 0\r\n"); err != nil {
		tb.Fatal(err)
	}
	told := make(chan string, 1)
	go func() {
		text := make([]byte, 100)
		n, _ := ours.Read(text)
		told <- string(text[:n])
		_ = ours.Close()
	}()
	for end := time.Now().Add(2 * time.Minute); !q.IsAwaited([]forerun.Key{{Space: "ns", Name: "q"}}); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("the client does not wait")
		}
	}
	return told
}

// TestWhoWaitsIsServedFirst: a client that waits for a record by the turn of a function has what that wrote there ahead, and the function
// finds what is left.
func TestWhoWaitsIsServedFirst(t *testing.T) {
	var q *queues
	var told <-chan string
	w := newWaiting(t, func(run *forerun.Run) (any, error) {
		first := q.first()
		if _, err := q.do(run, "RPUSH", "q", "x"); err != nil {
			return nil, err
		}
		if !run.Speculative { // as the door does
			q.Settle(t.Context(), []forerun.Key{{Space: "ns", Name: "q"}})
		}
		popped, err := q.do(run, "LPOP", "q")
		if first {
			told = q.pop(t)
			close(q.goOn)
		}
		return map[string]any{"popped": popped}, err
	})
	q = newQueues(t, w)
	got, tally := q.twice()
	if got != `{"popped":""}` || tally.Squashed != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
	q.others(t, "RPUSH q late") // else it would wait for ever if it was not served
	if got := <-told; got != "*2\r\n$1\r\nq\r\n$1\r\nx\r\n" {
		t.Errorf("the client was told %q", got)
	}
}

// latecomer is one who begins to wait just as what it waits for is applied.
type latecomer struct {
	state.Store
	applied, served atomic.Bool
}

func (s *latecomer) Exec(ctx context.Context, expect []state.Expect, commands []state.Command) ([]state.Reply, forerun.Version, error) {
	s.applied.Store(true)
	return s.Store.Exec(ctx, expect, commands)
}

func (s *latecomer) IsAwaited([]forerun.Key) bool { return s.applied.Load() }

func (s *latecomer) Settle(_ context.Context, keys []forerun.Key) {
	s.served.Store(s.applied.Load() && keys[0].Name == "q")
}

// TestWhoComesLateIsServedBefore: a client that begins to wait just as a function's turn has come has looked before the function goes on.
func TestWhoComesLateIsServedBefore(t *testing.T) {
	var w *waiting
	var s *latecomer
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if _, err := w.do(run, "RPUSH", "q", "x"); err != nil || !w.first() {
			return nil, err
		}
		close(w.goOn)
		err := w.Hold(t.Context(), run.Activation, nil)
		return map[string]any{"served": s.served.Load()}, err
	})
	s = &latecomer{Store: w.State}
	w.State, w.Waiters = s, s
	if got, tally := w.twice(); got != `{"served":true}` || tally.Used != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
}
