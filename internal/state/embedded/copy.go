package embedded

import (
	"context"
	"errors"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/backup"
	"forerun.dev/forerun/internal/forerun"
)

const (
	copyStep = 1000    // pairs that Pairs reads at once: an iterator holds on to memory, a snapshot does not
	loadStep = 4 << 20 // bytes that Load writes at once
)

// Pairs walks all that the store holds, as of one moment and on disk: what Load makes a store of. The slices are valid only
// until the next pair.
func (s *Store) Pairs(ctx context.Context) iter.Seq2[backup.Pair, error] {
	return func(yield func(backup.Pair, error) bool) {
		if err := s.begins(ctx); err != nil {
			yield(backup.Pair{}, err)
			return
		}
		defer s.gate.leave()
		snapshot := s.db.NewSnapshot()
		last, _ := s.commits.newest() // not before the snapshot: what it shows was written up to here
		err := s.disk.wait(ctx, last)
		var from []byte
		for more := true; more && err == nil; {
			from, more, err = somePairs(ctx, snapshot, from, yield)
		}
		if err = errors.Join(err, snapshot.Close()); err != nil && !errors.Is(err, errStopped) {
			yield(backup.Pair{}, err)
		}
	}
}

// errStopped says that nobody listens any more.
var errStopped = errors.New("stopped")

// somePairs walks the next pairs. It returns where to go on, and whether there is more.
func somePairs(ctx context.Context, snapshot *pebble.Snapshot, from []byte, yield func(backup.Pair, error) bool) (next []byte, more bool, err error) {
	if ctx.Err() != nil {
		return nil, false, context.Cause(ctx)
	}
	it, err := snapshot.NewIter(&pebble.IterOptions{LowerBound: from})
	if err != nil {
		return nil, false, broken(err)
	}
	n, stopped := 0, false
	err = walk(it, false, func(key, value []byte) bool {
		if n++; n > copyStep {
			next, more = append([]byte{}, key...), true
			return false
		}
		stopped = !yield(backup.Pair{Key: key, Value: value}, nil)
		return !stopped
	})
	if stopped {
		err = errStopped
	}
	return next, more, errors.Join(err, it.Close())
}

// Loader makes a store of the pairs of another.
type Loader struct {
	db    *pebble.DB
	lock  *pebble.Lock
	batch *pebble.Batch
}

// Load begins a store in a folder that has none. It is one when Close has returned nil.
func Load(dir string, opts Options) (*Loader, error) {
	opts = withDefaults(opts)
	lock, err := lockFolder(dir, opts.FS)
	if err != nil {
		return nil, err
	}
	o := pebbleOptions(opts.FS, lock, opts)
	o.DisableWAL, o.ErrorIfExists = true, true
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil, errors.Join(forerun.Errorf(forerun.Internal, dir, "The store cannot be made: %w", err), lock.Close())
	}
	return &Loader{db: db, lock: lock, batch: db.NewBatch()}, nil
}

// Add adds a pair.
func (l *Loader) Add(p backup.Pair) error {
	if err := l.batch.Set(p.Key, p.Value, nil); err != nil {
		return broken(err)
	}
	if l.batch.Len() < loadStep {
		return nil
	}
	return l.write()
}

func (l *Loader) write() error {
	if err := l.batch.Commit(pebble.NoSync); err != nil {
		return broken(err)
	}
	if err := l.batch.Close(); err != nil {
		return broken(err)
	}
	l.batch = l.db.NewBatch()
	return nil
}

// Close puts everything on disk.
func (l *Loader) Close() error {
	err := l.write()
	if err == nil {
		err = l.db.Flush()
	}
	if err = errors.Join(err, l.batch.Close(), l.db.Close(), l.lock.Close()); err != nil {
		return broken(err)
	}
	return nil
}
