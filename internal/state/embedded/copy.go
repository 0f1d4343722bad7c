package embedded

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"

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
	dir     string
	db      *pebble.DB
	lock    *pebble.Lock
	batch   *pebble.Batch
	flushed <-chan struct{} // closed when what was written before the batch is in tables

	failed chan struct{} // closed when Pebble has failed at something that it would try again for ever
	once   sync.Once     // closes failed
	mu     sync.Mutex    // guards err
	err    error         // of Pebble
}

// manyTables are more than ever wait: Pebble would have writes wait for them, also if it fails.
const manyTables = 1 << 20

// Load begins a store in a folder that has none. It is one when Close has returned nil. The error, as that of Add and Close, is
// forerun.Full (the disk is) or Internal.
func Load(dir string, opts Options) (*Loader, error) {
	opts = withDefaults(opts)
	lock, err := lockFolder(dir, opts.FS)
	if err != nil {
		return nil, err
	}
	l := &Loader{dir: dir, lock: lock, failed: make(chan struct{})}
	opts.Fatal = l.note // it fails as well
	o := pebbleOptions(opts.FS, lock, opts)
	o.DisableWAL, o.ErrorIfExists = true, true
	o.MemTableStopWritesThreshold, o.L0StopWritesThreshold = manyTables, manyTables
	o.EventListener = &pebble.EventListener{BackgroundError: l.fail}
	if l.db, err = pebble.Open(dir, o); err != nil {
		return nil, errors.Join(l.broken(err), lock.Close())
	}
	l.batch = l.db.NewBatch()
	return l, nil
}

func (l *Loader) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *Loader) fail(err error) {
	l.note(err)
	l.once.Do(func() { close(l.failed) })
}

// failure is what Pebble has failed at.
func (l *Loader) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return l.broken(l.err)
}

func (l *Loader) broken(err error) error {
	if isFull(err) {
		return forerun.Errorf(forerun.Full, l.dir, "The disk is full: %w. Make room on it, or choose a folder on another with --data, and restore again.", err)
	}
	return forerun.Errorf(forerun.Internal, l.dir, "The store cannot be made: %w", err)
}

// Add adds a pair.
func (l *Loader) Add(p backup.Pair) error {
	if err := l.batch.Set(p.Key, p.Value, nil); err != nil {
		return l.broken(err)
	}
	if l.batch.Len() < loadStep {
		return nil
	}
	return l.write()
}

// write hands the batch to Pebble when that has written what came before.
func (l *Loader) write() error {
	if err := l.wait(); err != nil {
		return err
	}
	full := l.batch
	l.batch = l.db.NewBatch()
	err := errors.Join(full.Commit(pebble.NoSync), full.Close())
	if err == nil {
		l.flushed, err = l.db.AsyncFlush()
	}
	if err != nil {
		l.fail(err) // Close says so, too
	}
	return l.failure()
}

// wait waits until Pebble has written what it was given, or has failed.
func (l *Loader) wait() error {
	if l.flushed != nil {
		select {
		case <-l.flushed:
		case <-l.failed:
		}
	}
	return l.failure()
}

// Close puts everything on disk.
func (l *Loader) Close() error {
	err := l.write()
	if err == nil {
		err = l.wait()
	}
	if closeErr := errors.Join(l.batch.Close(), l.db.Close(), l.lock.Close()); err == nil && closeErr != nil {
		err = l.broken(closeErr)
	}
	return cmp.Or(err, l.failure())
}
