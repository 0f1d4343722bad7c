package embedded

import (
	"cmp"
	"context"
	"encoding/binary"
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
	changed  *changed
}

// Clear removes a range of keys.
func (c *change) Clear(from, to []byte) error {
	if err := c.changed.Clear(from, to); err != nil {
		return err
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
	return c.changed.Set(key, value)
}

// Delete removes a key.
func (c *change) Delete(key []byte) error {
	if err := c.changed.Delete(key); err != nil {
		return err
	}
	return c.Batch.Delete(key, nil)
}

// changed is a command.Changes that only notes which records change; nil notes nothing.
type changed struct {
	stored command.Reader
	keys   []forerun.Key
}

// Clear notes the records in a range of keys.
func (c *changed) Clear(from, to []byte) error {
	if c == nil || !command.IsRecordKey(from) {
		return nil
	}
	return c.stored.Scan(from, to, false, func(key, _ []byte) bool { c.note(key); return true })
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
// operating system has it; it must be called, without the keys. If it is lazy or owed, the last room on the disk is for it. Nothing is
// written if ctx ends while it looks what changes.
func (s *Store) commit(ctx context.Context, o *command.Overlay, lazy, owed bool) (v forerun.Version, written func() error, err error) {
	if err := s.room.admit(o, owed || lazy); err != nil {
		return 0, nil, err
	}
	c := &change{Batch: s.db.NewBatch()}
	if s.watch.any() {
		c.changed = &changed{stored: command.NewOverlay(ctx, reader{s.db})}
	}
	if err := o.Flush(c); err != nil {
		return 0, nil, cmp.Or(context.Cause(ctx), broken(err))
	}
	if v, err = s.enterLog(c, lazy); err != nil {
		return 0, nil, err
	}
	if c.changed != nil {
		s.watch.tell(c.changed.keys, v)
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
