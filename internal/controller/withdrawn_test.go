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

// TestGivenUpAhead: a request that a function gave up, because it had to wait for its turn, is not carried out, and the function runs again in its turn. If
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
			if err := town.Hold(ctx, run.Activation, nil); err != nil {
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
// invocation, which is to write what it reads; or as that cannot be read ahead.
func TestGivenUpUnanswered(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	count := state.Command{Space: "ns", Args: [][]byte{[]byte("INCR"), []byte("k")}}
	listen := func(context.Context) (context.Context, func()) { return gone, func() {} }
	for name, hinder := range map[string]func(w *waiting) (goOn func()){
		"claimed": func(w *waiting) func() {
			own := make(map[forerun.Key]*claim)
			w.claims.add(0, own, []forerun.Key{{Space: "ns", Name: "k"}})
			return func() {
				w.claims.drop(own)
				close(w.goOn)
			}
		},
		"unreadable": func(w *waiting) func() {
			w.State = unreadable{w.State}
			return func() { close(w.goOn) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			var w *waiting
			w = newWaiting(t, func(run *forerun.Run) (any, error) {
				if w.first() {
					goOn := hinder(w)
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
			if got, tally := w.twice(); got != `{}` || tally.Squashed != 1 {
				t.Errorf("%s, %+v", got, tally)
			}
			if got := w.others(t, "GET k"); string(got.Text) != "2" {
				t.Errorf("two invocations have counted to %s", got.Text)
			}
		})
	}
}

// TestAskedInAPromotion: requests of a function during its promotion are carried out as in its turn, also if it does not wait for the
// answer; what it had asked for before, and gives up only then, is not, as it may ask for that again.
func TestAskedInAPromotion(t *testing.T) {
	keys := []forerun.Key{{Space: "ns", Name: "k"}}
	count := state.Command{Space: "ns", Args: [][]byte{[]byte("INCR"), []byte("k")}}
	for before, want := range map[bool]string{true: "2", false: "3"} {
		gone, leave := context.WithCancel(t.Context())
		heard, left := make(chan struct{}, 1), make(chan struct{})
		listen := func(context.Context) (context.Context, func()) {
			heard <- struct{}{}
			return gone, func() {}
		}
		var w *waiting
		w = newWaiting(t, func(run *forerun.Run) (any, error) {
			if w.first() {
				store := &stuck{Store: w.State, asked: make(chan struct{}), answer: make(chan struct{})}
				w.State = store
				_, _ = w.do(run, "SET", "other", "v")
				ask := func() {
					defer close(left)
					_, _, _ = w.Bridge.Do(t.Context(), state.Asker{Activation: run.Activation, Listen: listen}, count)
				}
				claimed := make(map[forerun.Key]*claim)
				if before {
					w.claims.add(0, claimed, keys)
					go ask()
					<-heard
				}
				close(w.goOn)
				<-store.asked
				if !before {
					go ask()
					w.awaitOperation(run)
				}
				leave()
				select {
				case <-left:
				case <-time.After(claimWait): // nobody has noticed that
				}
				w.claims.drop(claimed)
				close(store.answer)
				<-left
			}
			_, err := w.do(run, "INCR", "k")
			return map[string]any{}, err
		})
		if got, tally := w.twice(); got != `{}` || tally.Used != 1 || tally.Squashed != 0 {
			t.Errorf("asked for before: %v: %s, %+v", before, got, tally)
		}
		if got := w.others(t, "GET k"); string(got.Text) != want {
			t.Errorf("asked for before: %v: two invocations have counted to %s, not %s", before, got.Text, want)
		}
	}
}

// awaitOperation returns when an activation has asked for something that is not answered.
func (w *waiting) awaitOperation(run *forerun.Run) {
	e := w.executionOf(run.Activation)
	for asked := false; !asked; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		asked = len(e.operations) > 0
		e.mu.Unlock()
	}
}
