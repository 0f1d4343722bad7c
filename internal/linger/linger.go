// Package linger runs small tasks in goroutines that stay for a while: a new one's stack has to grow again, which takes longer than
// many a task.
package linger

import "time"

// wait is how long a goroutine waits for another task.
const wait = time.Second

// Goroutines run tasks, each at once. The zero value is not usable.
type Goroutines struct {
	next chan func()
	done <-chan struct{}
}

// New returns goroutines none of which lingers once done is closed; nil is never closed.
func New(done <-chan struct{}) Goroutines { return Goroutines{make(chan func()), done} }

// Go runs a task in a goroutine that has nothing else to do.
func (g Goroutines) Go(task func()) {
	select {
	case g.next <- task:
	default:
		go g.serve(task)
	}
}

// serve runs a task, and what comes while it waits.
func (g Goroutines) serve(task func()) {
	idle := time.NewTimer(wait)
	for {
		task()
		task = nil // it may hold much
		idle.Reset(wait)
		select {
		case task = <-g.next:
		case <-idle.C:
			return
		case <-g.done:
			return
		}
	}
}
