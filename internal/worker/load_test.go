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
	own, all, known := w.Spent()
	if !known || own <= time.Hour || own > 2*time.Hour || all <= 0 {
		t.Errorf("%v of %v, known: %v; want the maker's hour, and what this process took", own, all, known)
	}
	w.load.read = func() (busy, total uint64, ok bool) { return 0, 0, false }
	if _, _, known := w.Spent(); known {
		t.Error("without the machine's meter it is known")
	}
	if _, _, known := New(Config{Maker: new(processes)}).Spent(); known {
		t.Error("without the maker's meter it is known")
	}
}
