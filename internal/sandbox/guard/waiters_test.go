package guard

import "testing"

// TestWaiters: a call that waits twice is told of until both have ended.
func TestWaiters(t *testing.T) {
	var w waiters
	outer := w.begin(1, func() {})
	inner := w.begin(1, func() {})
	for want, end := range []func(){outer, inner} {
		if got := len(w.list()); got != 2-want {
			t.Errorf("%d wait; want %d", got, 2-want)
		}
		end()
	}
	if got := len(w.list()); got != 0 {
		t.Errorf("%d wait at the end", got)
	}
}
