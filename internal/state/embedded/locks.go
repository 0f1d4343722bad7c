package embedded

import (
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// stripes is the number of locks that all keys share; two keys of one stripe wait for each other.
const stripes = 4096

// keyLocks are the locks of records. They are taken in the order of their numbers, so no two calls wait for each other;
// lock order: keys, then commits.mu.
type keyLocks struct {
	seed    maphash.Seed
	stripes [stripes]stripe
}

// stripe is the lock of some keys and the last versions written to any of them.
type stripe struct {
	sync.RWMutex                 // guards the rest
	last         forerun.Version // of any write
	strict       forerun.Version // of any write but lazy ones
}

func newKeyLocks() *keyLocks { return &keyLocks{seed: maphash.MakeSeed()} }

// claim is a stripe that a call needs, for itself alone if it writes.
type claim struct {
	stripe uint32
	write  bool
}

func (k *keyLocks) claim(space string, name []byte, write bool) claim {
	h := maphash.String(k.seed, space)*31 + maphash.Bytes(k.seed, name)
	return claim{uint32(h % stripes), write}
}

// claimAll adds claims on every key.
func claimAll(claims []claim, write bool) []claim {
	for i := range uint32(stripes) {
		claims = append(claims, claim{i, write})
	}
	return claims
}

// held are stripes that a call holds, each once.
type held struct {
	locks  *keyLocks
	claims []claim
}

// lock takes the stripes of claims, whose slice it keeps.
func (k *keyLocks) lock(claims []claim) held {
	if len(claims) > 1 {
		slices.SortFunc(claims, func(a, b claim) int { return cmp.Compare(a.stripe, b.stripe) })
		claims = merge(claims)
	}
	for _, c := range claims {
		if c.write {
			k.stripes[c.stripe].Lock()
		} else {
			k.stripes[c.stripe].RLock()
		}
	}
	return held{k, claims}
}

// merge makes one claim of those on one stripe, which are neighbours.
func merge(claims []claim) []claim {
	n := 0
	for _, c := range claims[1:] {
		if c.stripe == claims[n].stripe {
			claims[n].write = claims[n].write || c.write
			continue
		}
		n++
		claims[n] = c
	}
	return claims[:n+1]
}

func (h held) unlock() {
	for _, c := range h.claims {
		if c.write {
			h.locks.stripes[c.stripe].Unlock()
		} else {
			h.locks.stripes[c.stripe].RUnlock()
		}
	}
}

// rests is the version up to which writes must be on disk before what was read under these locks may be shown.
func (h held) rests() (last, strict forerun.Version) {
	for _, c := range h.claims {
		last = max(last, h.locks.stripes[c.stripe].last)
		strict = max(strict, h.locks.stripes[c.stripe].strict)
	}
	return last, strict
}

// wrote notes the version of a write under these locks.
func (h held) wrote(v forerun.Version, lazy bool) {
	for _, c := range h.claims {
		if !c.write {
			continue
		}
		s := &h.locks.stripes[c.stripe]
		s.last = v
		if !lazy {
			s.strict = v
		}
	}
}
