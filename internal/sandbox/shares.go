package sandbox

import (
	"math"
	"sync"
	"syscall"
)

// Shares are what the owners of sandboxes have of something that there is one bound of for all: each may have as much as is left for
// others.
type Shares struct {
	most int

	mu  sync.Mutex // guards the rest
	all int
	of  map[string]int // by owners
}

// NewShares is for so much of something.
func NewShares(most int) *Shares { return &Shares{most: most, of: make(map[string]int)} }

// Take counts one more, if the owner may have it.
func (s *Shares) Take(owner string) bool { return s.take(owner, 1) }

// TakeHalf is Take for what can wait: it leaves half of what the owner may have to what cannot. With all of that it would have as much as is
// left, with half a third.
func (s *Shares) TakeHalf(owner string) bool { return s.take(owner, 3) }

// take counts one more, if so many times what the owner has then is left for others.
func (s *Shares) take(owner string, times int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(owner, 1)
	if times*s.of[owner] <= s.most-s.all {
		return true
	}
	s.count(owner, -1)
	return false
}

// Count counts more of an owner, or less, whether or not it may have that.
func (s *Shares) Count(owner string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(owner, more)
}

func (s *Shares) count(owner string, more int) {
	s.all += more
	if s.of[owner] += more; s.of[owner] == 0 {
		delete(s.of, owner)
	}
}

// Fits reports whether an owner may have what it has.
func (s *Shares) Fits(owner string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fits(owner)
}

func (s *Shares) fits(owner string) bool { return s.of[owner] <= s.most-s.all }

// Descriptors is how many files and sockets this process may have open; Go has raised that as far as it may. If it cannot be told it is
// what is usual at least.
func Descriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return int(min(limit.Cur, math.MaxInt32))
}
