package controller

import (
	"maps"
	"slices"
	"sync/atomic"

	"forerun.dev/forerun/internal/forerun"
)

// Listeners of the feed hear of an activation while it runs, but only once it is not speculative. Before its turn a client
// sees nothing of it (C2), and a squash leaves nothing of it (C4). At its promotion listeners get the lines that it has
// written so far.

// writing is what a function has written so far.
type writing struct {
	lines   atomic.Pointer[[]string] // in the form of Activation.Logs; nil: none
	telling atomic.Bool              // a task that shows them has not begun yet
}

// wrote returns what the worker calls when the slot's function has written something. It does not take the execution's
// lock, because the worker holds one of its own.
func (e *execution) wrote(s *slot) func(lines []string) {
	w := new(writing)
	s.writing = w
	return func(lines []string) {
		w.lines.Store(&lines)
		if !e.c.Feed.Listens(e.namespace) || !w.telling.CompareAndSwap(false, true) {
			return
		}
		e.c.aside.Go(func() {
			w.telling.Store(false)
			e.mu.Lock()
			defer e.mu.Unlock()
			if e.slots[s.id] == s {
				e.show(s)
			}
		})
	}
}

// show tells the listeners about a slot that has begun, with what it has written so far.
func (e *execution) show(s *slot) {
	if s.ahead || s.silent || s.record.Timeline.Launched.IsZero() || !e.c.Feed.Listens(e.namespace) {
		return
	}
	if s.shown == nil {
		r := s.record
		s.shown = &forerun.Activation{
			ID: r.ID, Namespace: r.Namespace, Action: r.Action, Version: r.Version, Cause: r.Cause, Start: r.Start, Annotations: s.annotations(),
		}
		e.c.date([]*forerun.Activation{s.shown})
	}
	e.c.Feed.Tell(s.shown, s.lines())
}

// lines are what the slot's function has written so far.
func (s *slot) lines() []string {
	if s.program {
		return nil
	}
	if s.over {
		return s.record.Logs
	}
	if s.writing != nil {
		if lines := s.writing.lines.Load(); lines != nil {
			return *lines
		}
	}
	return nil
}

// Show tells the listeners of a namespace about the activations that run now: a new listener hears what it has missed.
func (c *Controller) Show(namespace string) {
	for e := range c.executions(func(e *execution) bool { return e.namespace == namespace }) {
		e.showAll()
	}
}

func (e *execution) showAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(e.slots)) {
		e.show(e.slots[id])
	}
}
