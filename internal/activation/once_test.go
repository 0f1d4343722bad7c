package activation

import (
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

func TestOnce(t *testing.T) {
	now := day
	store, err := embedded.Open("activations", embedded.Options{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	l := Open(store, false)
	first, second := record(1, "guest", "a"), record(2, "guest", "a")
	o := &Once{Namespace: "guest", Action: first.Action, Key: "k/\x00", Payload: [32]byte{1}}
	if id, err := l.FindOnce(t.Context(), o); id != "" || err != nil {
		t.Errorf("at first: %s, %v", id, err)
	}
	for _, a := range []*forerun.Activation{first, second} {
		if id, err := l.AcceptOnce(t.Context(), a, o); id != first.ID || err != nil {
			t.Errorf("accepted %s, %v; want %s", id, err, first.ID)
		}
	}
	if id, err := l.FindOnce(t.Context(), o); id != first.ID || err != nil {
		t.Errorf("found %s, %v", id, err)
	}
	changed := *o
	changed.Payload[0] = 2
	if _, err := l.FindOnce(t.Context(), &changed); forerun.KindOf(err) != forerun.Unprocessable {
		t.Errorf("another payload: %v", err)
	}
	if _, err := l.AcceptOnce(t.Context(), second, &changed); forerun.KindOf(err) != forerun.Unprocessable {
		t.Errorf("another payload: %v", err)
	}
	for _, other := range []*Once{{Namespace: "guest2", Action: o.Action, Key: o.Key}, {Namespace: "guest", Action: record(1, "guest", "b").Action, Key: o.Key}, {Namespace: "guest", Action: o.Action, Key: "k"}} {
		if id, err := l.FindOnce(t.Context(), other); id != "" || err != nil {
			t.Errorf("%+v is found: %s, %v", other, id, err)
		}
	}
	if n, err := l.Recover(t.Context(), func(a *forerun.Activation) { a.Status = forerun.InternalError }); n != 1 || err != nil {
		t.Errorf("%d recovered, %v", n, err)
	}
	now = now.Add(OnceFor + time.Second)
	if id, err := l.FindOnce(t.Context(), o); id != "" || err != nil {
		t.Errorf("after a day: %s, %v", id, err)
	}
	if id, err := l.AcceptOnce(t.Context(), second, o); id != second.ID || err != nil {
		t.Errorf("after a day accepted %s, %v", id, err)
	}
	if err := l.Erase(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if id, err := l.FindOnce(t.Context(), o); id != "" || err != nil {
		t.Errorf("erased: %s, %v", id, err)
	}
}

// TestOnceIsOfTheQuota: idempotency keys count among what a tenant stores, and a tenant that may store no more gets no further ones.
func TestOnceIsOfTheQuota(t *testing.T) {
	l, k, _ := keeperWith(t, Retention{}, state.Allowance{Bytes: 4000})
	put(t, l, hourly(1, "guest", "a"))
	accepted := 0
	var refusal error
	for n := 2; refusal == nil && n < 1000; n++ {
		a := hourly(n, "guest", "a")
		_, refusal = l.AcceptOnce(t.Context(), a, &Once{Namespace: "guest", Action: a.Action, Key: string(a.ID)})
		accepted++
	}
	stored, most := k.store.Stored("guest")
	if forerun.KindOf(refusal) != forerun.OverQuota || stored[state.Keys] < 1000 || stored.Total() > most {
		t.Errorf("after %d: %v; stored: %v", accepted, refusal, stored)
	}
	if err := k.trim(t.Context()); err != nil || remaining(t, l, "guest", "a") != "1" {
		t.Errorf("the keys have pushed out the record (%v)", err)
	}
	if err := l.Erase(t.Context(), "guest"); err != nil {
		t.Fatal(err)
	}
	if stored, _ := k.store.Stored("guest"); stored != (state.Stored{}) {
		t.Errorf("when all is erased, %v is stored", stored)
	}
}
