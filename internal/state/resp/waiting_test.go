package resp

import (
	"strconv"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestServingOfManyRecords: a client that waits for many records is served to each once for each change, also to those that changed
// while it looked.
func TestServingOfManyRecords(t *testing.T) {
	const records = 100_000 // so many that a cost in proportion to their square would exceed the time of a test
	s := newSpace(func(forerun.Key) state.Type { return state.List })
	w := s.newWaiter(state.List)
	for i := range records {
		w.keys.Add(forerun.Key{Space: "s", Name: strconv.Itoa(i)})
	}
	tried := 0
	w.try = func() outcome {
		tried++
		return outcome{reply: nothing()}
	}
	s.await(w)
	change := func() {
		for _, key := range w.keys.List {
			s.changed(key, 1)
		}
	}
	served := func() {
		s.mu.Lock()
		last := s.serving
		if len(s.ready) > 0 {
			last = s.ready[len(s.ready)-1]
		}
		s.mu.Unlock()
		if last != nil {
			<-last.done
		}
	}
	change()
	served()
	if tried > 0 {
		t.Errorf("it was tried %d times while it looked", tried)
	}
	s.sleep(w)
	served()
	if tried != records {
		t.Errorf("it was tried %d times for %d records", tried, records)
	}
	change()
	served()
	if tried != 2*records {
		t.Errorf("it was tried %d times for %d records that changed twice", tried, records)
	}
	if !s.leave(w) || s.leave(w) {
		t.Error("it does not leave, or does so twice")
	}
}
