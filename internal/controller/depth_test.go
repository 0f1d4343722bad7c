package controller

import (
	"strings"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// TestBuffersAreFair: when all tenants together have too much in columns those wait that have more than their part.
func TestBuffersAreFair(t *testing.T) {
	var b buffers
	var large, small, third, idle atomic.Int64
	for _, step := range []struct {
		what                    string
		tenant                  *atomic.Int64
		more                    int
		large, small, third, no bool // wait
	}{
		{"one has all", &large, maxBuffered, false, false, false, false},
		{"one has more than all", &large, 1, true, false, false, false},
		{"another comes", &small, 1, true, false, false, false},
		{"it has more than its part", &small, maxBuffered / 2, true, true, false, false},
		{"a third comes, and parts are smaller", &third, maxBuffered/3 + 1, true, true, true, false},
		{"the first has just its part", &large, -maxBuffered + maxBuffered/3 - 1, false, true, true, false},
		{"the second has less", &small, -maxBuffered / 2, false, false, false, false},
		{"the first has all that others leave", &large, maxBuffered/3 + 1, true, false, true, false},
		{"the third leaves", &third, -maxBuffered/3 - 1, false, false, false, false},
		{"the second leaves", &small, -1, false, false, false, false},
		{"the first leaves", &large, -2*(maxBuffered/3) - 1, false, false, false, false},
	} {
		b.add(step.tenant, step.more)
		if l, s, th, no := b.full(&large), b.full(&small), b.full(&third), b.full(&idle); l != step.large || s != step.small || th != step.third || no != step.no {
			t.Errorf("%s: they wait: %v, %v, %v, %v", step.what, l, s, th, no)
		}
	}
	if bytes, tenants := b.bytes.Load(), b.tenants.Load(); bytes != 0 || tenants != 0 {
		t.Errorf("when they have left there are %d bytes of %d tenants", bytes, tenants)
	}
}

// TestBuffersOfAnotherTenant do not keep a function that runs ahead from buffering.
func TestBuffersOfAnotherTenant(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		for range 3 {
			if _, err := w.do(run, "SET", "large", strings.Repeat("x", 1<<20)); err != nil {
				return nil, err
			}
		}
		if w.first() {
			close(w.goOn) // the test hangs if b waits for its turn
		}
		return map[string]any{}, nil
	})
	other := &w.tables.tenant("other").buffered
	w.buffers.add(other, maxBuffered+1)
	defer w.buffers.add(other, -maxBuffered-1)
	if got, tally := w.twice(); got != `{}` || tally.Used != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
}
