package command

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// KeySet is a list of keys that has each once. Its zero value is empty.
type KeySet struct {
	List []forerun.Key
	at   map[forerun.Key]int // where each is, once there are many
}

// keysInLine is how many keys are looked through one by one.
const keysInLine = 16

// Add adds a key, and says where it is.
func (s *KeySet) Add(key forerun.Key) int {
	if at := s.find(key); at >= 0 {
		return at
	}
	s.List = append(s.List, key)
	switch n := len(s.List); {
	case s.at != nil:
		s.at[key] = n - 1
	case n == keysInLine:
		s.at = make(map[forerun.Key]int)
		for at, k := range s.List {
			s.at[k] = at
		}
	}
	return len(s.List) - 1
}

// Has says whether a key is in the set.
func (s *KeySet) Has(key forerun.Key) bool { return s.find(key) >= 0 }

func (s *KeySet) find(key forerun.Key) int {
	if s.at == nil {
		return slices.Index(s.List, key)
	}
	if at, known := s.at[key]; known {
		return at
	}
	return -1
}
