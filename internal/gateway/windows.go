package gateway

import "sync"

// Bounds of what QUIC clients may send before it is read.
const (
	firstWindow        = 12 << 10 // bytes on a new connection; all connections and handshakes of strangers together stay below maxStrangerWindows
	maxStrangerWindows = 64 << 20
	maxTenantWindows   = maxBodies // of one tenant
)

// Windows bounds the receive windows of QUIC connections: together for strangers, and for each tenant. The zero value is ready to use.
type Windows struct {
	mu sync.Mutex // guards all of it, and the windows
	of map[string]int64
}

// credit is what one connection may send before it is read.
type credit struct {
	all   *Windows
	of    string // the tenant; empty: a stranger
	bytes int64  // 0: the connection is gone
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

// add changes a window if its owner may have as much. The caller holds mu.
func (w *credit) add(bytes int64) bool {
	most := int64(maxTenantWindows)
	if w.of == "" {
		most = maxStrangerWindows
	}
	if w.all.of[w.of]+bytes > most {
		return false
	}
	w.all.of[w.of] += bytes
	w.bytes += bytes
	return true
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
func (w *credit) moveTo(tenant string) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	if w.of == tenant || w.bytes == 0 {
		return true
	}
	from := w.of
	bytes := w.take()
	if w.of = tenant; w.add(bytes) {
		return true
	}
	w.of = from
	w.add(bytes) // it has just been given back
	return false
}

// free ends a window. It may be called twice.
func (w *credit) free() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.take()
}
