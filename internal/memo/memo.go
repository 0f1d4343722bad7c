// Package memo is the memo table: what committed executions of actions did, by
// the tenant who invoked them, by what was executed (forerun.Action.Digest) and
// by the SHA-256 of the input's bytes as they were delivered.
//
// A tenant sees and fills rows of its own only, within bounds of its own; the
// rows of which a record was written since go first, and then those that were
// not asked for longest. When all tenants together have
// too much, such rows of the tenant that has most go: none loses any for others
// that has less than an equal part. Errors are not kept, since a
// forerun.Row is of a success. The table lives in memory: after a start it is
// empty. Whether a row may stand for an execution, or only predicts, is not
// decided here.
package memo

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// The bounds of a tenant's rows, and of all rows together, if Options says nothing.
const (
	DefaultRows  = 5000
	DefaultBytes = 64 << 20
	DefaultTotal = 512 << 20
)

// MaxRow is how many bytes a row may take; a larger one is not kept.
const MaxRow = 1 << 20

// Options bound the table.
type Options struct {
	Rows  int // of one tenant; 0: DefaultRows
	Bytes int // of one tenant's rows; 0: DefaultBytes
	Total int // bytes of all tenants' rows, each of which has rowCost at least; 0: DefaultTotal
}

// Table has the rows of all tenants. It may be used concurrently.
type Table struct {
	options Options
	counts  counts

	mu      sync.RWMutex // guards tenants
	tenants map[string]*Tenant

	graph  sync.RWMutex // guards spaces; after all others
	spaces map[string][]*space

	fitting sync.Mutex // held while rows go for those of other tenants; before any other
	ranks   ranks
}

// counts are what Stats shows.
type counts struct {
	hits, misses, evictions atomic.Uint64
	rows, bytes             atomic.Int64
}

// Stats are counters since the start, and how full the table is.
type Stats struct {
	Hits, Misses uint64 // of Find
	Evictions    uint64 // of rows that had to go for others
	Rows         int64
	Bytes        int64
}

// New makes an empty table.
func New(o Options) *Table {
	if o.Rows == 0 {
		o.Rows = DefaultRows
	}
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	if o.Total == 0 {
		o.Total = DefaultTotal
	}
	return &Table{options: o, tenants: make(map[string]*Tenant), spaces: make(map[string][]*space)}
}

// Tenant is the part of the table that an invoking tenant has.
func (t *Table) Tenant(name string) *Tenant {
	t.mu.RLock()
	m := t.tenants[name]
	t.mu.RUnlock()
	if m != nil {
		return m
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m = t.tenants[name]; m == nil {
		m = &Tenant{
			table: t, codes: make(map[forerun.Digest]map[inputSum]*entry), entries: make(map[*forerun.Row]*entry), homes: make(map[forerun.Home]int),
			spaces: make(map[string]*space),
		}
		m.order.next, m.order.previous = &m.order, &m.order
		t.tenants[name] = m
		t.ranks.enter(m)
	}
	return m
}

// Forget forgets the rows of a tenant that is gone. What still runs for it learns nothing more.
func (t *Table) Forget(tenant string) {
	t.mu.Lock()
	m := t.tenants[tenant]
	delete(t.tenants, tenant)
	t.mu.Unlock()
	if m != nil {
		m.close()
	}
}

// Stats tells how the table fares.
func (t *Table) Stats() Stats {
	c := &t.counts
	return Stats{Hits: c.hits.Load(), Misses: c.misses.Load(), Evictions: c.evictions.Load(), Rows: c.rows.Load(), Bytes: c.bytes.Load()}
}

// Tenant has the rows of one tenant. It may be used concurrently.
type Tenant struct {
	table *Table

	mu      sync.Mutex // guards the rest
	codes   map[forerun.Digest]map[inputSum]*entry
	entries map[*forerun.Row]*entry
	homes   map[forerun.Home]int // how many rows rest on each
	spaces  map[string]*space    // of the records that rows read
	order   entry                // of a ring of all entries: next is the one that was asked for last
	rows    int
	bytes   int
	closed  bool

	ranked, place int // its bytes, and its place among the ranks, which guard them
}

type inputSum [sha256.Size]byte

// entry is a row in its place.
type entry struct {
	code           forerun.Digest
	input          inputSum
	row            *forerun.Row
	size           int
	next, previous *entry

	reads       []link // as the row's
	sum         uint64 // of the records' marks when it was kept, or confirmed
	confirmed   bool   // with that sum and
	deployments uint64 // this count of them
	stale       bool   // a record was written since
}

// Find returns the row of an execution of code on an input, or nil.
func (m *Tenant) Find(code forerun.Digest, input json.RawMessage) *forerun.Row {
	sum := inputSum(sha256.Sum256(input))
	row := m.find(code, sum)
	if row == nil {
		m.table.counts.misses.Add(1)
	} else {
		m.table.counts.hits.Add(1)
	}
	return row
}

func (m *Tenant) find(code forerun.Digest, sum inputSum) *forerun.Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.codes[code][sum]
	if e == nil {
		return nil
	}
	e.unlink()
	m.push(e)
	return e.row
}

// Learn keeps the row of an execution of code on an input, in the place of an older one. A row that is too large is not kept,
// nor is the older one then.
func (m *Tenant) Learn(code forerun.Digest, input json.RawMessage, row *forerun.Row) (before *forerun.Row) {
	before = m.learn(&entry{code: code, input: inputSum(sha256.Sum256(input)), row: row, size: size(row)})
	m.table.fit()
	return before
}

// Keeps reports whether a row is small enough to be kept.
func (m *Tenant) Keeps(row *forerun.Row) bool {
	return whole(row) <= min(MaxRow, m.table.options.Bytes)
}

func (m *Tenant) learn(e *entry) (before *forerun.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	if old := m.codes[e.code][e.input]; old != nil {
		before = old.row
		m.remove(old)
	}
	if !m.Keeps(e.row) {
		return before
	}
	if m.codes[e.code] == nil {
		m.codes[e.code] = make(map[inputSum]*entry)
	}
	m.codes[e.code][e.input], m.entries[e.row] = e, e
	m.push(e)
	m.settle(e)
	m.count(1, e.size+m.join(e))
	for m.rows > m.table.options.Rows || m.bytes > m.table.options.Bytes {
		m.evict()
	}
	return before
}

// fit has rows go until all tenants' together are within their bound.
func (t *Table) fit() {
	if t.counts.bytes.Load() <= int64(t.options.Total) {
		return
	}
	t.fitting.Lock()
	defer t.fitting.Unlock()
	for t.counts.bytes.Load() > int64(t.options.Total) {
		if m := t.ranks.first(); m != nil {
			m.shrink()
		}
	}
}

// shrink has a row go, if there is one still.
func (m *Tenant) shrink() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows > 0 {
		m.evict()
	}
}

// evict has a row go of which a record was written, or else the one that was not asked for longest.
func (m *Tenant) evict() {
	if !m.order.previous.stale {
		m.sort()
	}
	m.remove(m.order.previous)
	m.table.counts.evictions.Add(1)
}

// close drops all rows, and takes no more.
func (m *Tenant) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for m.rows > 0 {
		m.remove(m.order.next)
	}
	m.leaveSpaces()
	m.table.ranks.leave(m)
}

func (m *Tenant) remove(e *entry) {
	e.unlink()
	if m.entries[e.row] == e {
		delete(m.entries, e.row)
	}
	of := m.codes[e.code]
	if delete(of, e.input); len(of) == 0 {
		delete(m.codes, e.code)
	}
	m.unsettle(e)
	m.count(-1, -e.size-e.part())
}

func (m *Tenant) count(rows, bytes int) {
	m.rows += rows
	m.bytes += bytes
	m.table.counts.rows.Add(int64(rows))
	m.table.counts.bytes.Add(int64(bytes))
	m.table.ranks.move(m, m.bytes)
}

// push puts an entry before all others.
func (m *Tenant) push(e *entry) {
	e.previous, e.next = &m.order, m.order.next
	e.next.previous, m.order.next = e, e
}

// pushBehind puts an entry behind all others.
func (m *Tenant) pushBehind(e *entry) {
	e.next, e.previous = &m.order, m.order.previous
	e.previous.next, m.order.previous = e, e
}

func (e *entry) unlink() { e.previous.next, e.next.previous = e.next, e.previous }

// What a row takes beside the texts in it, about, and each record or callee of it.
const (
	rowCost    = 560
	memberCost = 80
)

// recordSize is about how many bytes a record takes that rows read, beside what it takes in each row.
func recordSize(key forerun.Key) int { return 160 + len(key.Name) }

// whole is about how many bytes a row takes that alone reads its records.
func whole(row *forerun.Row) int {
	n := size(row)
	for _, seen := range row.Reads {
		n += recordSize(seen.Key)
	}
	return n
}

// size is about how many bytes a row takes.
func size(row *forerun.Row) int {
	n := rowCost + len(row.Input) + len(row.Output) + memberCost*(len(row.Callees)+len(row.Below)+len(row.Reads))
	for _, list := range [][]forerun.Callee{row.Callees, row.Below} {
		for _, c := range list {
			n += len(c.Action) + len(c.Input)
		}
	}
	for _, seen := range row.Reads {
		n += len(seen.Key.Space) + len(seen.Key.Name)
	}
	return n
}
