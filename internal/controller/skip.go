package controller

import (
	"context"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
)

// A row of the memo table may stand for the execution of an annotated function. The machine decides that, whether or not anything is
// speculative. The versions that a row read are asked for at the time of the request, all at one moment.

// readCache reads what the annotations of a slot's action say about its results. Code that a program brings along has none, and neither has a
// conductor's own step.
func (s *slot) readCache(at placement) {
	if !at.Self && at.Function == nil {
		s.cache = annotation.CacheOf(s.action.Annotations)
	}
}

// until is when a row of an execution that begins now stands for no other; zero: it is not known before.
func (e *execution) until(s *slot) time.Time {
	if !s.cache.Kept || s.cache.TTL == 0 {
		return time.Time{}
	}
	return e.c.Clock.Now().Add(s.cache.TTL)
}

// cacheOff is why no row stands for an execution; empty: rows do.
func (c *Controller) cacheOff() forerun.ReasonCode {
	switch {
	case !c.Cache:
		return forerun.ReasonCacheOff
	case c.uncached.Load():
		return forerun.ReasonCacheSwitch
	}
	return ""
}

// LetCache is the kill switch of the cache: it says whether rows may stand for executions of invocations to come, within Cache.
func (c *Controller) LetCache(may bool) { c.uncached.Store(!may) }

// MayCache is what LetCache has said; before, they may.
func (c *Controller) MayCache() bool { return !c.uncached.Load() }

// cache has rows stand for executions of the invocation, and be learnt.
func (e *execution) cache(r Request) []speculate.Option {
	if e.cacheOff = e.c.cacheOff(); e.cacheOff != "" {
		return nil
	}
	tables := e.c.tables.tenant(e.namespace)
	e.memo, e.flights = tables.memo, tables.flights
	return []speculate.Option{speculate.Cache(e.memo, r.Bypass), speculate.Now(e.c.Clock.Now)}
}

// check looks whether records and actions are what they were. If they were lately, and nothing was written or deployed since, the marks of the
// memo table tell. Otherwise the store is asked. The actions are looked at last: code that was deployed before the versions were asked for, and
// is after, was at that moment (a deployment never returns).
func (e *execution) check(a speculate.Check) {
	s, began := e.slots[a.Slot], time.Now()
	s.below = a.Row.Below
	event := speculate.Checked{Slot: a.Slot, Current: true, Versions: make([]forerun.Version, len(a.Row.Reads))}
	if now := e.c.Actions.Changes(); now == s.changes && e.memo.IsCurrent(a.Row, now) {
		for i, read := range a.Row.Reads {
			event.Versions[i] = read.Version
		}
		s.checking = time.Since(began)
		e.events = append(e.events, event)
		return
	}
	e.later(func() func() {
		deployments, mark := e.c.Actions.Changes(), e.memo.Mark(a.Row) // before all that they confirm
		lasting, err := e.c.standing(a.Row.Keys(), event.Versions)
		event.Current = err == nil && e.isFound(s) && e.areCurrent(a.Row.Below)
		if event.Current && lasting && isRead(a.Row, event.Versions) {
			e.memo.Confirm(a.Row, mark, deployments)
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

// standing asks for the versions of records, all at one moment, and reports whether the store would announce a change of each.
func (c *Controller) standing(keys []forerun.Key, versions []forerun.Version) (lasting bool, err error) {
	var now []state.Expect
	switch store, announces := c.State.(state.Announcer); {
	case len(keys) == 0:
		return true, nil
	case announces:
		now, lasting, err = store.Standing(context.Background(), keys...)
	default:
		now, err = c.State.Versions(context.Background(), keys...)
	}
	for i, v := range now {
		versions[i] = v.Version
	}
	return lasting, err
}

// isRead reports whether versions are the ones that a row read.
func isRead(row *forerun.Row, versions []forerun.Version) bool {
	for i, read := range row.Reads {
		if versions[i] != read.Version {
			return false
		}
	}
	return true
}

// isFound reports whether a slot's own action is the one that would be found now.
func (e *execution) isFound(s *slot) bool {
	return e.c.Actions.Changes() == s.changes || e.areCurrent([]forerun.Callee{{Action: s.action.FoundAs(), Code: e.c.digests.Deployed(s.action)}})
}

// skip notes the output of a slot that is not executed.
func (e *execution) skip(a speculate.Skip) {
	s := e.slots[a.Slot]
	s.compared = a.Row
	now := time.Now()
	s.started(now, 0)
	s.record.End, s.record.Timeline.Finished = now, now
	s.record.Timeline.Skipped, s.record.Timeline.Predicted = true, a.Why
	reads := a.Row.Reads
	c := &forerun.Cached{Outcome: forerun.CacheHit, Why: a.Why, Of: a.Row.By, Records: len(reads), Checking: s.checking, Saved: max(0, a.Row.Took-s.checking)}
	if !a.Row.Since.IsZero() {
		c.Age = max(1, e.c.Clock.Now().Sub(a.Row.Since))
	}
	for _, read := range reads[:min(len(reads), forerun.MaxCheckedShown)] {
		c.Checked = append(c.Checked, forerun.Checked{Record: forerun.ShownName(read.Key.Name), Version: read.Version})
	}
	s.record.Cached = c
}

// noteCached notes why no row stands for a slot that is executed.
func (e *execution) noteCached(s *slot, why *forerun.Cached) {
	switch {
	case why == nil && e.cacheOff != "" && s.cache.Kept:
		s.record.Cached = &forerun.Cached{Outcome: forerun.CacheOff, Why: forerun.Because(e.cacheOff)}
	case s.suspended != nil:
		s.record.Cached = &forerun.Cached{Outcome: forerun.CacheOff, Why: s.suspended}
	case why == nil && s.program && s.cache.Kept:
		s.record.Cached = &forerun.Cached{Outcome: forerun.CacheBypass, Why: forerun.Because(forerun.ReasonWorkflow)}
	case why != nil:
		s.record.Cached = why
	}
}
