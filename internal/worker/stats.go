package worker

import (
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/schedule"
)

// counters count since the worker's start. Guarded by Worker.mu.
type counters struct {
	Runs       int64         // activations asked for
	ColdStarts int64         // sandboxes started
	Prewarmed  int64         // of them, those that took one that was there without code
	Evicted    int64         // sandboxes closed to make room
	Expired    int64         // activations that waited too long
	Squashed   int64         // activations squashed
	Wasted     time.Duration // processor time of squashed runs, and of their removal
	Wanted     int64         // speculative activations that were asked to make way
	Ended      [4]int64      // activations that ended, by forerun.Status
}

func (c *counters) ended(s forerun.Status) { c.Ended[s]++ }

// Stats is a moment of a worker, for metrics.
type Stats struct {
	counters
	Starting, Idle, Busy int // sandboxes
	Blank                int // sandboxes without code
	Queued               int // activations that wait for one
	MemoryMiB            int // of the sandboxes: the limits of those that work, and what the others use
	MemoryLimitMiB       int // the bound of MemoryMiB
	Turns                schedule.Use
}

// Stats returns the worker's gauges and counters.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Stats{Turns: w.turns.use(), counters: w.counters, Blank: w.blanks(), MemoryMiB: int(w.charged >> 20), MemoryLimitMiB: w.config.MemoryMiB}
	for _, p := range w.pools {
		s.Queued += len(p.queue)
		for _, b := range p.sandboxes {
			switch b.state {
			case sandboxStarting:
				s.Starting++
			case sandboxIdle:
				s.Idle++
			case sandboxBusy:
				s.Busy++
			case sandboxBlank, sandboxGone: // not in a pool
			}
		}
	}
	return s
}
