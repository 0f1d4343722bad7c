// Package clock tells the time evenly: not as the machine's clock does, which
// somebody may set.
//
// It promises that time never goes back nor jumps while a server runs: a clock
// that was set is followed at a tenth of the speed of time, so what is to expire
// does so at most a tenth earlier or later than it should, and what is recorded
// is in order.
package clock

import (
	"sync"
	"time"
)

// Clock tells the time. Its methods may be called concurrently.
type Clock struct {
	wall  func() time.Time // nil: the machine's
	begun time.Time        // with the reading of the monotonic clock that all others are compared with

	mu    sync.Mutex // guards the rest
	shown time.Time  // what was told last
	at    time.Duration
}

// New returns a clock that begins at what wall says, and follows it; nil: the machine's clock.
func New(wall func() time.Time) *Clock {
	c := &Clock{wall: wall, begun: time.Now()}
	c.shown = c.machine(c.begun)
	return c
}

// machine is what the machine's clock says, at a reading of it if nobody else tells.
func (c *Clock) machine(reading time.Time) time.Time {
	if c.wall != nil {
		reading = c.wall()
	}
	return reading.Round(0)
}

// Now is the time, without a reading of the monotonic clock.
func (c *Clock) Now() time.Time {
	now, _ := c.read()
	return now
}

// read is the time, and the reading that it was told at: whoever took another might be interrupted in between.
func (c *Clock) read() (now, reading time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	reading = time.Now()
	passed := reading.Sub(c.begun) - c.at
	c.at += passed
	c.shown = c.shown.Add(passed)
	behind := c.machine(reading).Sub(c.shown)
	c.shown = c.shown.Add(min(max(behind, -passed/10), passed/10))
	return c.shown, reading
}

// Date turns moments that time.Now returned into the times that they were told as, about. The zero time stays.
func (c *Clock) Date(moments ...*time.Time) {
	now, reading := c.read()
	for _, m := range moments {
		if !m.IsZero() {
			*m = now.Add(m.Sub(reading))
		}
	}
}
