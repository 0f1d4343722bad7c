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
}

// Kept lists a tenant's rows, the one that was asked for last first.
func (m *Tenant) Kept() []Kept {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Kept, 0, m.rows)
	for e := m.order.next; e != &m.order; e = e.next {
		list = append(list, Kept{e.row, e.input, e.size})
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
	which := make(map[*forerun.Row]bool, len(rows))
	for _, row := range rows {
		which[row] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.order.next; e != &m.order; {
		next := e.next
		if which[e.row] {
			m.remove(e)
			dropped++
		}
		e = next
	}
	return dropped
}
