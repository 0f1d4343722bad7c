package resp

import (
	"container/list"
	"sync"
)

// seats are the connections of a server. When they are all taken a space may still have its part of them, so that who has few is not
// kept out by those of another.
type seats struct {
	most int

	mu        sync.Mutex // guards the rest
	taken     int
	of        map[string]int // by spaces
	strangers list.List      // func() that cut them, the oldest first
}

// strangersAtMost is how many connections may have no space yet, beside the others. With one more the oldest is cut: who has a key
// shows it at once, and who has none must not keep others from doing so.
const strangersAtMost = 1024

func newSeats(most int) *seats { return &seats{most: most, of: make(map[string]int)} }

// take takes a seat for a space, and reports false if there is none. give gives it back.
func (s *seats) take(space string) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	its, spaces := s.of[space], len(s.of)
	if its == 0 {
		spaces++
	}
	if s.taken >= s.most && its >= s.most/spaces {
		return nil, false
	}
	s.taken++
	s.of[space]++
	return func() { s.give(space) }, true
}

func (s *seats) give(space string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[space]--; s.of[space] == 0 {
		delete(s.of, space)
	}
}

// stand takes in a stranger, whom cut cuts. leave forgets it.
func (s *seats) stand(cut func()) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.strangers.PushBack(cut)
	if s.strangers.Len() > strangersAtMost {
		go s.strangers.Remove(s.strangers.Front()).(func())()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.strangers.Remove(mine) // nothing, if it was cut
	}
}
