// Package linger runs small tasks in goroutines that stay for a while: a new one's stack has to grow again, which takes longer than
// many a task.
package linger

import (
	"runtime"
	"sync/atomic"
	"time"
)

const (
	wait = time.Second // for which a goroutine waits for another task
	each = 8           // goroutines for each processor, at most, that wait
)

// Goroutines run tasks, each at once. The zero value is not usable.
type Goroutines struct {
	next chan func()
	done <-chan struct{}
	idle atomic.Int64
	most int64
}

// New returns goroutines none of which lingers once done is closed; nil is never closed.
func New(done <-chan struct{}) *Goroutines {
	return &Goroutines{next: make(chan func()), done: done, most: int64(each * runtime.GOMAXPROCS(0))}
}

// Go runs a task in a goroutine that has nothing else to do.
func (g *Goroutines) Go(task func()) {
	select {
	case g.next <- task:
	default:
		go g.serve(task)
	}
}

// serve runs a task, and what comes while it waits.
func (g *Goroutines) serve(task func()) {
	late := time.NewTimer(wait)
	defer late.Stop()
	for task != nil {
		task()
		task = g.another(late)
	}
}

// another waits for a task; nil is the end.
func (g *Goroutines) another(late *time.Timer) (task func()) {
	defer g.idle.Add(-1)
	if g.idle.Add(1) > g.most {
		return nil
	}
	late.Reset(wait)
	select {
	case task = <-g.next:
	case <-late.C:
	case <-g.done:
	}
	return task
}
