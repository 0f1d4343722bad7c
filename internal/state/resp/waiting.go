package resp

import (
	"context"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/command"
)

// waiter is a connection that waits for records to change. Those who wait for a record are told one after the other,
// in the order in which they came: who has taken what there was has changed the record, and who cannot use it lets
// the next one look.
type waiter struct {
	keys  command.KeySet
	wake  chan struct{}        // holds one when fresh is not empty
	fresh []forerun.Key        // that have changed; guarded by the space's mu
	told  map[forerun.Key]bool // those of fresh: it may wait for many; guarded by the space's mu
	tried chan struct{}        // closed when it has looked at them; nil: it has; guarded by the space's mu
}

// await begins to wait.
func (s *space) await(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range w.keys.List {
		s.waiting[key] = append(s.waiting[key], w)
	}
	s.parts.Add(int64(len(w.keys.List)))
	s.blocked.Add(1)
}

// leave ends a wait. What was left for others is the next one's.
func (s *space) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts.Add(-int64(len(w.keys.List)))
	s.blocked.Add(-1)
	for _, key := range w.keys.List {
		i := slices.Index(s.waiting[key], w)
		list := slices.Delete(s.waiting[key], i, i+1)
		if len(list) == 0 {
			delete(s.waiting, key)
			continue
		}
		s.waiting[key] = list
		list[0].tell(key)
	}
	w.looked()
}

// tell has a waiter look at a record. The space's mu is held.
func (w *waiter) tell(key forerun.Key) {
	if w.told[key] {
		return
	}
	if w.told == nil {
		w.told = make(map[forerun.Key]bool)
	}
	w.told[key] = true
	w.fresh = append(w.fresh, key)
	if w.tried == nil {
		w.tried = make(chan struct{})
	}
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// looked says that a waiter has looked at all that it was told of. The space's mu is held.
func (w *waiter) looked() {
	if w.tried != nil {
		close(w.tried)
		w.tried = nil
	}
}

// next is a record that a waiter has to look at; ok is false if there is none.
func (s *space) next(w *waiter) (key forerun.Key, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(w.fresh) == 0 {
		w.looked()
		return forerun.Key{}, false
	}
	key, w.fresh = w.fresh[0], w.fresh[1:]
	delete(w.told, key)
	return key, true
}

// pass lets the one behind a waiter look at a record that this one cannot use.
func (s *space) pass(w *waiter, key forerun.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.waiting[key]
	if i := slices.Index(list, w); i+1 < len(list) {
		list[i+1].tell(key)
	}
}

// patience is how long a change is not acknowledged while those who wait for it look: whoever made it then finds what
// they left, as in Redis. One whose activation is over may take longer to learn that.
const patience = 50 * time.Millisecond

// settle waits until those have looked who waited for some records.
func (s *space) settle(ctx context.Context, keys []forerun.Key) {
	if len(keys) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for ctx.Err() == nil {
		tried := s.looking(keys)
		if tried == nil {
			return
		}
		select {
		case <-tried:
		case <-ctx.Done():
		}
	}
}

// isAwaited reports whether anybody waits for one of some records.
func (s *space) isAwaited(keys []forerun.Key) bool {
	if len(keys) == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(keys, func(key forerun.Key) bool { return len(s.waiting[key]) > 0 })
}

// looking is closed when one has looked who has to look at some records; nil: there is none.
func (s *space) looking(keys []forerun.Key) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		for _, w := range s.waiting[key] {
			if w.tried != nil {
				return w.tried
			}
		}
	}
	return nil
}
