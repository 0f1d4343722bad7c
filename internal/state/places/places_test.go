package places

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// world is places whose time is the test's.
type world struct {
	*testing.T
	places *Places
	mu     sync.Mutex // guards got
	got    []string   // names of turns, as they get places
}

// long has a turn do work that needs a place, in a goroutine of its own.
func (w *world) long(ctx context.Context, tenant, name string) (t *Turn, ended chan error) {
	t, ended = w.places.Turn(), make(chan error, 1)
	go func() {
		err := t.Work(ctx, tenant, 100*Step)
		if err == nil {
			w.mu.Lock()
			w.got = append(w.got, name)
			w.mu.Unlock()
		}
		ended <- err
	}()
	synctest.Wait()
	return t, ended
}

func (w *world) want(names ...string) {
	w.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Equal(w.got, names) {
		w.Errorf("places got %q, not %q", w.got, names)
	}
}

// test has f run with so many places, of which all must be free in the end.
func test(t *testing.T, n int, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, places: New(n)}
		time.Sleep(time.Second)
		f(w)
		w.places.mu.Lock()
		defer w.places.mu.Unlock()
		if w.places.free != n || w.places.waits.Load() != 0 || len(w.places.tenants) != 0 {
			t.Errorf("in the end %d of %d places are free and %d turns wait", w.places.free, n, w.places.waits.Load())
		}
	})
}

// TestTenantsInTurn: a tenant with many turns gets a place as often as one with one, and its own turns get them in their order.
func TestTenantsInTurn(t *testing.T) {
	test(t, 1, func(w *world) {
		var turns []*Turn
		for _, name := range []string{"ada 1", "ada 2", "ada 3", "ada 4", "bob 1"} {
			turn, _ := w.long(w.Context(), name[:3], name)
			turns = append(turns, turn)
		}
		w.want("ada 1")
		turns[0].Leave()
		turns[0].Leave() // which it may do more than once
		w.want("ada 1", "ada 2")
		turns[1].Leave()
		w.want("ada 1", "ada 2", "bob 1")
		turns[4].Leave()
		w.want("ada 1", "ada 2", "bob 1", "ada 3")
		turns[2].Leave()
		turns[3].Leave()
		w.want("ada 1", "ada 2", "bob 1", "ada 3", "ada 4")
	})
}

// TestSlice: one who works on hands the place on after a slice if others wait, and then waits behind them.
func TestSlice(t *testing.T) {
	test(t, 1, func(w *world) {
		ada, _ := w.long(w.Context(), "ada", "ada")
		for range 10 { // alone
			time.Sleep(slice)
			if err := ada.Work(w.Context(), "ada", Step); err != nil {
				w.Fatal(err)
			}
		}
		bob, _ := w.long(w.Context(), "bob", "bob")
		if err := ada.Work(w.Context(), "ada", Step); err != nil {
			w.Fatal(err)
		}
		w.want("ada")
		time.Sleep(slice)
		back := make(chan error)
		go func() { back <- ada.Work(w.Context(), "ada", Step) }()
		w.want("ada", "bob")
		bob.Leave()
		if err := <-back; err != nil {
			w.Fatal(err)
		}
		ada.Leave()
	})
}

// TestShortAndLight: short work, and work with pauses, waits for no place.
func TestShortAndLight(t *testing.T) {
	test(t, 1, func(w *world) {
		ada, _ := w.long(w.Context(), "ada", "ada")
		bob := w.places.Turn()
		for range 100 {
			if err := bob.Work(w.Context(), "bob", Step); err != nil {
				w.Fatal(err)
			}
			time.Sleep(2 * light)
		}
		bob.Leave()
		ada.Leave()
	})
	test(t, 1, func(w *world) {
		ada, _ := w.long(w.Context(), "ada", "ada")
		bob := w.places.Turn()
		done := make(chan error, 1)
		go func() {
			err := bob.Work(w.Context(), "bob", Step)
			done <- errors.Join(err, bob.Work(w.Context(), "bob", Step)) // without a pause
		}()
		synctest.Wait()
		if w.places.waits.Load() != 1 {
			w.Errorf("%d turns wait", w.places.waits.Load())
		}
		ada.Leave()
		if err := <-done; err != nil {
			w.Error(err)
		}
		bob.Leave()
	})
}

// TestHolderThatWaits: a holder that waits itself, even for one who waits for its place, keeps the others for a while only.
func TestHolderThatWaits(t *testing.T) {
	test(t, 1, func(w *world) {
		ada, _ := w.long(w.Context(), "ada", "ada")
		bob, _ := w.long(w.Context(), "bob", "bob")
		eve, _ := w.long(w.Context(), "eve", "eve")
		time.Sleep(stalled - time.Millisecond)
		w.want("ada")
		time.Sleep(2 * time.Millisecond)
		w.want("ada", "bob")
		bob.Leave() // which frees none: there was none for it
		w.want("ada", "bob")
		time.Sleep(2 * stalled)
		w.want("ada", "bob", "eve")
		eve.Leave()
		ada.Leave()
	})
}

// TestLeftWhileItWaits: one whose context ends waits no longer, and keeps no place.
func TestLeftWhileItWaits(t *testing.T) {
	test(t, 1, func(w *world) {
		ada, _ := w.long(w.Context(), "ada", "ada")
		gone, leave := context.WithCancel(w.Context())
		_, ended := w.long(gone, "bob", "bob")
		eve, _ := w.long(w.Context(), "eve", "eve")
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			w.Errorf("it ends with %v", err)
		}
		ada.Leave()
		w.want("ada", "eve")
		eve.Leave()
	})
}
