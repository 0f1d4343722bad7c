package gateway

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

func newQuotas(t testing.TB, q registry.Quotas) *Quotas {
	t.Helper()
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	tenants := registry.Open(store, registry.DefaultLimits(), nil)
	t.Cleanup(func() {
		tenants.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for name, q := range map[string]registry.Quotas{"ada": q, "bob": {}} {
		if _, err := tenants.CreateTenant(t.Context(), name, q); err != nil {
			t.Fatal(err)
		}
	}
	return NewQuotas(tenants, nil, nil)
}

func refused(t *testing.T, err error, message, after string) {
	t.Helper()
	stop, ok := errors.AsType[*throttled](err)
	if !ok || forerun.KindOf(err) != forerun.TooMany || err.Error() != message || stop.after != after {
		t.Errorf("%v, want %s, after %s s", err, message, after)
	}
}

func TestRate(t *testing.T) {
	two, one := 2, 1
	q := newQuotas(t, registry.Quotas{InvocationsPerMinute: &two, FiresPerMinute: &one})
	now := time.Unix(1_000_000_060, 0) // 20 s before the minute ends
	q.now = func() time.Time { return now }
	for range 2 {
		f, err := q.Invocation(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		f.Land() // the minute counts what has ended
	}
	_, err := q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many requests in the last minute (count: 3, allowed: 2).", "20")
	_, err = q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many requests in the last minute (count: 4, allowed: 2).", "20")
	if err := q.Fire(t.Context(), "ada"); err != nil {
		t.Errorf("triggers count apart: %v", err)
	}
	refused(t, q.Fire(t.Context(), "ada"), "Too many requests in the last minute (count: 2, allowed: 1).", "20")
	if _, err := q.Invocation(t.Context(), "bob"); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	now = now.Add(20 * time.Second)
	for range 3 * two { // what never was does not count
		f, err := q.Invocation(t.Context(), "ada")
		if err != nil {
			t.Fatalf("the next minute: %v", err)
		}
		f.Undo()
	}
	f, err := q.Invocation(t.Context(), "ada")
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	if _, err := q.Invocation(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	f.Undo() // of a minute that is over
	if _, err := q.Invocation(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	_, err = q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many requests in the last minute (count: 3, allowed: 2).", "60")
	if _, err := q.Invocation(t.Context(), "nobody"); forerun.KindOf(err) != forerun.Unauthorized {
		t.Errorf("nobody: %v", err)
	}
}

func TestQueue(t *testing.T) {
	five := 5
	q := newQuotas(t, registry.Quotas{QueuedInvocations: &five})
	waiting := map[string]int{"ada": 4, "bob": 100}
	q.waiting = func(namespace string) int { return waiting[namespace] }
	if _, err := q.Invocation(t.Context(), "ada"); err != nil {
		t.Errorf("with four that wait: %v", err)
	}
	waiting["ada"] = 5
	_, err := q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many requests wait for a sandbox (count: 5, allowed: 5).", "1")
	if _, err := q.Invocation(t.Context(), "bob"); err != nil {
		t.Errorf("another tenant, which may have more: %v", err)
	}
}

func TestConcurrency(t *testing.T) {
	ten := 10
	q := newQuotas(t, registry.Quotas{ConcurrentInvocations: &ten})
	var flights []*Flight
	for range ten {
		f, err := q.Invocation(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		flights = append(flights, f)
	}
	_, err := q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many concurrent requests in flight (count: 10, allowed: 10).", "1")
	for _, f := range flights {
		f.Land()
	}
	var admitted atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := q.Invocation(t.Context(), "ada"); err == nil {
				admitted.Add(1)
			} else if !strings.Contains(err.Error(), "concurrent") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if admitted.Load() != 10 {
		t.Errorf("%d of 100 at once were admitted, not 10", admitted.Load())
	}
}

// TestAhead: what runs ahead takes no room from those whose turn it is, and counts when its own turn has come.
func TestAhead(t *testing.T) {
	two, five := 2, 5
	q := newQuotas(t, registry.Quotas{ConcurrentInvocations: &two, InvocationsPerMinute: &five})
	now := time.Unix(1_000_000_060, 0)
	q.now = func() time.Time { return now }
	admit := func(count func(context.Context, string) (*Flight, error)) *Flight {
		t.Helper()
		f, err := count(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	ahead := []*Flight{admit(q.Ahead), admit(q.Ahead)}
	if _, err := q.Ahead(t.Context(), "ada"); forerun.KindOf(err) != forerun.TooMany {
		t.Errorf("a third ahead: %v", err)
	}
	heads := []*Flight{admit(q.Invocation), admit(q.Invocation)}
	ahead[0].Begin()
	ahead[0].Begin()
	_, err := q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many concurrent requests in flight (count: 3, allowed: 2).", "1")
	for _, f := range append(heads, ahead[0]) {
		f.Land()
	}
	ahead[1].Undo() // four are counted in the minute: three, and one that was refused
	admit(q.Ahead).Land()
	if _, err := q.Ahead(t.Context(), "ada"); forerun.KindOf(err) != forerun.TooMany {
		t.Errorf("one more ahead than the minute has room for: %v", err)
	}
	_, err = q.Invocation(t.Context(), "ada")
	refused(t, err, "Too many requests in the last minute (count: 6, allowed: 5).", "20")
	if m := q.meter("ada"); m.ahead.Load() != 0 || m.flying.Load() != 0 {
		t.Errorf("%d are ahead, %d fly", m.ahead.Load(), m.flying.Load())
	}
}

// TestMinutesChange counts across many minutes at once: none is lost within one.
func TestMinutesChange(t *testing.T) {
	var w window
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				w.add(7)
			}
		})
	}
	all.Wait()
	if n := w.add(7); n != 8001 {
		t.Errorf("the count is %d", n)
	}
	if n := w.add(8); n != 1 {
		t.Errorf("the next minute begins with %d", n)
	}
}

// BenchmarkAdmission is what each invocation pays for quotas.
func BenchmarkAdmission(b *testing.B) {
	million := 1 << 30
	q := newQuotas(b, registry.Quotas{InvocationsPerMinute: &million})
	for b.Loop() {
		f, err := q.Invocation(b.Context(), "ada")
		if err != nil {
			b.Fatal(err)
		}
		f.Land()
	}
}
