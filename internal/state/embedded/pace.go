package embedded

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// How Pebble rewrites its tables.
const (
	paceRests  = 3                      // times as long as it works
	paceMost   = 100 * time.Millisecond // at a time: what it took longer for was not work
	paceBehind = 4                      // tables that a reader has to look through at the top, from which it does not rest
	paceStop   = 24                     // and from which writes wait
)

// pacer has Pebble rewrite its tables (compaction) one after the other, and a little at a time: at full speed each takes a processor for
// half a second, and all requests wait for that. Where Pebble falls behind it does not rest.
type pacer struct {
	db    pebble.DBForCompaction
	ended chan struct{} // closed when the store is
	hurry func() bool   // there is little room on the disk, which it may make

	granting sync.Mutex // held while Pebble is asked for the next

	mu      sync.Mutex // guards the rest
	running bool       // a compaction, or what decides on the next
	refused bool       // another meanwhile
}

func newPacer(hurry func() bool) *pacer { return &pacer{ended: make(chan struct{}), hurry: hurry} }

// Register tells whose compactions they are.
func (p *pacer) Register(_ int, db pebble.DBForCompaction) { p.db = db }

// Unregister ends all that is asked of Pebble, and lets a compaction go on without rests.
func (p *pacer) Unregister() {
	close(p.ended)
	p.granting.Lock()
	defer p.granting.Unlock() // nobody asks any more
}

// UpdateGetAllowedWithoutPermission is of no interest: there is never more than one.
func (p *pacer) UpdateGetAllowedWithoutPermission() {}

// TrySchedule lets a compaction run if there is no other. Pebble holds its locks meanwhile.
func (p *pacer) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running || p.isEnded() {
		p.refused = true
		return false, nil
	}
	p.running = true
	return true, &paced{pacer: p}
}

func (p *pacer) isEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// next lets the one run that waits, if any does.
func (p *pacer) next() {
	p.granting.Lock()
	defer p.granting.Unlock()
	for !p.isEnded() {
		if waits, _ := p.db.GetWaitingCompaction(); waits && p.db.Schedule(&paced{pacer: p}) {
			return
		}
		if p.rest() {
			return
		}
	}
}

// rest reports whether none was refused since it was asked last: then none runs.
func (p *pacer) rest() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.refused = p.refused, false
	return !p.running
}

// paced is one compaction.
type paced struct {
	*pacer
	since time.Time // it works
}

// Started begins it.
func (c *paced) Started() { c.since = time.Now() }

// MeasureCPU is of no interest: it does little but work.
func (c *paced) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats has it rest. It is called every few milliseconds, without locks.
func (c *paced) CumulativeStats(pebble.CompactionGrantHandleStats) {
	if c.hurry() || c.db.GetAllowedWithoutPermission() > 1 { // Pebble would have more than one run
		c.since = time.Now()
		return
	}
	over := time.NewTimer(min(paceRests*time.Since(c.since), paceMost))
	defer over.Stop()
	select {
	case <-over.C:
	case <-c.ended:
	}
	c.since = time.Now()
}

// Done ends it.
func (c *paced) Done() { c.next() }
