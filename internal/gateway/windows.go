package gateway

import "sync"

// Bounds of what QUIC clients may send before it is read.
const (
	firstWindow        = 12 << 10 // bytes on a new connection
	maxStrangerWindows = 64 << 20
	firstWindows       = (MaxStrangers + maxHandshakes) * firstWindow // of all strangers: larger windows leave this much free
	maxTenantWindows   = maxBodies                                    // of one tenant
	maxVisitorWindows  = maxTenantWindows / 2                         // of one tenant, when a visitor's window grows
)

// Windows bounds the receive windows of QUIC connections: together for strangers, and for each tenant. The zero value is ready to use.
type Windows struct {
	mu sync.Mutex // guards all of it, and the windows
	of map[string]int64
}

// credit is what one connection may send before it is read.
type credit struct {
	all     *Windows
	of      string // the tenant; empty: a stranger
	visitor bool   // of the tenant's web actions: it has shown no key
	bytes   int64  // 0: the connection is gone
}

// open makes the window of a stranger's new connection. It reports false if they have too much.
func (w *Windows) open() (*credit, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = make(map[string]int64)
	}
	its := &credit{all: w}
	return its, its.add(firstWindow)
}

// most is how much the owner's windows may have together when this one has so much. The caller holds mu.
func (w *credit) most(bytes int64) int64 {
	switch grown := bytes > firstWindow; {
	case w.of == "" && grown:
		return maxStrangerWindows - firstWindows
	case w.of == "":
		return maxStrangerWindows
	case w.visitor && grown:
		return maxVisitorWindows
	}
	return maxTenantWindows
}

// add changes a window if its owner may have as much. The caller holds mu.
func (w *credit) add(bytes int64) bool {
	if w.all.of[w.of]+bytes > w.most(w.bytes+bytes) {
		return false
	}
	w.put(bytes)
	return true
}

// put adds bytes to a window. The caller holds mu.
func (w *credit) put(bytes int64) {
	w.all.of[w.of] += bytes
	w.bytes += bytes
}

// take gives bytes of a window back. The caller holds mu.
func (w *credit) take() (bytes int64) {
	bytes, w.bytes = w.bytes, 0
	if w.all.of[w.of] -= bytes; w.all.of[w.of] == 0 {
		delete(w.all.of, w.of)
	}
	return bytes
}

// grow reports whether a window may be so much larger.
func (w *credit) grow(by int64) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return w.bytes > 0 && w.add(by)
}

// moveTo makes a window a tenant's. It reports false if that has too much.
func (w *credit) moveTo(tenant string, visitor bool) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.of == tenant || w.bytes == 0 {
		w.visitor = visitor
		return true
	}
	from, bytes := *w, w.take()
	if w.of, w.visitor = tenant, visitor; w.add(bytes) {
		return true
	}
	w.of, w.visitor = from.of, from.visitor
	w.put(bytes)
	return false
}

// free ends a window. It may be called twice.
func (w *credit) free() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.take()
}
