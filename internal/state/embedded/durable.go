package embedded

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/forerun"
)

// lazyDelay is when a lazy write is put on disk, so that it is there within 10 ms.
const lazyDelay = 6 * time.Millisecond

// syncer puts the log on disk. Whoever waits first does a round for all who have written before it began; those who
// come while it runs wait for the next.
type syncer struct {
	store  *Store
	synced atomic.Uint64 // writes up to this version are on disk
	armed  atomic.Bool   // a round for lazy writes is on its way
	timer  *time.Timer   // that round

	mu   sync.Mutex    // guards the rest
	busy bool          // a round is running
	done chan struct{} // closed at its end
	err  error         // the disk has failed
}

func (d *syncer) init(s *Store) {
	d.store = s
	d.done = make(chan struct{})
	d.timer = time.AfterFunc(time.Hour, d.lazyRound)
	d.timer.Stop()
}

func (d *syncer) startAt(v forerun.Version) { d.synced.Store(uint64(v)) }

// failure is what made the disk useless, if anything has. The error is forerun.Unavailable.
func (d *syncer) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// fail remembers that the disk has failed.
func (d *syncer) fail(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = forerun.Errorf(forerun.Unavailable, "state", "The disk failed, so nothing more can be stored: %w. Look after the disk and start Forerun again.", err)
	}
	return d.err
}

// wait returns when writes up to v, which must have been made, are on disk.
func (d *syncer) wait(ctx context.Context, v forerun.Version) error {
	for d.synced.Load() < uint64(v) {
		d.mu.Lock()
		if d.err != nil {
			d.mu.Unlock()
			return d.err
		}
		if d.synced.Load() >= uint64(v) {
			d.mu.Unlock()
			return nil
		}
		mine, done := !d.busy, d.done
		d.busy = true
		d.mu.Unlock()
		if mine {
			d.round()
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// round puts on disk all that was written before it began, and lets those go on who wait.
func (d *syncer) round() {
	target, _ := d.store.commits.newest()
	err := d.sync()
	if err == nil {
		d.synced.Store(uint64(target))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.busy = false
	close(d.done)
	d.done = make(chan struct{})
}

// sync hands the log to the operating system and puts it on disk.
func (d *syncer) sync() error {
	b := d.store.db.NewBatch()
	if err := b.LogData(nil, nil); err != nil {
		return d.fail(err)
	}
	if err := d.store.db.ApplyNoSyncWait(b, pebble.Sync); err != nil {
		return d.fail(err)
	}
	if err := d.handed(b); err != nil {
		return err
	}
	if err := d.store.wal.sync(); err != nil {
		return d.fail(err)
	}
	return nil
}

// handed waits until the operating system has a batch, and all before it.
func (d *syncer) handed(b *pebble.Batch) error {
	if err := b.SyncWait(); err != nil {
		return d.fail(err)
	}
	if err := b.Close(); err != nil {
		return broken(err)
	}
	return nil
}

// written waits until the operating system has a lazy batch, and sees to it that the disk gets it soon.
func (d *syncer) written(b *pebble.Batch) error {
	if err := d.handed(b); err != nil {
		return err
	}
	if d.armed.CompareAndSwap(false, true) {
		d.timer.Reset(lazyDelay)
	}
	return nil
}

func (d *syncer) lazyRound() {
	if d.store.gate.enter() != nil {
		return // Close syncs
	}
	defer d.store.gate.leave()
	d.armed.Store(false)
	last, _ := d.store.commits.newest()
	_ = d.wait(context.Background(), last) // a failure is kept, and everyone is told
}

// close puts everything on disk, when no call is at work any more.
func (d *syncer) close() error {
	d.timer.Stop()
	last, _ := d.store.commits.newest()
	if d.synced.Load() < uint64(last) && d.failure() == nil {
		d.round()
	}
	return d.failure()
}

// Durable waits until every write up to v is on disk.
func (s *Store) Durable(ctx context.Context, v forerun.Version) error {
	if s.disk.synced.Load() >= uint64(v) {
		return nil
	}
	if err := s.gate.enter(); err != nil {
		return err
	}
	defer s.gate.leave()
	if last, _ := s.commits.newest(); v > last {
		return forerun.Errorf(forerun.Invalid, "state", "Version %d has not been written yet, the last is %d.", v, last)
	}
	return s.disk.wait(ctx, v)
}
