package embedded

import (
	"cmp"
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// stripes is the number of locks that all keys of a space share; two keys of one stripe wait for each other.
const stripes = 1024

// keyLocks are the locks of records. Each space has its own, so that nobody waits for what is done in another tenant's, however long
// that takes. They are taken in the order of the spaces' numbers and theirs, so no two calls wait for each other; lock order: keys,
// then commits.mu.
type keyLocks struct {
	seed   maphash.Seed
	mu     sync.RWMutex           // guards the rest; nothing is waited for under it
	spaces map[string]*spaceLocks // of all that are used, or were of late
	next   int                    // number of a space
}

// spaceLocks are the locks of the records of one space.
type spaceLocks struct {
	number  int
	users   atomic.Int64  // claims and turns, of which none begins without keyLocks.mu
	rested  atomic.Bool   // there was none at the last look, nor since
	newest  atomic.Uint64 // version of the last write
	reading chan struct{} // holds one for each command at work that only reads
	writing chan struct{} // and one for each of the others
	stripes [stripes]stripe
}

// atWork is how many commands of a space that only read are carried out at a time, and of the others: each may need some hundred MB. One
// that waits has its locks, but for the store's: so nobody is at work who waits for a record, and what reads does not wait for the disk.
const atWork = 4

// turn is that of a command at work.
type turn struct {
	space *spaceLocks
	among chan struct{}
}

// begin waits until a command may be carried out; it ends with its turn. The error is that of the context.
func (k *keyLocks) begin(ctx context.Context, space string, writes bool) (turn, error) {
	locks := k.of(space)
	t := turn{locks, locks.reading}
	if writes {
		t.among = locks.writing
	}
	select {
	case t.among <- struct{}{}:
		return t, nil
	case <-ctx.Done():
		locks.users.Add(-1)
		return turn{}, context.Cause(ctx)
	}
}

func (t turn) end() {
	<-t.among
	t.space.users.Add(-1)
}

// stripe is the lock of some keys and the last versions written to any of them.
type stripe struct {
	sync.RWMutex                 // guards the rest
	last         forerun.Version // of any write
	strict       forerun.Version // of any write but lazy ones
}

func newKeyLocks() *keyLocks {
	return &keyLocks{seed: maphash.MakeSeed(), spaces: make(map[string]*spaceLocks)}
}

// of are the locks of a space, of which the caller is a user.
func (k *keyLocks) of(space string) *spaceLocks {
	if locks := k.used(space); locks != nil {
		return locks
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	locks := k.spaces[space]
	if locks == nil {
		locks = &spaceLocks{number: k.next, reading: make(chan struct{}, atWork), writing: make(chan struct{}, atWork)}
		k.next++
		k.spaces[space] = locks
	}
	locks.use()
	return locks
}

// used is of, or nil if there are none.
func (k *keyLocks) used(space string) *spaceLocks {
	k.mu.RLock()
	defer k.mu.RUnlock()
	locks := k.spaces[space]
	if locks != nil {
		locks.use()
	}
	return locks
}

func (l *spaceLocks) use() {
	l.users.Add(1)
	l.rested.Store(false)
}

// letGo forgets the locks that nobody has used since it was called before, and under which nothing was written that is not on disk.
func (k *keyLocks) letGo(synced forerun.Version) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.spaces, func(_ string, locks *spaceLocks) bool {
		return locks.users.Load() == 0 && locks.newest.Load() <= uint64(synced) && locks.rested.Swap(true)
	})
}

// wrote notes the version of a write under the locks.
func (l *spaceLocks) wrote(v forerun.Version) {
	for old := l.newest.Load(); old < uint64(v) && !l.newest.CompareAndSwap(old, uint64(v)); {
		old = l.newest.Load()
	}
}

// claim is a stripe that a call needs, for itself alone if it writes. It must be locked, and unlocked.
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
	locks.users.Add(stripes - 1)
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
			c.space.users.Add(-1)
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
		c.space.users.Add(-1)
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
		c.space.wrote(v)
		s := c.on()
		s.last = v
		if !lazy {
			s.strict = v
		}
	}
}
