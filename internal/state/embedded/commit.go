package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/pebble/v2"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/command"
)

// reserve is how many versions are set aside at once. After a start they go on behind all that were set aside, so
// none that was handed out comes back, even if its write was lost; there are 2^44 such starts.
const reserve = 1 << 20

// commits hands out versions, in the order of Pebble's log.
type commits struct {
	mu       sync.Mutex // guards the rest, and is held while a batch enters the log
	assigned forerun.Version
	strict   forerun.Version // the last that was not lazy
	reserved forerun.Version // versions up to this are set aside, on disk
}

func (c *commits) startAt(v forerun.Version) { c.assigned, c.strict, c.reserved = v, v, v }

// newest is the version of the last write, and that of the last that was not lazy.
func (c *commits) newest() (last, strict forerun.Version) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.assigned, c.strict
}

// change is a batch in the making: a command.Changes that remembers what needs a version.
type change struct {
	*pebble.Batch
	versions []int // offsets in the batch of the stored records, which begin with room for their version
	overlay  *command.Overlay
	stored   command.Reader // what the store holds
	bill     bill
	reclaims *reclaims // nil: there is room enough
	changed  *changed
	announce *watchers
	cleared  []keyRange // of records, if changed is not nil: there may be more of them than there is memory for
}

// counting has an overlay remember what the accounts of tenants need.
func (s *Store) counting(o *command.Overlay) *command.Overlay {
	if s.books == nil {
		return o
	}
	return o.Counting()
}

// newChange begins a batch for what an overlay has written.
func (s *Store) newChange(ctx context.Context, o *command.Overlay) *change {
	c := &change{Batch: s.db.NewBatch(), overlay: o, stored: command.NewOverlay(ctx, reader{db: s.db}), bill: bill{books: s.books}, announce: &s.announce}
	if s.room.low.Load() {
		c.reclaims = &s.reclaims
	}
	return c
}

// fill puts what the overlay has written into the batch.
func (c *change) fill() error {
	if err := c.overlay.Flush(c); err != nil {
		return err
	}
	return c.overlay.EachCleared(func(from, to []byte) error {
		size, err := c.bill.clear(c.stored, from, to)
		if c.reclaims != nil && err == nil {
			c.reclaims.note(from, to, size)
		}
		return err
	})
}

// Clear removes a range of keys. It announces them. If somebody is to be told which, it sees by that that they can be read, as long as who asks
// waits for that.
func (c *change) Clear(from, to []byte) error {
	if c.changed != nil && command.IsRecordKey(from) {
		cleared := keyRange{from, to}
		if err := cleared.records(c.changed.stored, func(k forerun.Key) bool { c.announce.tell([]forerun.Key{k}, 0); return true }); err != nil {
			return err
		}
		c.cleared = append(c.cleared, cleared)
	}
	return c.DeleteRange(from, to, nil)
}

// Set writes a pair.
func (c *change) Set(key, value []byte) error {
	if err := c.Batch.Set(key, value, nil); err != nil {
		return err
	}
	if command.IsRecordKey(key) {
		c.versions = append(c.versions, len(c.Repr())-len(value))
	}
	if err := c.account(key, len(key)+len(value)); err != nil {
		return err
	}
	return c.changed.Set(key, value)
}

// Delete removes a key.
func (c *change) Delete(key []byte) error {
	if err := c.changed.Delete(key); err != nil {
		return err
	}
	if err := c.account(key, 0); err != nil {
		return err
	}
	return c.Batch.Delete(key, nil)
}

// account notes that the pair of a key takes so many bytes from now on.
func (c *change) account(key []byte, size int) error {
	if c.bill.books == nil {
		return nil
	}
	before, known := c.overlay.Before(key)
	if !known {
		value, found, err := c.stored.Get(key)
		if err != nil {
			return err
		}
		if found {
			before = len(key) + len(value)
		}
	}
	c.bill.add(key, int64(size-before))
	if c.reclaims != nil && size < before {
		c.reclaims.note(key, key, int64(before-size))
	}
	return nil
}

// keyRange are the keys from one (inclusive) to another (exclusive).
type keyRange struct{ from, to []byte }

// records calls f with the records of a range until it returns false.
func (r keyRange) records(in command.Reader, f func(forerun.Key) bool) error {
	return in.Scan(r.from, r.to, false, func(key, _ []byte) bool {
		k, ok := command.ParseRecordKey(key)
		return !ok || f(k)
	})
}

// maxCleared is how many bytes the names may take that Clear notes, with about what each takes beside.
const (
	maxCleared  = 256 << 20
	clearedCost = 64
)

// changed is a command.Changes that only notes which records change; nil notes nothing.
type changed struct {
	stored command.Reader
	keys   []forerun.Key
	size   int // bytes of those that Clear has noted
}

// Clear notes the records in a range of keys. The error is forerun.TooLarge, or that of the store.
func (c *changed) Clear(from, to []byte) error {
	if !command.IsRecordKey(from) {
		return nil
	}
	err := keyRange{from, to}.records(c.stored, func(k forerun.Key) bool {
		c.keys = append(c.keys, k)
		c.size += clearedCost + len(k.Name)
		return c.size <= maxCleared
	})
	if err == nil && c.size > maxCleared {
		err = forerun.Errorf(forerun.TooLarge, "state", "The names of the records that the command removes take more than %d MiB. Remove some with DEL first.", maxCleared>>20)
	}
	return err
}

// Set notes a record.
func (c *changed) Set(key, _ []byte) error {
	c.note(key)
	return nil
}

// Delete notes a record.
func (c *changed) Delete(key []byte) error {
	c.note(key)
	return nil
}

func (c *changed) note(key []byte) {
	if c == nil || !command.IsRecordKey(key) {
		return
	}
	if k, ok := command.ParseRecordKey(key); ok {
		c.keys = append(c.keys, k)
	}
}

// commit writes an overlay under a new version while the caller holds its keys. If it is lazy, written waits until the
// operating system has it; it must be called, without the keys. If it is owed, the last room on the disk is for it. Nothing is
// written if ctx ends while it looks what changes.
func (s *Store) commit(ctx context.Context, o *command.Overlay, lazy, owed bool) (v forerun.Version, written func() error, err error) {
	c := s.newChange(ctx, o)
	if s.watch.any() || s.announce.any() {
		c.changed = &changed{stored: c.stored}
	}
	if err := c.fill(); err != nil {
		return 0, nil, cmp.Or(context.Cause(ctx), broken(err))
	}
	err = s.room.admit(owed || !o.Grows())
	if err == nil && !owed {
		err = c.bill.admit(s.room)
	}
	if err != nil {
		_ = c.Close() // of what was not applied
		return 0, nil, err
	}
	if c.changed != nil {
		c.changed.keys = o.InOrder(c.changed.keys)
		s.announce.tell(c.changed.keys, 0)
	}
	if v, err = s.enterAndTell(c, lazy); err != nil {
		return 0, nil, err
	}
	written = func() error { return nil }
	if lazy {
		written = func() error { return s.disk.written(c.Batch) }
		return v, written, nil
	}
	if err := c.Close(); err != nil {
		return 0, nil, broken(err)
	}
	return v, written, nil
}

// enterAndTell puts the batch in the log, and tells who watches.
func (s *Store) enterAndTell(c *change, lazy bool) (forerun.Version, error) {
	if c.changed == nil {
		return s.enterLog(c, lazy)
	}
	var before *pebble.Snapshot // which has what is cleared
	if len(c.cleared) > 0 {
		before = s.db.NewSnapshot()
		defer before.Close()
	}
	v, err := s.enterLog(c, lazy)
	if err != nil {
		return 0, err
	}
	for _, cleared := range c.cleared {
		err := cleared.records(reader{db: before}, func(k forerun.Key) bool { s.watch.tell([]forerun.Key{k}, v); return true })
		if err != nil { // they could be read just before
			fmt.Fprintf(os.Stderr, "store: who watches is not told of all that was removed: %v\n", err)
		}
	}
	s.watch.tell(c.changed.keys, v)
	return v, nil
}

// enterLog gives the batch its version and its place in the log.
func (s *Store) enterLog(c *change, lazy bool) (forerun.Version, error) {
	m := &s.commits
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := s.disk.failure(); err != nil {
		return 0, err
	}
	v := m.assigned + 1
	if err := m.setAside(c.Batch, v); err != nil {
		return 0, broken(err)
	}
	if err := c.bill.enter(c.Batch); err != nil {
		return 0, broken(err)
	}
	s.room.taken.Add(int64(c.Len()))
	for _, at := range c.versions {
		command.SetVersion(c.Repr()[at:], v)
	}
	var err error
	if lazy {
		err = s.db.ApplyNoSyncWait(c.Batch, pebble.Sync) // Sync: hand it to the operating system, see walFS
	} else {
		m.strict = v
		err = s.db.Apply(c.Batch, pebble.NoSync)
	}
	if err != nil {
		return 0, s.disk.fail(err)
	}
	m.assigned = v
	return v, nil
}

// setAside adds to the batch, long before they run out, more versions.
func (c *commits) setAside(b *pebble.Batch, v forerun.Version) error {
	if v+reserve/2 <= c.reserved {
		return nil
	}
	c.reserved = v + reserve
	return b.Set(reserveKey, binary.BigEndian.AppendUint64(nil, uint64(c.reserved)), nil)
}
