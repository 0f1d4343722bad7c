package resp

import "sync"

// seats are the connections of a server. When they are all taken a space may still have its part of them, so that who has few is not
// kept out by those of another.
type seats struct {
	most int

	mu        sync.Mutex // guards the rest
	taken     int
	of        map[string]int // by spaces
	strangers map[*stranger]bool
}

// stranger is a connection that has no space yet.
type stranger struct{ cut func() }

// strangersAtMost is how many of them there may be, beside the others. With one more any of them is cut: who has a key shows it at once,
// and is hardly ever the one, however fast others come that have none.
const strangersAtMost = 1024

func newSeats(most int) *seats {
	return &seats{most: most, of: make(map[string]int), strangers: make(map[*stranger]bool)}
}

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
	for other := range s.strangers {
		if len(s.strangers) < strangersAtMost {
			break
		}
		delete(s.strangers, other)
		go other.cut()
	}
	its := &stranger{cut}
	s.strangers[its] = true
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.strangers, its)
	}
}
