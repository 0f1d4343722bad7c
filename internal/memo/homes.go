package memo

import (
	"maps"
	"slices"

	"forerun.dev/forerun/internal/forerun"
)

// Homes are the deployments of actions that the tenant's rows rest on, each once.
func (m *Tenant) Homes() []forerun.Home {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.homes))
}

// DropOf drops the rows that rest on deployments that are gone, and tells how many there were.
func (m *Tenant) DropOf(gone map[forerun.Home]bool) (dropped int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for e := m.order.next; e != &m.order; {
		next := e.next
		if slices.ContainsFunc(e.row.Homes(), func(h forerun.Home) bool { return gone[h] }) {
			m.remove(e)
			dropped++
		}
		e = next
	}
	return dropped
}

// settle counts what a new row rests on.
func (m *Tenant) settle(e *entry) {
	for _, h := range e.row.Homes() {
		m.homes[h]++
	}
}

// unsettle is the opposite of settle.
func (m *Tenant) unsettle(e *entry) {
	for _, h := range e.row.Homes() {
		if m.homes[h]--; m.homes[h] == 0 {
			delete(m.homes, h)
		}
	}
}
