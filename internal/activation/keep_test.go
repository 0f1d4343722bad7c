package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

// keeperOf returns a log and a keeper of it, to whom it is as many hours into the day as *hours says.
func keeperOf(t *testing.T, keep Retention) (l *Log, k *Keeper, hours *float64) {
	t.Helper()
	return keeperWith(t, keep, state.Allowance{Bytes: -1})
}

// keeperWith is keeperOf where each tenant may store so much.
func keeperWith(t *testing.T, keep Retention, allowed state.Allowance) (l *Log, k *Keeper, hours *float64) {
	t.Helper()
	owner := func(space, name []byte) ([]byte, state.Part) {
		tenant, part, _ := Owner(space, name)
		return tenant, part
	}
	store, err := embedded.Open("activations", embedded.Options{FS: vfs.NewMem(), Stored: embedded.Accounting{
		Owner: owner, Allowed: func(string) state.Allowance { return allowed },
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	hours = new(float64)
	now := func() time.Time { return day.Add(time.Duration(*hours * float64(time.Hour))) }
	return Open(store, false), NewKeeper(store, keep, now, slog.New(slog.NewTextHandler(t.Output(), nil))), hours
}

// hourly makes the record of an activation that was queued n hours into the day; its id ends in n.
func hourly(n int, namespace, action string) *forerun.Activation {
	r := record(n, namespace, action)
	r.Start = day.Add(time.Duration(n)*time.Hour + time.Millisecond)
	r.ID = firstID(r.Start)[:12] + forerun.ActivationID(fmt.Sprintf("%020x", n))
	return r
}

// remaining lists the numbers of the records that are listed, and fails if other lists or the records themselves differ.
func remaining(t *testing.T, l *Log, namespace string, names ...string) string {
	t.Helper()
	records := whole(t, l, namespace, Query{Limit: 1000})
	short := make([]*forerun.Activation, len(records))
	for i, r := range records {
		c := *r
		c.ID = "000000000000" + r.ID[12:]
		short[i] = &c
	}
	named := 0
	for _, name := range names {
		n, err := l.Count(t.Context(), namespace, Query{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		named += n
	}
	stored := 0
	for _, err := range l.store.Scan(t.Context(), state.Range{Space: space, From: "id/" + namespace + "/", To: "id/" + namespace + "0"}) {
		if stored++; err != nil {
			t.Fatal(err)
		}
	}
	if named != len(records) || stored != len(records) {
		t.Errorf("of %s %d are listed by time, %d by name, %d are stored", namespace, len(records), named, stored)
	}
	return numbers(t, short)
}

func TestKeepByAge(t *testing.T) {
	l, k, hours := keeperOf(t, Retention{Age: 5 * time.Hour})
	for n := range 10 {
		put(t, l, hourly(n, "guest", []string{"a", "p/a"}[n%2]), hourly(n, "guest2", "a"))
	}
	for _, step := range []struct {
		hours float64
		want  string
	}{
		{4, "9 8 7 6 5 4 3 2 1 0"},
		{5.01, "9 8 7 6 5 4 3 2 1 0"}, // too few to begin
		{7.5, "9 8 7 6 5 4 3"},
		{3, "9 8 7 6 5 4 3"}, // a clock that was put back
		{7.5, "9 8 7 6 5 4 3"},
		{13.5, "9"},
		{100, ""},
		{101, ""},
	} {
		*hours = step.hours
		if err := k.trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		for namespace, names := range map[string][]string{"guest": {"a", "p/a"}, "guest2": {"a"}} {
			if got := remaining(t, l, namespace, names...); got != step.want {
				t.Errorf("after %v hours %s has %q, want %q", step.hours, namespace, got, step.want)
			}
		}
	}
	*hours = 1000
	put(t, l, hourly(999, "guest", "a"))
	if err := k.trim(t.Context()); err != nil || remaining(t, l, "guest", "a") != "999" {
		t.Errorf("a new one: %v", err)
	}
}

// TestKeepLeavesTheRest: what is no record has a life of its own.
func TestKeepLeavesTheRest(t *testing.T) {
	l, k, hours := keeperOf(t, Retention{Age: time.Hour, Bytes: 1})
	a := hourly(0, "guest", "a")
	o := &Once{Namespace: "guest", Action: a.Action, Key: "k"}
	if _, err := l.AcceptOnce(t.Context(), a, o); err != nil {
		t.Fatal(err)
	}
	put(t, l, hourly(0, "guest", "b"))
	*hours = 100
	if err := k.trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if id, err := l.FindOnce(t.Context(), o); id != a.ID || err != nil {
		t.Errorf("the key is forgotten: %s, %v", id, err)
	}
	if n, err := l.Recover(t.Context(), func(*forerun.Activation) {}); n != 1 || err != nil {
		t.Errorf("%d accepted ones are left, %v", n, err)
	}
}

// TestKeepByBytes gives a namespace more than it may keep; another has less.
func TestKeepByBytes(t *testing.T) {
	testKeepByBytes(t, Retention{Bytes: 6 << 20}, state.Allowance{Bytes: -1})
}

// TestKeepByQuota: records take a quarter of what a tenant may store, whatever may be kept.
func TestKeepByQuota(t *testing.T) {
	testKeepByBytes(t, Retention{}, state.Allowance{Bytes: 4 * 12 << 20}) // the noise of the records is written in hex, which is compressed
}

func testKeepByBytes(t *testing.T, keep Retention, allowed state.Allowance) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 6 << 20
		l, k, hours := keeperWith(t, keep, allowed)
		noise, chance := make([]byte, 1<<18), rand.NewChaCha8([32]byte{})
		for n := range 40 {
			_, _ = chance.Read(noise)
			r := hourly(n, "guest", []string{"a", "b"}[n%2])
			r.Result, _ = json.Marshal(map[string]string{"x": fmt.Sprintf("%x", noise)}) // half a megabyte
			put(t, l, r)
		}
		put(t, l, hourly(0, "other", "a"))
		*hours = 40
		synctest.Wait() // until Pebble has written its tables
		for range 2 {
			if err := k.trim(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		n, err := l.Count(t.Context(), "guest", Query{})
		if err != nil || n < 8 || n > 10+16 { // 16 may not be on disk yet
			t.Errorf("%d records are left, %v", n, err)
		}
		size, err := k.since(t.Context(), "guest", day.Add(time.Duration(40-n)*time.Hour))
		if err != nil || size > limit {
			t.Errorf("they take %d bytes, %v", size, err)
		}
		remaining(t, l, "guest", "a", "b")
		if got := remaining(t, l, "other", "a"); got != "0" {
			t.Errorf("the other has %q", got)
		}
	})
}

// TestKeeperRuns until it is told to end.
func TestKeeperRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, k, hours := keeperOf(t, Retention{Age: time.Hour})
		put(t, l, hourly(0, "guest", "a"))
		*hours = 9
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			k.Run(ctx)
			close(ended)
		}()
		time.Sleep(2 * keepInterval)
		if got := remaining(t, l, "guest", "a"); got != "" {
			t.Errorf("%q is left", got)
		}
		cancel()
		<-ended
	})
}
