package embedded

import (
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/state"
)

// TestReclaims joins what was removed of one space.
func TestReclaims(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Stored: accounting(state.Allowance{Bytes: -1})})
	defer closed(t, s)
	set(t, s, "ada/values", "b", 10)
	if s.newChange(t.Context(), nil).reclaims != nil {
		t.Error("it notes what is removed though there is room")
	}
	var r reclaims
	for _, key := range []string{"b", "a", "c"} {
		r.note([]byte("mada/values\x00\x01"+key), []byte("mada/values\x00\x01"+key), 5)
	}
	r.note([]byte("mbob/values\x00\x01x"), []byte("mbob/values\x00\x01y"), 7)
	r.note([]byte("s/format"), []byte("s/format"), 7)
	spans := r.take()
	if len(spans) != 2 || len(r.take()) != 0 {
		t.Fatalf("%d spans", len(spans))
	}
	for _, span := range spans {
		got := fmt.Sprintf("%q %q %d", span.first, span.last, span.bytes)
		if got != `"mada/values\x00\x01a" "mada/values\x00\x01c" 15` && got != `"mbob/values\x00\x01x" "mbob/values\x00\x01y" 7` {
			t.Error(got)
		}
	}
}
