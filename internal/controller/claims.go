package controller

import (
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// claimWait bounds the time that a speculative function waits for writes of older invocations. These may themselves be
// waiting.
const claimWait = 100 * time.Millisecond

// mostClaims bounds the records that one function may claim at a time. A function that requests very many writes on many
// connections would otherwise fill the memory. At worst, reads of the remaining records are early.
const mostClaims = 4096

// claims are the records that speculative functions have asked to write. A younger invocation that reads such a record
// now would probably read another value when it is promoted, which is a conflict. So it waits for a while. The older
// invocation never waits for the younger one, so there is no deadlock.
type claims struct {
	patience time.Duration // of who waits

	mu sync.Mutex // guards of
	of map[forerun.Key][]*claim
}

// claim is one function's, of one record.
type claim struct {
	age  uint64        // of its invocation, the oldest has the lowest
	over chan struct{} // closed when the record is written, or will never be; nil: no reader waits
}

func newClaims() *claims {
	return &claims{patience: claimWait, of: make(map[forerun.Key][]*claim)}
}

// add claims records for a function of an invocation, each once and not too many, and notes that in what is its own.
func (c *claims) add(age uint64, own map[forerun.Key]*claim, keys []forerun.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if own[key] == nil && len(own) < mostClaims {
			own[key] = &claim{age: age}
			c.of[key] = append(c.of[key], own[key])
		}
	}
}

// drop ends a function's claims.
func (c *claims) drop(all map[forerun.Key]*claim) {
	if len(all) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, own := range all {
		left := slices.DeleteFunc(c.of[key], func(other *claim) bool { return other == own })
		if c.of[key] = left; len(left) == 0 {
			delete(c.of, key)
		}
		if own.over != nil {
			close(own.over)
		}
	}
}

// older returns what is closed when the claim of an older invocation of one of these records is over; nil if there is none.
func (c *claims) older(age uint64, keys []forerun.Key) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		for _, other := range c.of[key] {
			if other.age >= age {
				continue
			}
			if other.over == nil {
				other.over = make(chan struct{})
			}
			return other.over
		}
	}
	return nil
}

// await waits until there is no such claim, for at most claimWait.
func (c *claims) await(age uint64, keys []forerun.Key) {
	late := time.NewTimer(c.patience)
	defer late.Stop()
	for over := c.older(age, keys); over != nil; over = c.older(age, keys) {
		select {
		case <-over:
		case <-late.C:
			return
		}
	}
}
