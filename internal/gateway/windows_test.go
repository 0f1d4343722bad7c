package gateway

import (
	"bytes"
	"net/http"
	"testing"
)

// TestWindows: strangers together, and each tenant, may have so much that was not read, and a connection that has ended has nothing.
func TestWindows(t *testing.T) {
	if (MaxStrangers+maxHandshakes)*firstWindow > maxStrangerWindows {
		t.Error("strangers may have more")
	}
	w := new(Windows)
	open := func() *credit {
		t.Helper()
		c, ok := w.open()
		if !ok {
			t.Fatal("a stranger has no window")
		}
		return c
	}
	first, second := open(), open()
	if !first.grow(maxStrangerWindows-2*firstWindow) || first.grow(1) || second.grow(1) {
		t.Error("strangers may have another bound")
	}
	if _, ok := w.open(); ok {
		t.Error("one more stranger has a window")
	}
	if !first.moveTo("ada") || !second.grow(1) {
		t.Error("a tenant's window counts among the strangers'")
	}
	if !first.grow(maxTenantWindows-maxStrangerWindows) || second.moveTo("ada") || !second.moveTo("bob") {
		t.Errorf("tenants may have another bound: %v", w.of)
	}
	first.free()
	first.free()
	if first.grow(1) || !first.moveTo("bob") || !second.moveTo("ada") {
		t.Errorf("a connection that has ended has a window: %v", w.of)
	}
	second.free()
	if len(w.of) != 0 {
		t.Errorf("when all have ended: %v", w.of)
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
