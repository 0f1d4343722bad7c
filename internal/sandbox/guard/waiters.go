package guard

import (
	"maps"
	"slices"
	"sync"
)

// waiters are the connects that are executed, or wait for the other side or at the gate. One may be several of them.
type waiters struct {
	mu  sync.Mutex // guards all
	all map[*waiter]bool
}

type waiter struct {
	id   uint64
	wake func() // has it look for its caller
	done chan struct{}
}

// begin notes a waiting connect; the returned function ends it.
func (w *waiters) begin(id uint64, wake func()) (end func()) {
	one := &waiter{id: id, wake: wake, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*waiter]bool{}
	}
	w.all[one] = true
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, one)
		close(one.done)
	}
}

// signal has one look that waits for a channel with room for one.
func signal(one chan<- struct{}) {
	select {
	case one <- struct{}{}:
	default: // it has yet to look
	}
}

func (w *waiters) list() []*waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.all))
}
