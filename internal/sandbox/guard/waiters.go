package guard

import "sync"

// waiters are the connects that wait for the other side, or at the gate.
type waiters struct {
	mu  sync.Mutex // guards all
	all map[uint64]waiter
}

type waiter struct {
	id   uint64
	wake func() // has it look for its caller
	done chan struct{}
}

// begin notes a waiting connect; the returned function ends it.
func (w *waiters) begin(id uint64, wake func()) (end func()) {
	one := waiter{id: id, wake: wake, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[uint64]waiter{}
	}
	w.all[id] = one
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, id)
		close(one.done)
	}
}

func (w *waiters) list() []waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]waiter, 0, len(w.all))
	for _, one := range w.all {
		out = append(out, one)
	}
	return out
}
