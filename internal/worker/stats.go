package worker

import "forerun.dev/forerun/internal/forerun"

// counters count since the worker's start. Guarded by Worker.mu.
type counters struct {
	Runs       int64    // activations asked for
	ColdStarts int64    // sandboxes started
	Evicted    int64    // idle sandboxes closed to make room
	Squashed   int64    // activations squashed
	Ended      [4]int64 // activations that ended, by forerun.Status
}

func (c *counters) ended(s forerun.Status) { c.Ended[s]++ }

// Stats is a moment of a worker, for metrics.
type Stats struct {
	counters
	Starting, Idle, Busy int // sandboxes
	Queued               int // activations that wait for one
	MemoryMiB            int // the sum of the sandboxes' memory limits
	MemoryLimitMiB       int // what that may be
}

// Stats returns the worker's gauges and counters.
func (w *Worker) Stats() Stats {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := Stats{counters: w.counters, MemoryMiB: w.memory, MemoryLimitMiB: w.config.MemoryMiB}
	for _, p := range w.pools {
		s.Queued += len(p.queue)
		for _, b := range p.boxes {
			switch b.state {
			case boxStarting:
				s.Starting++
			case boxIdle:
				s.Idle++
			case boxBusy:
				s.Busy++
			case boxGone: // not in a pool
			}
		}
	}
	return s
}
