// Package seats bounds the connections of a door, so that neither a tenant who
// has many nor somebody without a key keeps another out.
//
// It promises that each tenant may have its part of the connections however many
// others have, and that who shows no key takes none of them.
package seats

import "sync"

// Seats are the connections of a door. When they are all taken a tenant may still have its part of them, so that who has few is not
// kept out by those of another.
type Seats struct {
	most, mostStrangers int

	mu        sync.Mutex // guards the rest
	taken     int
	of        map[string]int // by tenants
	strangers map[*stranger]bool
}

// stranger is a connection that is no tenant's yet.
type stranger struct{ cut func() }

// New returns seats, all free: so many for tenants, and so many more for strangers. With one more stranger any of them is cut: who has a
// key shows it at once, and is hardly ever the one, however fast others come that have none.
func New(most, strangers int) *Seats {
	return &Seats{most: most, mostStrangers: strangers, of: make(map[string]int), strangers: make(map[*stranger]bool)}
}

// Take takes a seat for a tenant, and reports false if there is none. give gives it back.
func (s *Seats) Take(tenant string) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	its, tenants := s.of[tenant], len(s.of)
	if its == 0 {
		tenants++
	}
	if s.taken >= s.most && its >= s.most/tenants {
		return nil, false
	}
	s.taken++
	s.of[tenant]++
	return func() { s.give(tenant) }, true
}

func (s *Seats) give(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[tenant]--; s.of[tenant] == 0 {
		delete(s.of, tenant)
	}
}

// Stand takes in a stranger, whom cut cuts. leave forgets it.
func (s *Seats) Stand(cut func()) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for other := range s.strangers {
		if len(s.strangers) < s.mostStrangers {
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
