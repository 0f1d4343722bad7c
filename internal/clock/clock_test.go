package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// settable is a machine's clock that somebody sets.
type settable struct {
	mu  sync.Mutex // guards off
	off time.Duration
}

func (s *settable) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Add(s.off)
}

func (s *settable) set(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off += d
}

func TestEven(t *testing.T) {
	for name, jump := range map[string]time.Duration{"back": -time.Hour, "forward": time.Hour, "a year": 365 * 24 * time.Hour, "a little": -time.Millisecond, "not": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var machine settable
				c := New(machine.now)
				time.Sleep(time.Minute)
				last := c.Now()
				if !last.Equal(time.Now()) {
					t.Fatalf("it tells %v at %v", last, time.Now())
				}
				machine.set(jump)
				if now := c.Now(); !now.Equal(last) {
					t.Errorf("it jumped from %v to %v", last, now)
				}
				for range 100 {
					time.Sleep(time.Second)
					now := c.Now()
					if passed := now.Sub(last); passed < 900*time.Millisecond || passed > 1100*time.Millisecond {
						t.Fatalf("in a second passed %v", passed)
					}
					last = now
				}
				for range 24 * 60 {
					time.Sleep(time.Minute)
					c.Now()
				}
				if now := c.Now(); jump <= time.Hour && !now.Equal(machine.now().Round(0)) {
					t.Errorf("a day later it tells %v, not %v", now, machine.now())
				}
			})
		})
	}
}

// TestDate: moments keep their order and their distances, whatever was done to the clock between them.
func TestDate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var machine settable
		c := New(machine.now)
		first := time.Now()
		time.Sleep(time.Second)
		machine.set(-time.Hour)
		second, began, none := time.Now(), first, time.Time{}
		c.Date(&first, &second, &none)
		if d := second.Sub(first); d != time.Second {
			t.Errorf("a second apart, they are told to be %v apart", d)
		}
		if d := first.Sub(began); d.Abs() > 200*time.Millisecond {
			t.Errorf("it is %v wrong", d)
		}
		if !none.IsZero() {
			t.Error("what is not known has a time")
		}
	})
}

// TestDateWhileInterrupted: who is kept from the processors while it reads the clocks does not take moments for earlier than they were.
func TestDateWhileInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var interrupted time.Duration
		c := New(func() time.Time {
			time.Sleep(interrupted)
			return time.Now()
		})
		time.Sleep(time.Second)
		c.Now()
		interrupted = 50 * time.Millisecond
		moment := time.Now()
		told := moment
		c.Date(&told)
		if !told.Equal(moment) {
			t.Errorf("it is told to be %v later", told.Sub(moment))
		}
	})
}

func TestTogether(t *testing.T) {
	c := New(nil)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := c.Now()
			for range 1000 {
				now := c.Now()
				if now.Before(last) {
					t.Errorf("%v comes after %v", now, last)
				}
				last = now
			}
		})
	}
	all.Wait()
	if d := time.Until(c.Now()); d.Abs() > time.Second {
		t.Errorf("it is %v wrong", d)
	}
}

func BenchmarkNow(b *testing.B) {
	c := New(nil)
	for b.Loop() {
		c.Now()
	}
}
