package worker

import (
	"testing"
	"time"
)

// metered is a maker that says what its sandboxes took of the processors.
type metered struct{ processes }

func (*metered) Spent() (time.Duration, bool) { return time.Hour, true }

func TestSpent(t *testing.T) {
	w := New(Config{Maker: new(metered)})
	s, known := w.Spent()
	if !known || s.Own <= time.Hour || s.Own > 2*time.Hour || s.All <= 0 || s.Whole <= s.All {
		t.Errorf("%+v, known: %v; want the maker's hour, and what this process took", s, known)
	}
	w.load.read = func() (busy, total uint64, ok bool) { return 0, 0, false }
	if _, known := w.Spent(); known {
		t.Error("without the machine's meter it is known")
	}
	if _, known := New(Config{Maker: new(processes)}).Spent(); known {
		t.Error("without the maker's meter it is known")
	}
}
