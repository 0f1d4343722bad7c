package worker

import (
	"cmp"
	"time"
)

// stuckAfter is how long a sandbox has been busy with activations in order when its end is not expected soon any more:
// its activation may take minutes. Shorter activations end soon.
const stuckAfter = time.Second

// stuck is the room that stuck sandboxes occupy. Other pools leave room to a pool that waits for more room than is free;
// otherwise small activations would starve a large one. A pool is hopeless if its room would not be free even with all
// other sandboxes closed but the stuck ones. Others then use the room, as backfill in batch systems. Pools that would be
// stuck themselves, or one of whose sandboxes always was, do not.
type stuck struct {
	bytes     int64
	sandboxes int
}

// lookStuck finds out what is stuck.
func (w *Worker) lookStuck(now time.Time) {
	w.stuck = stuck{}
	for _, p := range w.pools {
		for _, b := range p.sandboxes {
			if b.isStuck(now) {
				w.stuck.bytes += b.charged
				w.stuck.sandboxes++
			}
		}
	}
}

// isStuck reports whether a sandbox of a pool has been busy for so long that its end is not expected soon.
func (b *pooledSandbox) isStuck(now time.Time) bool {
	return b.state != sandboxIdle && !b.isAhead() && b.atWork(now) >= stuckAfter
}

// isHopeless reports whether a pool that waits would have no room with all sandboxes closed but those that are stuck.
func (w *Worker) isHopeless(h *pool) bool {
	bytes := h.memory()
	if b := h.idleSandbox(); b != nil {
		bytes = b.memory()
	}
	return w.stuck.bytes+bytes > w.limit || w.stuck.sandboxes >= w.config.MaxSandboxes
}

// takesLong reports whether an activation of the pool would probably be stuck.
func (p *pool) takesLong(now time.Time) bool {
	return cmp.Or(p.service, p.serviceTime(now)) >= stuckAfter
}
