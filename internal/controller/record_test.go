package controller

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestStartIsNotBeforeTheRequest: of the time for which code was loaded an activation counts what it waited for itself.
func TestStartIsNotBeforeTheRequest(t *testing.T) {
	queued := time.Now()
	for _, c := range []struct{ waited, loading, counts time.Duration }{
		{2 * time.Millisecond, 0, 0},
		{2 * time.Second, 1500 * time.Millisecond, 1500 * time.Millisecond},
		{2 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Millisecond}, // it was loaded for somebody else
	} {
		s := &slot{record: &forerun.Activation{Timeline: forerun.Timeline{Queued: queued}}}
		s.started(queued.Add(c.waited), c.loading)
		if start := queued.Add(c.waited - c.counts); s.initTime != c.counts || s.wait != c.waited-c.counts || !s.record.Start.Equal(start) {
			t.Errorf("%v, of which the code is loaded for %v: initTime %v, waitTime %v, start %v", c.waited, c.loading, s.initTime, s.wait, s.record.Start.Sub(queued))
		}
	}
}
