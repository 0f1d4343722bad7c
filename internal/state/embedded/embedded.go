// Package embedded is the Store in this process: records in Pebble.
//
// It promises what state.Store says. Commands on unrelated keys run in parallel;
// those on the same key, and transactions on any of their keys, run one after
// the other, and none of them waits for a disk while it holds a key. A version
// that was handed out is never handed out again, not even if the machine failed
// before the write that it stood for was on disk.
//
// How it keeps what it promises about disks: writes go to Pebble's log in the
// order of their versions. Pebble's own syncs of the log only hand it to the
// operating system (walfs.go); one round of fdatasync for all who wait makes
// everything up to a version durable (durable.go). So a Lazy transaction never
// waits behind another's fdatasync.
//
// When the disk is full, it takes nothing new, shows what it has, and goes on
// when there is room (room.go). When the disk fails, the store refuses everything from then on: what is on
// disk is not known any more. If Pebble itself cannot go on, Options.Fatal ends
// the process.
package embedded

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/places"
)

// Options are the settings of a store; the zero value is right for a server.
type Options struct {
	FS        vfs.FS           // where the files are; nil: the operating system's
	Now       func() time.Time // the clock that expires records; nil: time.Now
	CacheSize int64            // bytes of the cache of blocks; 0: 32 MB
	Stored    Accounting       // whose what is stored is, and how much they may store
	Fatal     func(error)      // called when the store cannot go on; it ends the process. nil: says why on standard error, exit status 1

	hurry func() bool // rewriting tables does not rest
}

// Store is the embedded store. It implements state.Store.
type Store struct {
	db       *pebble.DB
	lock     *pebble.Lock
	wal      *walFS
	room     *room
	now      func() time.Time
	gate     gate
	keys     *keyLocks
	places   *places.Places // for commands that compute for long
	watch    watchers       // hear of changes that were made,
	announce watchers       // and of those to come; their versions are 0
	reclaims reclaims
	books    *books // nil: what tenants store is not counted

	damaged sync.Map // entries of the index of expiries whose records cannot be removed

	commits commits
	disk    syncer
	stop    chan struct{}  // closed by Close: the sweep ends
	behind  sync.WaitGroup // the goroutines that sweep and that watch the disk
}

var _ state.Announcer = (*Store)(nil)

// gate counts the calls at work, so that Close can wait for them.
type gate struct {
	calls atomic.Int64  // negative once the store is closing
	idle  chan struct{} // closed when it is closing and no call is at work
	once  sync.Once     // closes idle
}

const closing = -1 << 62

// enter begins a call. The error is forerun.Unavailable.
func (g *gate) enter() error {
	if g.calls.Add(1) < 0 {
		g.leave()
		return forerun.Errorf(forerun.Unavailable, "state", "The store is closed.")
	}
	return nil
}

func (g *gate) leave() {
	if g.calls.Add(-1) == closing {
		g.once.Do(func() { close(g.idle) })
	}
}

// shut refuses new calls and waits for those at work. It says false if another has shut the gate already.
func (g *gate) shut() bool {
	for {
		n := g.calls.Load()
		if n < 0 {
			return false
		}
		if g.calls.CompareAndSwap(n, n+closing) {
			if n > 0 {
				<-g.idle
			}
			return true
		}
	}
}

// Places are what commands need that compute for long.
func (s *Store) Places() *places.Places { return s.places }

// GiveUp ends what waits for room on the disk, with an error, as Close does.
func (s *Store) GiveUp() { s.room.close() }

// Close waits for the calls at work, puts everything on disk and releases the folder. Do not call it from within a Scan.
func (s *Store) Close() error {
	s.GiveUp()
	if !s.gate.shut() {
		return nil
	}
	close(s.stop)
	s.behind.Wait()
	s.books.close(s)
	err := s.disk.close()
	if closeErr := s.db.Close(); err == nil && closeErr != nil {
		err = forerun.Errorf(forerun.Internal, "state", "The store could not be closed: %w", closeErr)
	}
	if lockErr := s.lock.Close(); err == nil && lockErr != nil {
		err = forerun.Errorf(forerun.Internal, "state", "The store's lock could not be released: %w", lockErr)
	}
	return err
}
