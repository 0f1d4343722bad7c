package controller

import (
	"context"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// A row of the memo table may stand for the execution of an annotated function. The machine decides that, whether or not anything is
// speculative. The versions that a row read are asked for at the time of the request, all at one moment.

// cacheAnnotations promise that what cannot be seen does not matter to a function's output: the clock, chance, its environment, and what
// its process remembers. Effects that were seen count all the same.
var cacheAnnotations = []string{"pure-function", "compute_cache", "state_cache"}

func isAnnotated(a *forerun.Action) bool {
	for _, name := range cacheAnnotations {
		if has(a, name) {
			return true
		}
	}
	return false
}

// isCached reports whether a row may stand for a slot's function. Code that a program brings along has none, and neither has a conductor's own
// step.
func isCached(s *slot) bool { return !s.at.Self && s.at.Function == nil && isAnnotated(s.action) }

// cache has rows stand for executions of the invocation, and be learnt.
func (e *execution) cache(r Request) []speculate.Option {
	if !e.c.Cache {
		return nil
	}
	e.memo = e.c.tables.tenant(e.namespace).memo
	return []speculate.Option{speculate.Cache(e.memo, r.Bypass)}
}

// check looks whether records and actions are what they were.
func (e *execution) check(a speculate.Check) {
	s, began := e.slots[a.Slot], time.Now()
	s.below = a.Below
	e.later(func() func() {
		event := speculate.Checked{Slot: a.Slot, Current: e.areCurrent(a.Below)}
		if event.Current && len(a.Keys) > 0 {
			versions, err := e.c.State.Versions(context.Background(), a.Keys...)
			event.Current = err == nil
			for _, v := range versions {
				event.Versions = append(event.Versions, v.Version)
			}
		}
		return func() {
			s.checking = time.Since(began)
			if !event.Current { // it is to be executed, and what that calls is looked at by itself
				s.below = nil
			}
			e.step(event)
		}
	})
}

// skip notes the output of a slot that is not executed.
func (e *execution) skip(a speculate.Skip) {
	s := e.slots[a.Slot]
	now := time.Now()
	s.started(now, 0)
	s.record.End, s.record.Timeline.Finished = now, now
	s.record.Timeline.Skipped, s.record.Timeline.Predicted = true, a.Why
	reads := a.Row.Reads
	c := &forerun.Cached{Outcome: forerun.CacheHit, Why: a.Why, Of: a.Row.By, Records: len(reads), Checking: s.checking}
	for _, read := range reads[:min(len(reads), forerun.MaxCheckedShown)] {
		c.Checked = append(c.Checked, forerun.Checked{Record: forerun.ShownName(read.Key.Name), Version: read.Version})
	}
	s.record.Cached = c
}

// noteCached notes why no row stands for a slot that is executed.
func (e *execution) noteCached(s *slot, why *forerun.Cached) {
	switch {
	case why == nil && !e.c.Cache && isAnnotated(s.action):
		s.record.Cached = &forerun.Cached{Outcome: forerun.CacheOff, Why: forerun.Because(forerun.ReasonCacheOff)}
	case why == nil && s.program && isAnnotated(s.action):
		s.record.Cached = &forerun.Cached{Outcome: forerun.CacheBypass, Why: forerun.Because(forerun.ReasonWorkflow)}
	case why != nil:
		s.record.Cached = why
	}
}
