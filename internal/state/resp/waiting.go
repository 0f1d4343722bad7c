package resp

import (
	"context"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// Clients that are blocked on records (BLPOP and its like) are served as Redis serves them:
//
//   - A record that changes while clients wait for it is ready. Ready records are served one after the other, in the order in which
//     their commands wrote them.
//   - To serve a record is to execute the commands of those that wait for it, in the order of their arrival, until it is used up.
//   - What such a command writes may make another record ready, which is served in its turn, until none is ready.
//
// One goroutine serves a space, and runs only while a record is ready. The writer waits for it (settle) before its client learns
// that the write is done.

// waiter is a client that waits for records. The space's mu guards what changes.
type waiter struct {
	space *space
	keys  command.KeySet
	kind  state.Type  // of the records that its command can use
	moved forerun.Key // the record to which its command moves an item; empty: none
	try   func() outcome

	phase  phase
	looked chan struct{}  // closed when it has looked at its records for the first time
	missed command.KeySet // records that changed while it looked
	tried  chan struct{}  // closed when its command has been tried, while it is being served
	round  int            // in which it was tried last
	ended  chan struct{}  // closed when it waits no more
	result outcome        // of a waiter that has ended
}

// phase is what a waiter does.
type phase int

// The phases of a waiter: it looks, then it is blocked and is served, perhaps in vain and several times, and then it has ended.
const (
	looks   phase = iota // its command is executed for the first time
	blocked              // it is among the space's blocked clients
	served               // its command is executed again, by the goroutine that serves the space
	ended                // it has its result, or has left
)

// outcome is what a command that waits comes to.
type outcome struct {
	reply   state.Reply
	version forerun.Version // on which it rests
	err     error           // of the session
}

// readyRecord is a record that has changed while clients wait for it.
type readyRecord struct {
	key   forerun.Key
	moved []forerun.Key // records to which the clients moved something that it was served to
	done  chan struct{} // closed when it has been served
}

func (s *space) newWaiter(kind state.Type) *waiter {
	return &waiter{space: s, kind: kind, looked: make(chan struct{}), ended: make(chan struct{})}
}

// await puts a waiter, which is going to look at its records, behind the others.
func (s *space) await(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range w.keys.List {
		s.waiting[key] = append(s.waiting[key], w)
	}
	s.parts.Add(int64(len(w.keys.List)))
	s.blocked.Add(1)
}

// sleep says that a waiter has looked and found nothing.
func (s *space) sleep(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.phase = blocked
	s.asleep.Add(1)
	for _, key := range w.missed.List {
		s.makeReady(key)
	}
	w.missed = command.KeySet{}
	close(w.looked)
}

// leave ends a wait, and reports false if the waiter has its result. One that is just being served has it soon, or is not served.
func (s *space) leave(w *waiter) bool { return s.unblock(w, outcome{}) }

// unblock ends a wait with a result, and reports false if it has ended before.
func (s *space) unblock(w *waiter, result outcome) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w.phase == served {
		tried := w.tried
		s.mu.Unlock()
		<-tried
		s.mu.Lock()
	}
	if w.phase == ended {
		return false
	}
	s.end(w, result)
	return true
}

// end takes a waiter out of all queues. The space's mu is held.
func (s *space) end(w *waiter, result outcome) {
	if w.phase == looks {
		close(w.looked)
	} else {
		s.asleep.Add(-1)
	}
	w.phase, w.result = ended, result
	s.parts.Add(-int64(len(w.keys.List)))
	s.blocked.Add(-1)
	for _, key := range w.keys.List {
		list := s.waiting[key]
		i := slices.Index(list, w)
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(s.waiting, key)
		} else {
			s.waiting[key] = list
		}
	}
	close(w.ended)
}

// makeReady has a record served for which clients wait. The space's mu is held.
func (s *space) makeReady(key forerun.Key) {
	if s.readyAt[key] != nil || len(s.waiting[key]) == 0 {
		return
	}
	r := &readyRecord{key: key, done: make(chan struct{})}
	s.readyAt[key] = r
	s.ready = append(s.ready, r)
	if !s.serves {
		s.serves = true
		go s.serve()
	}
}

// serve serves the records that are ready until none is.
func (s *space) serve() {
	for r := s.nextReady(); r != nil; r = s.nextReady() {
		s.serveRecord(r)
		close(r.done)
	}
}

// nextReady is the record to serve now; nil ends the serving.
func (s *space) nextReady() *readyRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		s.serves, s.serving, s.ready = false, nil, nil
		return nil
	}
	s.serving, s.ready = s.ready[0], s.ready[1:]
	delete(s.readyAt, s.serving.key) // if it changes again it is served again
	return s.serving
}

// serveRecord serves those that wait for a record, each once, as long as it has something for them.
func (s *space) serveRecord(r *readyRecord) {
	s.round++
	for {
		w := s.claim(r.key, s.kindOf(r.key))
		if w == nil {
			return
		}
		result := w.try()
		if s.conclude(w, result) && w.moved != (forerun.Key{}) {
			r.moved = append(r.moved, w.moved)
		}
	}
}

// claim is the first that waits for a record, can use what it is now, and was not tried in this round; nil if there is none.
func (s *space) claim(key forerun.Key, kind state.Type) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == state.Absent {
		return nil
	}
	for _, w := range s.waiting[key] {
		switch {
		case w.kind != kind || w.round == s.round:
		case w.phase == blocked:
			w.phase, w.round, w.tried = served, s.round, make(chan struct{})
			return w
		case w.phase == looks:
			w.missed.Add(key)
		}
	}
	return nil
}

// conclude ends the wait of one that was tried, if it has got something.
func (s *space) conclude(w *waiter, result outcome) (got bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if got = result.err != nil || !isNil(result.reply); got {
		s.end(w, result)
	} else {
		w.phase = blocked
	}
	close(w.tried)
	return got
}

// patience is how long a change is not acknowledged while those that wait for it are served: its writer then finds what they left, as
// in Redis. Serving takes longer only if a record that a blocked command needs is used by another command for so long.
const patience = time.Second

// settle waits until those have been served that wait for some records, and those that wait for what serving them wrote.
func (s *space) settle(ctx context.Context, keys []forerun.Key) {
	if len(keys) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for keys = slices.Clone(keys); len(keys) > 0; {
		done, r := s.atWork(keys[0])
		if done == nil {
			keys = keys[1:]
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return
		}
		if r != nil {
			keys = append(keys, r.moved...)
		}
	}
}

// atWork is closed when a record that is ready has been served, or one that looks at it has looked; nil: neither is to come.
func (s *space) atWork(key forerun.Key) (<-chan struct{}, *readyRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.serving; r != nil && r.key == key {
		return r.done, r
	}
	if r := s.readyAt[key]; r != nil {
		return r.done, r
	}
	for _, w := range s.waiting[key] {
		if w.phase == looks {
			return w.looked, nil
		}
	}
	return nil, nil
}

// isBlocked says whether a waiter is among the blocked clients.
func (s *space) isBlocked(w *waiter) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.phase == blocked || w.phase == served
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
