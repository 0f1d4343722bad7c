package memo

import (
	"container/heap"
	"sync"
)

// ranks are the tenants by the bytes that they have.
type ranks struct {
	mu   sync.Mutex // guards the rest; after a tenant's
	heap byBytes
}

func (r *ranks) enter(m *Tenant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	heap.Push(&r.heap, m)
}

func (r *ranks) leave(m *Tenant) {
	r.mu.Lock()
	defer r.mu.Unlock()
	heap.Remove(&r.heap, m.place)
}

func (r *ranks) move(m *Tenant, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.ranked = bytes
	heap.Fix(&r.heap, m.place)
}

// first is the one that has most, or nil.
func (r *ranks) first() *Tenant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.heap) == 0 {
		return nil
	}
	return r.heap[0]
}

// byBytes is a heap with the one first that has most.
type byBytes []*Tenant

func (b byBytes) Len() int           { return len(b) }
func (b byBytes) Less(i, j int) bool { return b[i].ranked > b[j].ranked }

func (b byBytes) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].place, b[j].place = i, j
}

// Push is called with a *Tenant.
func (b *byBytes) Push(m any) {
	t := m.(*Tenant)
	t.place = len(*b)
	*b = append(*b, t)
}

// Pop takes the last.
func (b *byBytes) Pop() any {
	last := len(*b) - 1
	t := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	return t
}
