package resp

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
	"forerun.dev/forerun/internal/state/places"
)

// Hub joins the connections of all servers over one store: it knows who watches records, who waits for
// them, who listens to channels, and where SCANs go on. What it knows of one space keeps no other's connections waiting.
type Hub struct {
	store  state.Store
	places *places.Places   // the store's
	now    func() time.Time // what TIME tells
	stop   func()
	spaces sync.Map // of *space by their names: of all that were used
}

// space is what the connections of one key space share.
type space struct {
	conns   atomic.Int64
	lastID  atomic.Int64 // of a connection
	parts   atomic.Int64 // entries of watched and waiting; while there is none, changes cost nothing
	blocked atomic.Int64 // connections that wait, or look for the first time whether they have to
	asleep  atomic.Int64 // those that are blocked

	clients   clients
	positions positions
	channels  channels
	scripts   scripts
	kindOf    func(forerun.Key) state.Type // of a record, as it is in the store

	round int // of serving; its goroutine's

	mu         sync.Mutex // guards the rest. The store tells of a change while it holds the record: under mu nothing else is called
	watched    map[forerun.Key][]*watch
	tracked    map[forerun.Key][]*tracker
	broadcasts []*tracker
	waiting    map[forerun.Key][]*waiter // in the order in which they came
	ready      []*readyRecord            // in the order in which they became so
	readyAt    map[forerun.Key]*readyRecord
	serving    *readyRecord // which is not among those
	serves     bool         // a goroutine does
}

// NewHub makes the hub of a store, to which now is the time; nil: time.Now.
func NewHub(store state.Store, now func() time.Time) *Hub {
	if now == nil {
		now = time.Now
	}
	h := &Hub{store: store, now: now}
	if its, ok := store.(interface{ Places() *places.Places }); ok {
		h.places = its.Places()
	} else {
		h.places = places.New(0)
	}
	h.stop = store.Watch(h.changed)
	return h
}

// kindOf is the type of a record; one that cannot be read is absent.
func (h *Hub) kindOf(key forerun.Key) state.Type {
	args := [][]byte{[]byte("TYPE"), []byte(key.Name)}
	reply, _, err := h.store.Do(context.Background(), state.Command{Space: key.Space, Args: args})
	if err != nil {
		return state.Absent
	}
	return command.TypeNamed(reply.Text)
}

func newSpace(kindOf func(forerun.Key) state.Type) *space {
	return &space{
		kindOf:    kindOf,
		positions: positions{first: 1},
		channels:  channels{named: make(map[string][]*subscriber), patterns: make(map[string][]*subscriber)},
		watched:   make(map[forerun.Key][]*watch), waiting: make(map[forerun.Key][]*waiter),
		tracked: make(map[forerun.Key][]*tracker),
		readyAt: make(map[forerun.Key]*readyRecord),
	}
}

// Close leaves the store.
func (h *Hub) Close() error {
	h.stop()
	return nil
}

// space is that of a name.
func (h *Hub) space(name string) *space {
	s, ok := h.spaces.Load(name)
	if !ok {
		s, _ = h.spaces.LoadOrStore(name, newSpace(h.kindOf))
	}
	return s.(*space)
}

// Erase forgets where SCANs of a space go on: those are names of its records, which are gone.
func (h *Hub) Erase(name string) {
	if s, ok := h.spaces.Load(name); ok {
		s.(*space).positions.erase()
	}
}

// IsAwaited reports whether anybody waits for one of some records of a space.
func (h *Hub) IsAwaited(keys []forerun.Key) bool {
	s := h.awaited(keys)
	return s != nil && s.isAwaited(keys)
}

// Settle waits until those have been served who waited for some records of a space that were written.
func (h *Hub) Settle(ctx context.Context, keys []forerun.Key) {
	if s := h.awaited(keys); s != nil {
		s.settle(ctx, keys)
	}
}

// awaited is the space of some records if anybody waits for records there, else nil.
func (h *Hub) awaited(keys []forerun.Key) *space {
	if len(keys) == 0 {
		return nil
	}
	s, ok := h.spaces.Load(keys[0].Space)
	if !ok || s.(*space).blocked.Load() == 0 {
		return nil
	}
	return s.(*space)
}

// changed hears of each change of a record.
func (h *Hub) changed(key forerun.Key, v forerun.Version) {
	if s, ok := h.spaces.Load(key.Space); ok {
		s.(*space).changed(key, v)
	}
}

func (s *space) changed(key forerun.Key, v forerun.Version) {
	if s.parts.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watched[key] {
		w.touched.Store(true)
	}
	s.invalidate(key, v)
	s.makeReady(key)
}

// watch is what a connection watches until its next EXEC. Versions alone would not tell of a record that came and went.
type watch struct {
	keys    map[forerun.Key]bool
	size    int // about what it takes, in bytes
	expect  []state.Expect
	touched atomic.Bool // a record has changed since
}

// bytes is what a watch takes; one that has not begun takes nothing.
func (w *watch) bytes() int {
	if w == nil {
		return 0
	}
	return w.size
}

// watch adds a record to a watch.
func (s *space) watch(w *watch, key forerun.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watched[key] = append(s.watched[key], w)
	s.parts.Add(1)
}

// unwatch ends a watch of a record.
func (s *space) unwatch(w *watch, key forerun.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.watched[key]
	i := slices.Index(list, w)
	if i < 0 {
		return
	}
	s.parts.Add(-1)
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		s.watched[key] = list
	} else {
		delete(s.watched, key)
	}
}
