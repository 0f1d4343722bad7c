package resp

import (
	"strconv"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestTellingOfManyRecords: who waits for many records is told of each at a cost that does not depend on how many.
func TestTellingOfManyRecords(t *testing.T) {
	const records = 200_000
	h := newSpace()
	w := &waiter{wake: make(chan struct{}, 1)}
	for i := range records {
		w.keys.Add(forerun.Key{Space: "s", Name: strconv.Itoa(i)})
	}
	h.await(w)
	defer h.leave(w)
	begin := time.Now()
	for range 2 {
		for _, key := range w.keys.List {
			h.changed(key)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Fatalf("to tell of %d records took %v", records, took)
		}
	}
	for i := range records {
		if key, ok := h.next(w); !ok || key != w.keys.List[i] {
			t.Fatalf("the change %d is %v, %v", i, key, ok)
		}
	}
	if key, ok := h.next(w); ok {
		t.Errorf("it is told of %v twice", key)
	}
}
