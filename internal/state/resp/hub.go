package resp

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Hub joins the connections of all servers over one store: it knows who watches records, who waits for
// them, who listens to channels, and where SCANs go on.
type Hub struct {
	now     func() time.Time // what TIME tells
	stop    func()
	parts   atomic.Int64 // entries of watched and waiting; while there is none, changes cost nothing
	blocked atomic.Int64 // connections that wait
	cursors cursors

	channels channels

	mu      sync.Mutex // guards the rest. The store tells of a change while it holds the record: under mu nothing else is called
	watched map[forerun.Key][]*watch
	waiting map[forerun.Key][]*waiter // in the order in which they came
}

// NewHub makes the hub of a store, to which now is the time; nil: time.Now.
func NewHub(store state.Store, now func() time.Time) *Hub {
	if now == nil {
		now = time.Now
	}
	h := &Hub{now: now, watched: make(map[forerun.Key][]*watch), waiting: make(map[forerun.Key][]*waiter)}
	h.cursors.spaces = make(map[string]*positions)
	h.channels.spaces = make(map[string]*listeners)
	h.stop = store.Watch(h.changed)
	return h
}

// Close leaves the store.
func (h *Hub) Close() error {
	h.stop()
	return nil
}

// changed hears of each change of a record.
func (h *Hub) changed(key forerun.Key, _ forerun.Version) {
	if h.parts.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.watched[key] {
		w.touched.Store(true)
	}
	if list := h.waiting[key]; len(list) > 0 {
		list[0].tell(key)
	}
}

// watch is what a connection watches until its next EXEC. Versions alone would not tell of a record that came and went.
type watch struct {
	keys    map[forerun.Key]bool
	expect  []state.Expect
	touched atomic.Bool // a record has changed since
}

// watch adds a record to a watch.
func (h *Hub) watch(w *watch, key forerun.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watched[key] = append(h.watched[key], w)
	h.parts.Add(1)
}

// unwatch ends a watch of a record.
func (h *Hub) unwatch(w *watch, key forerun.Key) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.watched[key]
	i := slices.Index(list, w)
	if i < 0 {
		return
	}
	h.parts.Add(-1)
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		h.watched[key] = list
	} else {
		delete(h.watched, key)
	}
}
