package embedded

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// stripes is the number of locks that all keys of a space share; two keys of one stripe wait for each other.
const stripes = 1024

// keyLocks are the locks of records. Each space has its own, so that nobody waits for what is done in another tenant's, however long
// that takes. They are taken in the order of the spaces' numbers and theirs, so no two calls wait for each other; lock order: keys,
// then commits.mu.
type keyLocks struct {
	seed   maphash.Seed
	mu     sync.RWMutex           // guards spaces; nothing is waited for under it
	spaces map[string]*spaceLocks // of all that were used
}

// spaceLocks are the locks of the records of one space.
type spaceLocks struct {
	number  int
	reading turns // of commands that only read
	writing turns // of the others
	stripes [stripes]stripe
}

// atWork is how many commands of a space that only read are carried out at a time, and of the others: each may need some hundred MB. One
// that waits has its locks, but for the store's: so nobody is at work who waits for a record, and what reads does not wait for the disk.
const atWork = 4

// turns holds one for each command at work.
type turns chan struct{}

// begin waits until a command may be carried out; it ends among the turns that are returned. The error is that of the context.
func (l *spaceLocks) begin(ctx context.Context, writes bool) (turns, error) {
	own := l.reading
	if writes {
		own = l.writing
	}
	select {
	case own <- struct{}{}:
		return own, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t turns) end() { <-t }

// stripe is the lock of some keys and the last versions written to any of them.
type stripe struct {
	sync.RWMutex                 // guards the rest
	last         forerun.Version // of any write
	strict       forerun.Version // of any write but lazy ones
}

func newKeyLocks() *keyLocks {
	return &keyLocks{seed: maphash.MakeSeed(), spaces: make(map[string]*spaceLocks)}
}

// of are the locks of a space.
func (k *keyLocks) of(space string) *spaceLocks {
	k.mu.RLock()
	locks := k.spaces[space]
	k.mu.RUnlock()
	if locks != nil {
		return locks
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if locks = k.spaces[space]; locks == nil {
		locks = &spaceLocks{number: len(k.spaces), reading: make(turns, atWork), writing: make(turns, atWork)}
		k.spaces[space] = locks
	}
	return locks
}

// claim is a stripe that a call needs, for itself alone if it writes.
type claim struct {
	space  *spaceLocks
	stripe uint32
	write  bool
}

func (c claim) on() *stripe { return &c.space.stripes[c.stripe] }

func (k *keyLocks) claim(space string, name []byte, write bool) claim {
	return claim{k.of(space), uint32(maphash.Bytes(k.seed, name) % stripes), write}
}

// claimAll adds claims on every key of a space.
func (k *keyLocks) claimAll(claims []claim, space string, write bool) []claim {
	locks := k.of(space)
	for i := range uint32(stripes) {
		claims = append(claims, claim{locks, i, write})
	}
	return claims
}

// held are stripes that a call holds, each once.
type held []claim

// lock takes the stripes of claims, whose slice it keeps.
func lock(claims []claim) held {
	if len(claims) > 1 {
		slices.SortFunc(claims, func(a, b claim) int {
			return cmp.Or(cmp.Compare(a.space.number, b.space.number), cmp.Compare(a.stripe, b.stripe))
		})
		claims = merge(claims)
	}
	for _, c := range claims {
		if c.write {
			c.on().Lock()
		} else {
			c.on().RLock()
		}
	}
	return claims
}

// merge makes one claim of those on one stripe, which are neighbours.
func merge(claims []claim) []claim {
	n := 0
	for _, c := range claims[1:] {
		if c.on() == claims[n].on() {
			claims[n].write = claims[n].write || c.write
			continue
		}
		n++
		claims[n] = c
	}
	return claims[:n+1]
}

func (h held) unlock() {
	for _, c := range h {
		if c.write {
			c.on().Unlock()
		} else {
			c.on().RUnlock()
		}
	}
}

// rests is the version up to which writes must be on disk before what was read under these locks may be shown.
func (h held) rests() (last, strict forerun.Version) {
	for _, c := range h {
		last = max(last, c.on().last)
		strict = max(strict, c.on().strict)
	}
	return last, strict
}

// wrote notes the version of a write under these locks.
func (h held) wrote(v forerun.Version, lazy bool) {
	for _, c := range h {
		if !c.write {
			continue
		}
		s := c.on()
		s.last = v
		if !lazy {
			s.strict = v
		}
	}
}
