package timer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state/embedded"
)

// world is a loop whose time and steps are the test's.
type world struct {
	*testing.T
	timers *registry.Registry
	loop   *Loop

	mu    sync.Mutex // guards the rest
	at    time.Time
	fired []string
	fail  error                      // of the next firing
	hold  map[string]chan struct{}   // by tenant: its firings wait
	begun chan struct{}              // gets a value with each firing that is held
	early func(trigger forerun.Name) // called within a firing
}

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := embedded.Open("data", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, timers: registry.Open(store, registry.DefaultLimits(), nil), at: start, hold: make(map[string]chan struct{}), begun: make(chan struct{}, 100)}
	t.Cleanup(func() {
		w.loop.unwatch()
		w.timers.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, tenant := range []string{"ada", "bob"} {
		if _, err := w.timers.CreateTenant(t.Context(), tenant, registry.Quotas{}); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	return w
}

// restart gives the loop's place to one that a server makes that starts.
func (w *world) restart() {
	w.Helper()
	if w.loop != nil {
		w.loop.unwatch()
	}
	w.loop = NewLoop(w.timers, w.fire, w.now, slog.New(slog.DiscardHandler))
	if err := w.loop.load(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) fire(_ context.Context, f Firing) error {
	w.mu.Lock()
	wait, early := w.hold[f.Trigger.Namespace], w.early
	w.mu.Unlock()
	if wait != nil {
		w.begun <- struct{}{}
		<-wait
	}
	if early != nil {
		early(f.Trigger)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.fail; err != nil {
		w.fail = nil
		return err
	}
	text := f.Trigger.Entity + " " + f.Moment.UTC().Format("15:04:05")
	if !f.First.Equal(f.Moment) {
		text += " since " + f.First.UTC().Format("15:04:05")
	}
	w.fired = append(w.fired, text)
	return nil
}

func name(tenant, trigger string) forerun.Name {
	return forerun.Name{Namespace: tenant, Entity: trigger}
}

// put makes a trigger with a timer.
func (w *world) put(trigger forerun.Name, feed, text string) {
	w.Helper()
	_, err := w.timers.PutEntity(w.Context(), registry.Triggers, trigger, true, func(*registry.Entity) (*registry.Entity, error) {
		return new(registry.Entity), nil
	})
	if err == nil {
		err = w.timers.PutTimer(w.Context(), trigger, func([]byte) ([]byte, error) {
			timer, err := New(feed, settings(w.T, text), w.now())
			if err != nil {
				return nil, err
			}
			return timer.Encode()
		})
	}
	if err != nil {
		w.Fatal(err)
	}
}

// pass lets time pass step by step as the loop asks for it, and wants these firings.
func (w *world) pass(d time.Duration, want ...string) {
	w.Helper()
	for end := w.now().Add(d); ; {
		wait := w.loop.step(w.Context())
		w.loop.serving.Wait()
		if wait = min(wait, w.loop.step(w.Context())); wait <= 0 {
			w.Fatalf("the loop sleeps for %v", wait)
		}
		w.mu.Lock()
		left := end.Sub(w.at)
		w.at = w.at.Add(min(wait, left))
		w.mu.Unlock()
		if left <= 0 {
			break
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.fired)
	slices.Sort(want)
	if !slices.Equal(w.fired, want) {
		w.Fatalf("fired were %q, not %q", w.fired, want)
	}
	w.fired = nil
}

func TestLoop(t *testing.T) {
	w := newWorld(t)
	w.pass(time.Minute)
	w.put(name("ada", "minutely"), Alarm, `{"cron": "* * * * *"}`)
	w.put(name("bob", "once"), Once, `{"date": "2026-11-28T12:03:07Z"}`)
	w.put(name("bob", "twice"), Interval, `{"minutes": 1, "maxTriggers": 2}`)
	w.pass(3*time.Minute+10*time.Second, "minutely 12:02:00", "minutely 12:03:00", "minutely 12:04:00", "once 12:03:07", "twice 12:02:00", "twice 12:03:00")
	w.pass(time.Minute, "minutely 12:05:00")
	if _, err := w.timers.DeleteTrigger(t.Context(), name("ada", "minutely")); err != nil {
		t.Fatal(err)
	}
	w.pass(time.Hour)
	w.put(name("ada", "minutely"), Alarm, `{"cron": "30 13 * * *"}`)
	w.put(name("ada", "minutely"), Alarm, `{"cron": "20,40 13 * * *"}`) // in its place
	w.pass(time.Hour, "minutely 13:20:00", "minutely 13:40:00")
	if err := w.timers.DeleteTimer(t.Context(), name("ada", "minutely")); err != nil {
		t.Fatal(err)
	}
	w.pass(48 * time.Hour)
}

// TestDown: what a server misses that is down is fired once when it starts, and what it has fired is not.
func TestDown(t *testing.T) {
	w := newWorld(t)
	w.put(name("ada", "hourly"), Alarm, `{"cron": "0 * * * *"}`)
	w.put(name("ada", "once"), Once, `{"date": "2026-11-28T15:10:00Z"}`)
	w.put(name("ada", "daily"), Alarm, `{"cron": "0 12 * * *"}`)
	w.pass(time.Hour, "hourly 13:00:00")
	w.restart()
	w.pass(time.Minute)
	w.at = w.at.Add(150 * time.Minute) // 15:31:30
	w.restart()
	w.pass(time.Minute, "hourly 15:00:00 since 14:00:00", "once 15:10:00")
	w.restart()
	w.pass(28*time.Minute, "hourly 16:00:00")
	w.at = w.at.Add(-3 * time.Hour) // the clock of the machine is set back while the server is down
	w.restart()
	w.pass(3 * time.Hour)
	w.pass(time.Hour, "hourly 17:00:00")
}

// TestSuspended: the timers of a suspended tenant wait. What they have missed then is one firing, and the log does not tell of it.
func TestSuspended(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.loop.log = slog.New(slog.NewTextHandler(&log, nil))
	w.put(name("ada", "hourly"), Alarm, `{"cron": "0 * * * *"}`)
	w.pass(time.Hour, "hourly 13:00:00")
	for range 10 {
		w.fail = forerun.Errorf(forerun.Forbidden, "", "The tenant is suspended.")
		w.pass(retryAfter)
	}
	w.mu.Lock()
	w.early = func(forerun.Name) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.fail = forerun.Errorf(forerun.Forbidden, "", "The tenant is suspended.")
	}
	w.mu.Unlock()
	w.pass(3 * time.Hour)
	w.mu.Lock()
	w.early, w.fail = nil, nil
	w.mu.Unlock()
	w.pass(retryAfter, "hourly 16:00:00 since 14:00:00")
	if log.Len() > 0 {
		t.Errorf("logged is %s", log.String())
	}
}

// TestAgain: a firing that fails is tried again, for the same moment; one whose trigger is gone is not.
func TestAgain(t *testing.T) {
	w := newWorld(t)
	w.put(name("ada", "once"), Once, `{"date": "2026-11-28T12:01:00Z"}`)
	w.fail = errors.New("the disk is full")
	w.pass(35 * time.Second)
	w.pass(10*time.Second, "once 12:01:00")
	w.put(name("ada", "hourly"), Alarm, `{"cron": "0 * * * *"}`)
	w.fail = forerun.Errorf(forerun.Unauthorized, "", "The tenant is gone.")
	w.pass(time.Hour)
	w.pass(24 * time.Hour)
	w.restart()
	w.pass(time.Second, "hourly 13:00:00 since 13:00:00") // of the next day
}

// TestChangedMeanwhile: a timer that is changed while it fires is as it was changed.
func TestChangedMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.put(name("ada", "t"), Alarm, `{"cron": "0 * * * *"}`)
	w.early = func(trigger forerun.Name) {
		w.early = nil
		w.put(trigger, Alarm, `{"cron": "30 * * * *"}`)
	}
	w.pass(2*time.Hour, "t 13:00:00", "t 13:30:00")
}

// TestTenants: a tenant whose firings take long delays its own, which become one, and no other's.
func TestTenants(t *testing.T) {
	w := newWorld(t)
	w.put(name("ada", "first"), Alarm, `{"cron": "50 * * * * *"}`)
	for i := range 2 {
		w.put(name("ada", fmt.Sprint("a", i)), Alarm, `{"cron": "* * * * *"}`)
	}
	w.put(name("bob", "b"), Alarm, `{"cron": "* * * * *"}`)
	gate := make(chan struct{})
	w.hold["ada"] = gate
	for round := range 5 {
		w.mu.Lock()
		w.at = w.at.Add(time.Minute)
		w.mu.Unlock()
		w.loop.step(t.Context())
		if round == 0 {
			<-w.begun // ada's first
		}
		for { // until bob's next moment is noted
			_, timer, err := w.loop.read(t.Context(), name("bob", "b"))
			if err != nil {
				t.Fatal(err)
			}
			if timer.Next > w.now().UnixMilli() {
				break
			}
			runtime.Gosched()
		}
	}
	w.mu.Lock()
	if got := strings.Join(w.fired, ", "); got != "b 12:01:00, b 12:02:00, b 12:03:00, b 12:04:00, b 12:05:00" {
		t.Errorf("fired were %s", got)
	}
	w.fired = nil
	w.mu.Unlock()
	if len(w.begun) > 0 {
		t.Error("two firings of one tenant are under way")
	}
	close(gate)
	w.pass(time.Second, "first 12:00:50", "first 12:04:50 since 12:01:50", "a0 12:05:00 since 12:01:00", "a1 12:05:00 since 12:01:00")
}

// TestRun: the loop wakes up by itself, and ends.
func TestRun(t *testing.T) {
	w := newWorld(t)
	w.loop.unwatch()
	w.loop = NewLoop(w.timers, w.fire, time.Now, slog.New(slog.DiscardHandler))
	gate := make(chan struct{})
	w.hold["ada"] = gate
	if err := w.loop.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.at = time.Now()
	w.put(name("ada", "each"), Alarm, `{"cron": "* * * * * *"}`)
	for range 3 {
		<-w.begun
		gate <- struct{}{}
	}
	close(gate)
	if err := w.loop.Close(); err != nil {
		t.Fatal(err)
	}
}
