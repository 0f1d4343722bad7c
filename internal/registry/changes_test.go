package registry

import (
	"sync/atomic"
	"testing"
)

// TestOnChange: a listener hears of updates and deletions of actions and of packages, once Changes has grown.
func TestOnChange(t *testing.T) {
	r, _ := open(t)
	var heard atomic.Uint64
	r.OnChange(func() { heard.Store(r.Changes()) })
	f := name("/guest/tools/f")
	for _, c := range []struct {
		what   string
		change func() error
	}{
		{"a new action", func() error { put(t, r, "/guest/tools/f", "1"); return nil }},
		{"an update of a package", func() error { pack(t, r, f); return nil }},
		{"a deletion", func() error { _, err := r.DeleteAction(t.Context(), f); return err }},
	} {
		before := r.Changes()
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		if heard.Load() <= before {
			t.Errorf("nothing is heard of %s", c.what)
		}
	}
}
