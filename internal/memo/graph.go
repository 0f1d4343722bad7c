package memo

import (
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// The state graph leads from records to the rows that read them. A write marks the record by one number, whatever the number of its rows. The
// numbers only grow. So while the sum of a row's numbers is what it was at a moment, none of its records was written since. Rows whose
// records were written go first when others need room. They predict until then.

// Written marks a record before a write of it can be seen. The rows that read it count as changed from then on. It does not block.
func (t *Table) Written(key forerun.Key) {
	t.graph.RLock()
	all := t.spaces[key.Space]
	t.graph.RUnlock()
	for _, s := range all {
		s.wrote(key.Name)
	}
}

// space has the records of one key space that rows of one tenant read.
type space struct {
	mu      sync.RWMutex // guards records; after a tenant's
	records map[string]*record

	fresh   sync.Mutex // guards written, beside mu; after it
	written map[*record]bool
}

// record is one that rows read.
type record struct {
	writes  atomic.Uint64
	written atomic.Bool // it is among the written ones of its space
	name    string
	in      *space
	rows    link // of a ring: the tenant's lock guards it
}

// link is a row's read of a record.
type link struct {
	row            *entry
	of             *record
	next, previous *link
}

func (s *space) wrote(name string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.records[name]
	if r == nil {
		return
	}
	r.writes.Add(1)
	if r.written.CompareAndSwap(false, true) {
		s.fresh.Lock()
		defer s.fresh.Unlock()
		s.written[r] = true
	}
}

// take removes and returns the records that were written since it was called before.
func (s *space) take() []*record {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*record, 0, len(s.written))
	for r := range s.written {
		r.written.Store(false)
		list = append(list, r)
	}
	clear(s.written)
	return list
}

// of is a record, new if no row has read it yet.
func (s *space) of(name string) (r *record, isNew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r = s.records[name]; r != nil {
		return r, false
	}
	r = &record{name: name, in: s}
	r.rows.next, r.rows.previous = &r.rows, &r.rows
	s.records[name] = r
	return r, true
}

func (s *space) forget(r *record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.records, r.name)
	delete(s.written, r)
}

// space is where the tenant's records of a key space are.
func (m *Tenant) space(name string) *space {
	if s := m.spaces[name]; s != nil {
		return s
	}
	s := &space{records: make(map[string]*record), written: make(map[*record]bool)}
	m.spaces[name] = s
	m.table.graph.Lock()
	defer m.table.graph.Unlock()
	all := m.table.spaces[name]
	m.table.spaces[name] = append(all[:len(all):len(all)], s) // Written may have the old list
	return s
}

// leaveSpaces has no record of the tenant marked any more.
func (m *Tenant) leaveSpaces() {
	m.table.graph.Lock()
	defer m.table.graph.Unlock()
	for name, mine := range m.spaces {
		var others []*space
		for _, s := range m.table.spaces[name] {
			if s != mine {
				others = append(others, s)
			}
		}
		if m.table.spaces[name] = others; others == nil {
			delete(m.table.spaces, name)
		}
	}
	clear(m.spaces)
}

// join links a new row with the records that it read, and tells how many bytes the new ones of these take.
func (m *Tenant) join(e *entry) (bytes int) {
	e.reads = make([]link, len(e.row.Reads))
	for i, read := range e.row.Reads {
		r, isNew := m.space(read.Key.Space).of(read.Key.Name)
		if isNew {
			bytes += recordSize(read.Key)
		}
		l := &e.reads[i]
		*l = link{row: e, of: r, next: r.rows.next, previous: &r.rows}
		l.next.previous, l.previous.next = l, l
	}
	e.sum = e.writes()
	return bytes
}

// part is the opposite of join. It tells how many bytes the records took that no row reads any more.
func (e *entry) part() (bytes int) {
	for i := range e.reads {
		l := &e.reads[i]
		l.next.previous, l.previous.next = l.previous, l.next
		if r := l.of; r.rows.next == &r.rows {
			r.in.forget(r)
			bytes += recordSize(e.row.Reads[i].Key)
		}
	}
	return bytes
}

// writes is the sum of the marks of a row's records.
func (e *entry) writes() (sum uint64) {
	for i := range e.reads {
		sum += e.reads[i].of.writes.Load()
	}
	return sum
}

// sort has the rows whose records were written go first.
func (m *Tenant) sort() {
	for _, s := range m.spaces {
		for _, r := range s.take() {
			for l := r.rows.next; l != &r.rows; l = l.next {
				if e := l.row; !e.stale && e.writes() != e.sum {
					e.stale = true
					e.unlink()
					m.pushBehind(e)
				}
			}
		}
	}
}

// Readers are the tenant's rows that read a record of a name.
func (m *Tenant) Readers(name string) (rows []*forerun.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.spaces {
		if r := s.records[name]; r != nil { // only under mu it changes
			for l := r.rows.next; l != &r.rows; l = l.next {
				rows = append(rows, l.row.row)
			}
		}
	}
	return rows
}

// Mark is a moment of a row: how often its records had been written.
type Mark struct {
	sum   uint64
	known bool
}

// Mark is the row's present moment. What is read of its records later may be confirmed.
func (m *Tenant) Mark(row *forerun.Row) Mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[row]; e != nil {
		return Mark{e.writes(), true}
	}
	return Mark{}
}

// Confirm notes that all records of a row had, at one moment behind a mark, the versions that it read, on disk and without an end. The
// code that it rests on was what it is at a count of deployments, of that moment or later.
func (m *Tenant) Confirm(row *forerun.Row, at Mark, deployments uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[row]
	if e == nil || !at.known {
		return
	}
	e.sum, e.confirmed, e.deployments = at.sum, true, deployments
	e.stale = e.stale && e.writes() != e.sum
}

// IsCurrent reports whether a row was confirmed, and no record of it was written since, nor anything deployed. If so, all is what it was at
// one moment behind the call: the marks only grow.
func (m *Tenant) IsCurrent(row *forerun.Row, deployments uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[row]
	return e != nil && e.confirmed && e.deployments == deployments && e.writes() == e.sum
}
