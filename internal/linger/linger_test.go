package linger

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestGoroutines: tasks run at once, whatever others do; a goroutine that has ended its task takes the next, and ends after a while.
func TestGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		g := New(nil)
		var met sync.WaitGroup
		met.Add(3)
		for range 3 {
			g.Go(func() { met.Done(); met.Wait() }) // each waits for the others
		}
		synctest.Wait()
		for range 100 {
			g.Go(func() {})
			synctest.Wait()
		}
		if n := runtime.NumGoroutine() - before; n != 3 {
			t.Errorf("%d goroutines for three tasks at once, and then one at a time", n)
		}
		time.Sleep(2 * wait)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n != 0 {
			t.Errorf("%d goroutines stay", n)
		}
	})
}

// TestFewLinger: of many tasks at once not all goroutines stay.
func TestFewLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := runtime.NumGoroutine()
		g := New(nil)
		end := make(chan struct{})
		for range g.most + 10 {
			g.Go(func() { <-end })
		}
		close(end)
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n != int(g.most) {
			t.Errorf("%d goroutines stay, not %d", n, g.most)
		}
		time.Sleep(2 * wait)
	})
}

// TestDone: who lingers ends with what it serves, and tasks are run all the same.
func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, done := runtime.NumGoroutine(), make(chan struct{})
		g := New(done)
		g.Go(func() {})
		synctest.Wait()
		close(done)
		ran := false
		g.Go(func() { ran = true })
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n != 0 || !ran {
			t.Errorf("%d goroutines stay; the last task was run: %v", n, ran)
		}
	})
}
