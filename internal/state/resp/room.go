package resp

import (
	"math"
	"sync"
)

// room is what the connections of one space may hold together, beside the small buffers that each has: commands that have
// not come in whole, transactions, replies and messages that the client has not read, and names that it waits for. Otherwise a few hundred connections of one
// tenant, each with a command that it does not end, would fill the server's memory.
type room struct {
	most int // bytes for one space

	mu    sync.Mutex // guards taken
	taken map[string]int
}

func newRoom(most int) *room { return &room{most: most, taken: make(map[string]int)} }

// share is what one connection holds of the room.
type share struct {
	room  *room
	space string
	bytes int
}

// change makes the share so large, and reports false, and leaves it as it is, if there is no room for more of the space's.
func (s *share) change(space string, bytes int) bool {
	return s.changeWithin(space, bytes, math.MaxInt)
}

// changeWithin is change for who may have some of the room only if all of the space's take no more than so many bytes.
func (s *share) changeWithin(space string, bytes, most int) bool {
	if bytes == s.bytes && space == s.space {
		return true
	}
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	others := r.taken[space]
	if space == s.space {
		others -= s.bytes
	}
	if bytes > s.bytes && others+bytes > min(most, r.most) {
		return false
	}
	if r.taken[s.space] -= s.bytes; r.taken[s.space] == 0 {
		delete(r.taken, s.space)
	}
	if s.space, s.bytes = space, bytes; bytes > 0 {
		r.taken[space] += bytes
	}
	return true
}
