package guard

import "time"

// Latch has those wait who come while it is shut, and knows for how long any have. Its owner's lock guards it. Its zero value is open.
type Latch struct {
	open    chan struct{} // closed when it is lifted; nil while it is open
	waiting int
	since   time.Time // since when any wait
}

// Shut shuts it.
func (l *Latch) Shut() {
	if l.open == nil {
		l.open = make(chan struct{})
	}
}

// Lift opens it, and returns for how long any have waited.
func (l *Latch) Lift() (waited time.Duration) {
	if l.open == nil {
		return 0
	}
	close(l.open)
	l.open = nil
	if l.waiting > 0 {
		waited = time.Since(l.since)
	}
	return waited
}

// Opened is closed when it is lifted; nil while it is open.
func (l *Latch) Opened() <-chan struct{} { return l.open }

// Waiting is how many wait.
func (l *Latch) Waiting() int { return l.waiting }

// Wait counts who waits.
func (l *Latch) Wait(more int) {
	if l.waiting == 0 {
		l.since = time.Now()
	}
	l.waiting += more
}
