package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func putTrigger(t *testing.T, r *Registry, trigger forerun.Name) {
	t.Helper()
	_, err := r.PutEntity(t.Context(), Triggers, trigger, true, func(*Entity) (*Entity, error) { return new(Entity), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func putTimer(ctx context.Context, r *Registry, trigger forerun.Name, data string) error {
	return r.PutTimer(ctx, trigger, func(old []byte) ([]byte, error) { return append(slices.Clone(old), data...), nil })
}

// timers lists what is stored.
func timers(t *testing.T, r *Registry) string {
	t.Helper()
	var all []string
	for timer, err := range r.Timers(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, timer.Trigger.String()+"="+string(timer.Data))
	}
	return strings.Join(all, " ")
}

func TestTimers(t *testing.T) {
	r, _ := open(t)
	if _, err := r.CreateTenant(t.Context(), "guest", Quotas{}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	told := make(map[string]int)
	defer r.WatchTimers(func(trigger forerun.Name) {
		mu.Lock()
		defer mu.Unlock()
		told[trigger.Entity]++
	})()
	one, two := name("one"), name("two")
	if err := putTimer(t.Context(), r, one, "x"); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("a timer without a trigger: %v", err)
	}
	putTrigger(t, r, one)
	putTrigger(t, r, two)
	for _, trigger := range []forerun.Name{one, one, two} {
		if err := putTimer(t.Context(), r, trigger, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if got := timers(t, r); got != "/guest/one=xx /guest/two=x" {
		t.Errorf("there are %s", got)
	}
	found, err := r.Timer(t.Context(), one)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := r.AdvanceTimer(t.Context(), found, []byte("y")); err != nil || !done {
		t.Error(done, err)
	}
	if done, err := r.AdvanceTimer(t.Context(), found, []byte("z")); err != nil || done {
		t.Errorf("a timer that had changed: %v, %v", done, err)
	}
	if _, err := r.DeleteTrigger(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	putTrigger(t, r, one) // has none
	if err := r.DeleteTimer(t.Context(), two); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Timer(t.Context(), one); forerun.KindOf(err) != forerun.NotFound {
		t.Error(err)
	}
	if got := timers(t, r); got != "" {
		t.Errorf("there are %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if told["one"] != 4 || told["two"] != 2 {
		t.Errorf("told was %v", told)
	}
}

// TestTimedTriggers: no tenant has more timers than it may, however many it makes at a time.
func TestTimedTriggers(t *testing.T) {
	r, _ := open(t)
	few := 3
	if _, err := r.CreateTenant(t.Context(), "guest", Quotas{TimedTriggers: &few}); err != nil {
		t.Fatal(err)
	}
	var making sync.WaitGroup
	errs := make(chan error, 10)
	for i := range cap(errs) {
		trigger := name(fmt.Sprint("t", i))
		putTrigger(t, r, trigger)
		making.Go(func() { errs <- putTimer(t.Context(), r, trigger, "x") })
	}
	making.Wait()
	close(errs)
	refused := 0
	for err := range errs {
		if err != nil && strings.Contains(err.Error(), "Too many triggers have a timer (count: 4, allowed: 3)") {
			refused++
		}
	}
	if got := strings.Count(timers(t, r), "="); got > few || refused == 0 {
		t.Errorf("there are %d; %d were refused", got, refused)
	}
}
