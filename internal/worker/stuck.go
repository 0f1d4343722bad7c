package worker

import (
	"cmp"
	"time"
)

// stuckAfter is how long a sandbox has been busy, but not for what runs ahead, when nobody counts on its end any more: its activation may
// go on for minutes. A shorter one is soon over.
const stuckAfter = time.Second

// stuck is what such sandboxes occupy. To who waits for more room than there is others leave room, or small activations would keep a large
// one waiting for ever. Where that is in vain, as it would have none with all sandboxes closed but those that are stuck, it is hopeless,
// and others use what there is, as batch systems backfill; but not those that would be stuck themselves, or one of them always were.
type stuck struct {
	bytes int64
	boxes int
}

// lookStuck finds out what is stuck.
func (w *Worker) lookStuck(now time.Time) {
	w.stuck = stuck{}
	for _, p := range w.pools {
		for _, b := range p.boxes {
			if b.isStuck(now) {
				w.stuck.bytes += b.charged
				w.stuck.boxes++
			}
		}
	}
}

// isStuck reports whether nobody counts on the end of what a box of a pool does.
func (b *box) isStuck(now time.Time) bool {
	return b.state != boxIdle && !b.isAhead() && b.atWork(now) >= stuckAfter
}

// isHopeless reports whether a pool that waits would have no room with all sandboxes closed but those that are stuck.
func (w *Worker) isHopeless(h *pool) bool {
	bytes := h.memory()
	if b := h.idleBox(); b != nil {
		bytes = b.memory()
	}
	return w.stuck.bytes+bytes > w.limit || w.stuck.boxes >= w.config.MaxSandboxes
}

// takesLong reports whether an activation of the pool would probably be stuck.
func (p *pool) takesLong(now time.Time) bool {
	return cmp.Or(p.service, p.serviceTime(now)) >= stuckAfter
}
