package controller

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestWhatCannotBeExecutedAhead: a refusal that is found speculatively, such as a missing action, takes no time in the slot's turn.
func TestWhatCannotBeExecutedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newAheadTown(t)
		var second atomic.Bool
		town.function("a", func(*forerun.Run, map[string]any) (any, error) {
			if second.Load() {
				time.Sleep(time.Second)
			}
			return map[string]any{}, nil
		})
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/gone"}})
		town.invoke(seq, `{}`)
		second.Store(true)
		record := town.invoke(seq, `{}`)
		a, gone := town.written[1][0], town.written[1][1]
		if gone.Timeline.Queued.Sub(a.Timeline.Queued) > time.Second/2 {
			t.Error("it was not looked for ahead")
		}
		if gone.Duration > time.Millisecond || gone.Start.Before(a.End.Add(-time.Millisecond)) || gone.End.Before(gone.Start) {
			t.Errorf("it began %v after the first one's end, and took %v", gone.Start.Sub(a.End), gone.Duration)
		}
		if record.Duration != a.Duration+gone.Duration {
			t.Errorf("the sequence took %v", record.Duration)
		}
	})
}
