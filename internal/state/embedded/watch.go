package embedded

import (
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// watchers are the functions that want to know of changes.
type watchers struct {
	count atomic.Int64
	mu    sync.RWMutex // guards the rest
	next  int
	funcs map[int]func(forerun.Key, forerun.Version)
}

func (w *watchers) init() { w.funcs = make(map[int]func(forerun.Key, forerun.Version)) }

func (w *watchers) any() bool { return w.count.Load() > 0 }

func (w *watchers) add(f func(forerun.Key, forerun.Version)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.next
	w.next++
	w.funcs[id] = f
	w.count.Add(1)
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.funcs, id)
		w.count.Add(-1)
	})
}

func (w *watchers) tell(keys []forerun.Key, v forerun.Version) {
	if len(keys) == 0 {
		return
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, f := range w.funcs {
		for _, k := range keys {
			f(k, v)
		}
	}
}

// Watch calls f after each change, with the version of the change, while the record is still locked: changes of one
// record come in their order, and f must not call the store.
func (s *Store) Watch(f func(forerun.Key, forerun.Version)) (stop func()) { return s.watch.add(f) }

// Announce calls f before each change, while the record is locked already.
func (s *Store) Announce(f func(forerun.Key)) (stop func()) {
	return s.announce.add(func(k forerun.Key, _ forerun.Version) { f(k) })
}
