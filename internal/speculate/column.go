package speculate

import (
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// column is the part of the data buffer that belongs to one slot: its reads, and its writes, which are invisible outside
// of the invocation.
type column struct {
	order    []*entry               // as they came
	entries  map[forerun.Key]*entry // of a large one
	commands []any                  // that wrote, in order: they are executed again when the slot is promoted (rule R11)
	size     int                    // about how many bytes all that takes
	total    *int                   // of all columns of the invocation; nil: this one does not count
}

// grow counts bytes that the column takes more.
func (c *column) grow(bytes int) {
	c.size += bytes
	if c.total != nil {
		*c.total += bytes
	}
}

// maxColumn is how many bytes one column may take. A slot that wants more waits until it is the head.
const maxColumn = 64 << 20

// maxColumns bounds the bytes of all columns of an invocation. A slot with a small column is not held to it.
const (
	maxColumns = 4 * maxColumn
	largeSize  = 1 << 20
)

// isFull reports whether the column of a slot may not grow. Either it has reached the bound of one column, or it is
// large and the invocation or the server has no room.
func (m *Machine) isFull(s *slot) bool {
	return s.column.size > maxColumn || s.column.size > largeSize && (m.full || m.Buffered() > maxColumns)
}

// Buffered is the approximate size of all columns in bytes. The column of a speculative slot counts until its commit,
// because later slots may read from it.
func (m *Machine) Buffered() int { return m.buffered }

// Approximate overheads in bytes: of an entry beside its name and images, and of a command beside its arguments.
const (
	entryCost   = 256
	commandCost = 256
)

// entry is a record in a column.
type entry struct {
	key forerun.Key

	read    bool            // R: the slot depends on the earlier value of the record
	seen    Image           // the value at that version; the first read fixes it (rule R1). nil: a row stands for the read, and only the version is known
	from    *entry          // the entry that was read; nil: the store's
	stamp   uint64          // of that value
	version forerun.Version // of the store's
	blamed  []blame         // such reads were squashed in the past

	wrote   bool            // W
	value   Image           // the value that the slot wrote
	made    uint64          // stamp of value: each write has its own
	flushed bool            // value is in the store, since the slot was promoted,
	applied forerun.Version // with this version; 0: that there is none
	into    *entry          // of the caller's column that it was merged into
}

// largeColumn is how many entries a column, or another list of records, without a map may have.
const largeColumn = 16

func (c *column) at(key forerun.Key) *entry {
	if c.entries != nil {
		return c.entries[key]
	}
	for _, e := range c.order {
		if e.key == key {
			return e
		}
	}
	return nil
}

func (c *column) add(e *entry) *entry {
	if c.order == nil {
		c.order = make([]*entry, 0, 4)
	}
	c.order = append(c.order, e)
	c.grow(entryCost + len(e.key.Space) + len(e.key.Name))
	switch {
	case c.entries != nil:
		c.entries[e.key] = e
	case len(c.order) > largeColumn:
		c.entries = make(map[forerun.Key]*entry)
		for _, e := range c.order {
			c.entries[e.key] = e
		}
	}
	if e.seen != nil {
		c.grow(e.seen.Size())
	}
	return e
}

// keys are the names in a request, in its order.
type keys struct {
	list []forerun.Key
	set  map[forerun.Key]bool // of a long list, once one was looked for
}

func (k *keys) has(key forerun.Key) bool {
	if len(k.list) <= largeColumn {
		return slices.Contains(k.list, key)
	}
	if k.set == nil {
		k.set = make(map[forerun.Key]bool, len(k.list))
		for _, key := range k.list {
			k.set[key] = true
		}
	}
	return k.set[key]
}

// versions are records as they were read, each once.
type versions struct {
	list  []forerun.Seen
	index map[forerun.Key]int // of a long list, once a record was looked for
}

func (v *versions) of(key forerun.Key) (version forerun.Version, ok bool) {
	if v.index == nil && len(v.list) > largeColumn {
		v.index = make(map[forerun.Key]int, len(v.list))
		for i, seen := range v.list {
			v.index[seen.Key] = i
		}
	}
	if v.index != nil {
		i, ok := v.index[key]
		if !ok {
			return 0, false
		}
		return v.list[i].Version, true
	}
	for i := range v.list {
		if v.list[i].Key == key {
			return v.list[i].Version, true
		}
	}
	return 0, false
}

// add notes a record that is not there yet.
func (v *versions) add(seen forerun.Seen) {
	if v.list == nil {
		v.list = make([]forerun.Seen, 0, 4)
	}
	v.list = append(v.list, seen)
	if v.index != nil {
		v.index[seen.Key] = len(v.list) - 1
	}
}

// see notes the value of a record of which only the version was known.
func (c *column) see(e *entry, image Image) {
	e.seen = image
	c.grow(image.Size())
}

// settle releases the values that were read, and the links to the entries they came from, once no check needs them.
// Otherwise, in a loop whose iterations each read the previous one's writes, the last iteration would retain all of
// them.
func (c *column) settle() {
	for _, e := range c.order {
		if e.read {
			e.version, _ = e.seenVersion()
		}
		if e.seen != nil {
			c.grow(-e.seen.Size())
		}
		e.seen, e.from, e.blamed = nil, nil, nil
	}
}

// write notes the record that a command made.
func (c *column) write(key forerun.Key, value Image, stamp uint64) {
	e := c.at(key)
	if e == nil {
		e = c.add(&entry{key: key})
	}
	if e.wrote {
		c.grow(-e.value.Size())
	}
	e.wrote, e.value, e.made = true, value, stamp
	c.grow(value.Size())
}

// image is the slot's present view of the record.
func (e *entry) image() Image {
	if e.wrote {
		return e.value
	}
	return e.seen
}

// origin is the entry that a forwarded value is in now, behind merges.
func (e *entry) origin() *entry {
	o := e.from
	for o != nil && o.into != nil {
		o = o.into
	}
	return o
}

// isSource tells whether two reads took the same value from the same place.
func (e *entry) isSource(o *entry) bool {
	if e.from == nil && o.from == nil {
		return e.version == o.version
	}
	return e.origin() == o.origin() && e.stamp == o.stamp
}

// seenVersion is the version of the value that was read, if the value was in the store then (rule R8). Otherwise exact is false.
func (e *entry) seenVersion() (v forerun.Version, exact bool) {
	o := e.origin()
	if o == nil {
		return e.version, true
	}
	return o.applied, o.made == e.stamp && o.flushed
}
