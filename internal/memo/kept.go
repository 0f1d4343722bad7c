package memo

import (
	"crypto/sha256"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Kept is a row that the table has.
type Kept struct {
	Row   *forerun.Row
	Input [sha256.Size]byte // SHA-256 of the input as it was delivered
	Bytes int               // that the row takes, about
	Stale bool              // a record that it read was written since
}

// Kept lists a tenant's rows, the one that was asked for last first.
func (m *Tenant) Kept() []Kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sort()
	list := make([]Kept, 0, m.rows)
	for e := m.order.next; e != &m.order; e = e.next {
		list = append(list, Kept{e.row, e.input, e.size, e.stale})
	}
	return list
}

// Look is Find that neither counts nor keeps the row for longer.
func (m *Tenant) Look(code forerun.Digest, input json.RawMessage) *forerun.Row {
	sum := inputSum(sha256.Sum256(input))
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.codes[code][sum]; e != nil {
		return e.row
	}
	return nil
}

// Drop drops rows, and tells how many of them were there still.
func (m *Tenant) Drop(rows []*forerun.Row) (dropped int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, row := range rows {
		if e := m.entries[row]; e != nil {
			m.remove(e)
			dropped++
		}
	}
	return dropped
}
