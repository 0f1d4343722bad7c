package controller

import (
	"strings"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// TestSharesAreFair: when all tenants together have too much those have too much that have more than their part.
func TestSharesAreFair(t *testing.T) {
	const bound = 12
	var s shares
	var large, small, third, idle atomic.Int64
	for _, step := range []struct {
		what                    string
		tenant                  *atomic.Int64
		more                    int
		large, small, third, no int // left
	}{
		{"one has all", &large, 12, 0, 12, 12, 12},
		{"one has more than all", &large, 2, -2, 12, 12, 12},
		{"another comes", &small, 1, -3, 5, 6, 6},
		{"it has more than its part", &small, 6, -8, -1, 6, 6},
		{"a third comes, and parts are smaller", &third, 5, -10, -3, -1, 4},
		{"the first has just its part", &large, -10, 0, -3, -1, 4},
		{"the second has less", &small, -6, 2, 3, 2, 4},
		{"the first has all that others leave, and more", &large, 3, -1, 3, -1, 4},
		{"the third leaves", &third, -5, 4, 5, 6, 6},
		{"the second leaves", &small, -1, 5, 12, 12, 12},
		{"the first leaves", &large, -7, 12, 12, 12, 12},
	} {
		s.add(step.tenant, step.more)
		got := [...]int{s.left(&large, bound), s.left(&small, bound), s.left(&third, bound), s.left(&idle, bound)}
		if got != [...]int{step.large, step.small, step.third, step.no} {
			t.Errorf("%s: left is %v", step.what, got)
		}
	}
	if all, tenants := s.all.Load(), s.tenants.Load(); all != 0 || tenants != 0 {
		t.Errorf("when they have left there are %d of %d tenants", all, tenants)
	}
}

// TestAheadOfAnotherTenant takes nothing of a tenant's part of what may be ahead on busy processors.
func TestAheadOfAnotherTenant(t *testing.T) {
	c := &Controller{Config: Config{Load: func(string) forerun.Load { return forerun.Load{Busy: 0.92, Processors: 2} }}}
	var own, other tables
	e := &execution{c: c, tables: &own, speculation: speculate.NewSettings(speculate.All)}
	for _, step := range []struct {
		of         *tables
		more, want int
	}{{&other, 20, 12}, {&own, 1, 6}, {&other, -16, 8}} {
		c.ahead.add(&step.of.ahead, step.more)
		e.ahead = int(own.ahead.Load())
		if got := e.depthNow(); got != step.want {
			t.Errorf("%+d: %d, not %d", step.more, got, step.want)
		}
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
	w.buffered.add(other, maxBuffered+1)
	defer w.buffered.add(other, -maxBuffered-1)
	if got, tally := w.twice(); got != `{}` || tally.Used != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
}
