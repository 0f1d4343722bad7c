package gateway

import (
	"bytes"
	"net/http"
	"testing"
)

// TestWindows: strangers together, and each tenant, may have so much that was not read, and a connection that has ended has nothing.
func TestWindows(t *testing.T) {
	w := new(Windows)
	first, second := openWindow(t, w), openWindow(t, w)
	if !first.grow(maxStrangerWindows-firstWindows-2*firstWindow) || first.grow(1) || second.grow(1) {
		t.Error("strangers' windows may grow to another bound")
	}
	if !first.moveTo("ada", false) || !second.grow(1) {
		t.Error("a tenant's window counts among the strangers'")
	}
	if !first.grow(maxTenantWindows-first.bytes) || second.moveTo("ada", false) || !second.moveTo("bob", false) {
		t.Errorf("tenants may have another bound: %v", w.of)
	}
	first.free()
	first.free()
	if first.grow(1) || !first.moveTo("bob", false) || !second.moveTo("ada", false) {
		t.Errorf("a connection that has ended has a window: %v", w.of)
	}
	second.free()
	if len(w.of) != 0 {
		t.Errorf("when all have ended: %v", w.of)
	}
}

func openWindow(t *testing.T, w *Windows) *credit {
	t.Helper()
	c, ok := w.open()
	if !ok {
		t.Fatal("a stranger has no window")
	}
	return c
}

// TestLargeWindowsLeaveRoom: strangers whose windows grow leave the first windows of all others free, and visitors of a tenant's web actions leave
// a part to the tenant.
func TestLargeWindowsLeaveRoom(t *testing.T) {
	w := new(Windows)
	for large := openWindow(t, w); large.grow(firstWindow); {
	}
	for range MaxStrangers + maxHandshakes - 1 {
		openWindow(t, w)
	}
	w = new(Windows)
	visitor, owner := openWindow(t, w), openWindow(t, w)
	if !visitor.moveTo("ada", true) || !visitor.grow(maxVisitorWindows-firstWindow) || visitor.grow(1) {
		t.Errorf("a visitor may have another bound: %v", w.of)
	}
	another, large := openWindow(t, w), openWindow(t, w)
	if !another.moveTo("ada", true) || !large.grow(1) || large.moveTo("ada", true) || w.of[""] != 2*firstWindow+1 {
		t.Errorf("visitors with a first window, and with a larger one: %v", w.of)
	}
	if !owner.moveTo("ada", false) || !owner.grow(connWindow) {
		t.Errorf("the tenant has no window: %v", w.of)
	}
	if !visitor.moveTo("ada", false) || !visitor.grow(1) {
		t.Error("a visitor that has shown the key is a visitor")
	}
}

// TestWindowsOverQUIC: a large body makes its connection's window grow in its tenant's part, and the end of the connection gives it back.
func TestWindowsOverQUIC(t *testing.T) {
	onPipes(t, func(w http.ResponseWriter, r *http.Request) {
		seatAll(w, r)
		if _, err := Body(w, r, 32<<20); err != nil {
			t.Error(err)
		}
	}, func(t *testing.T, s *secured) {
		has := func(of string) int64 {
			s.common.Windows.mu.Lock()
			defer s.common.Windows.mu.Unlock()
			return s.common.Windows.of[of]
		}
		c := s.client("h3")
		if status, _, err := s.ask(c, "POST", "/", "ada", bytes.NewReader(make([]byte, 16<<20))); err != nil || status != 200 {
			t.Errorf("%d %v", status, err)
		}
		if ada, strangers := has("ada"), has(""); ada <= firstWindow || ada > connWindow || strangers != 0 {
			t.Errorf("the tenant has %d bytes, strangers %d", ada, strangers)
		}
		c.CloseIdleConnections()
		eventually(t, "the window is given back", func() bool { return has("ada") == 0 })
	})
}
