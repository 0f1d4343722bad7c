package controller

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestGivenUpAhead: what a function gave up because it had to wait for its turn is not done, and the function runs again in its turn. If
// it asks again, that is done no more often than once.
func TestGivenUpAhead(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	pop := state.Command{Space: "ns", Args: [][]byte{[]byte("SPOP"), []byte("pool")}}
	for name, ask := range map[string]func(town *town, run *forerun.Run) error{
		"a command": func(town *town, run *forerun.Run) error {
			by := state.Asker{Activation: run.Activation, Listen: func(context.Context) (context.Context, func()) { return gone, func() {} }}
			_, _, err := town.Bridge.Do(t.Context(), by, pop)
			return err
		},
		"a request": func(town *town, run *forerun.Run) error {
			ctx := t.Context()
			if town.IsAhead(run.Activation) {
				ctx = gone
			}
			if err := town.Hold(ctx, run.Activation, ""); err != nil {
				return err
			}
			_, _, err := town.State.Do(t.Context(), pop)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			town := newAheadTown(t)
			add := state.Command{Space: "ns", Args: [][]byte{[]byte("SADD"), []byte("pool"), []byte("1"), []byte("2"), []byte("3")}}
			if _, _, err := town.State.Do(t.Context(), add); err != nil {
				t.Fatal(err)
			}
			var second atomic.Bool
			gaveUp := make(chan struct{})
			town.function("first", func(*forerun.Run, map[string]any) (any, error) {
				if second.Load() {
					<-gaveUp
				}
				return map[string]any{}, nil
			})
			town.function("taker", func(run *forerun.Run, _ map[string]any) (any, error) {
				ahead := town.IsAhead(run.Activation)
				err := ask(town, run)
				if ahead {
					err = ask(town, run)
					close(gaveUp)
				}
				return map[string]any{"ahead": ahead}, err
			})
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/first", "/ns/taker"}})
			town.invokeAhead(seq, `{}`)
			second.Store(true)
			got, tally := town.invokeAhead(seq, `{}`)
			if got != `{"ahead":false}` || tally.Squashed != 1 || tally.Used != 0 {
				t.Errorf("%s, %+v", got, tally)
			}
			left, _, err := town.State.Do(t.Context(), state.Command{Space: "ns", Args: [][]byte{[]byte("SCARD"), []byte("pool")}})
			if err != nil || left.Int != 1 {
				t.Errorf("two invocations have left %d of 3: %v", left.Int, err)
			}
		})
	}
}

// TestCallsGivenUpAhead: nor does a call count whose caller has not waited for it until its turn came.
func TestCallsGivenUpAhead(t *testing.T) {
	town := newAheadTown(t)
	var second atomic.Bool
	gaveUp := make(chan struct{})
	wait := func(*forerun.Run, map[string]any) (any, error) {
		if second.Load() {
			<-gaveUp
		}
		return map[string]any{}, nil
	}
	town.function("first", wait)
	callee := town.function("callee", wait)
	town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
		ahead := town.IsAhead(run.Activation)
		i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
		if ahead {
			i.Leave()
			close(gaveUp)
		} else {
			<-i.Done()
		}
		return map[string]any{"ahead": ahead}, nil
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/first", "/ns/caller"}})
	town.invokeAhead(seq, `{}`)
	second.Store(true)
	if got, tally := town.invokeAhead(seq, `{}`); got != `{"ahead":false}` || tally.Squashed == 0 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// unreadable is a store whose records are too large for copies.
type unreadable struct{ state.Store }

func (unreadable) Fetch(context.Context, ...forerun.Key) ([]state.Fetched, error) {
	return nil, forerun.Errorf(forerun.TooLarge, "state", "too large")
}

// TestGivenUpUnanswered: nor is a command done that its function gave up while it waited for something else than its turn: for an older
// invocation, which is to write what it reads; as that cannot be read ahead; or for the store, which is to take what the function did.
// In the last case the function goes on.
func TestGivenUpUnanswered(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	count := state.Command{Space: "ns", Args: [][]byte{[]byte("INCR"), []byte("k")}}
	listen := func(context.Context) (context.Context, func()) { return gone, func() {} }
	for name, hinder := range map[string]func(w *waiting, run *forerun.Run) (squashed int, goOn func()){
		"claimed": func(w *waiting, _ *forerun.Run) (int, func()) {
			own := make(map[forerun.Key]*claim)
			w.claims.add(0, own, []forerun.Key{{Space: "ns", Name: "k"}})
			return 1, func() {
				w.claims.drop(own)
				close(w.goOn)
			}
		},
		"unreadable": func(w *waiting, _ *forerun.Run) (int, func()) {
			w.State = unreadable{w.State}
			return 1, func() { close(w.goOn) }
		},
		"being promoted": func(w *waiting, run *forerun.Run) (int, func()) {
			store := &stuck{Store: w.State, asked: make(chan struct{}), answer: make(chan struct{})}
			w.State = store
			_, _ = w.do(run, "SET", "other", "v")
			close(w.goOn)
			<-store.asked
			return 0, func() { close(store.answer) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w *waiting
			var want atomic.Int64 // squashes
			w = newWaiting(t, func(run *forerun.Run) (any, error) {
				if w.first() {
					squashed, goOn := hinder(w, run)
					want.Store(int64(squashed))
					left := make(chan struct{})
					go func() {
						defer close(left)
						_, _, _ = w.Bridge.Do(t.Context(), state.Asker{Activation: run.Activation, Listen: listen}, count)
					}()
					select {
					case <-left:
					case <-time.After(2 * claimWait): // nobody has noticed that
					}
					goOn()
				}
				_, err := w.do(run, "INCR", "k")
				return map[string]any{}, err
			})
			if got, tally := w.twice(); got != `{}` || int64(tally.Squashed) != want.Load() {
				t.Errorf("%s, %+v", got, tally)
			}
			if got := w.others(t, "GET k"); string(got.Text) != "2" {
				t.Errorf("two invocations have counted to %s", got.Text)
			}
		})
	}
}
