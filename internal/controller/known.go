package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
)

// This file shows a tenant the kept results of its annotated actions.

// CacheUse is how the cache fares for one action.
type CacheUse struct {
	Action   string // the name by which it was found
	Outcomes map[forerun.CacheOutcome]uint64
	Saved    time.Duration // that its hits would have taken
	Verified uint64        // hits that were executed again, and agreed
	Rows     int
	Bytes    int // that the rows take, about
	Stale    int // of these bytes, those of rows of which a record was written since

	Suspended *forerun.Reason // why no result is used; nil: results are
}

// cacheUses counts how a tenant's actions used the cache. Its zero value is ready.
type cacheUses struct {
	mu sync.Mutex // guards of
	of map[string]*CacheUse
}

// maxUses bounds the actions of a tenant whose use is counted. All others are counted as one, without a name.
const maxUses = 1000

func (u *cacheUses) count(action string, c *forerun.Cached) {
	u.mu.Lock()
	defer u.mu.Unlock()
	use := u.use(action)
	use.Outcomes[c.Outcome]++
	use.Saved += c.Saved
}

// verified counts a hit of an action that was executed again, and agreed.
func (u *cacheUses) verified(action string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.use(action).Verified++
}

// use is where an action is counted. The caller holds mu.
func (u *cacheUses) use(action string) *CacheUse {
	if u.of[action] == nil && len(u.of) >= maxUses {
		action = ""
	}
	use := u.of[action]
	if use == nil {
		use = &CacheUse{Action: action, Outcomes: make(map[forerun.CacheOutcome]uint64)}
		if u.of == nil {
			u.of = make(map[string]*CacheUse)
		}
		u.of[action] = use
	}
	return use
}

// copied are copies of all, by action.
func (u *cacheUses) copied() map[string]*CacheUse {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := make(map[string]*CacheUse, len(u.of))
	for name, use := range u.of {
		c := *use
		c.Outcomes = make(map[forerun.CacheOutcome]uint64, len(use.Outcomes))
		for outcome, n := range use.Outcomes {
			c.Outcomes[outcome] = n
		}
		all[name] = &c
	}
	return all
}

// countCache counts which way a committed slot went.
func (e *execution) countCache(s *slot) {
	if c := s.record.Cached; c != nil && s.action != nil {
		e.c.tables.tenant(e.namespace).uses.count(s.action.FoundAs(), c)
	}
}

// CacheUses tells how the cache fares for the actions of a namespace, since the start, by name.
func (c *Controller) CacheUses(ctx context.Context, namespace string) []*CacheUse {
	uses := c.tables.tenant(namespace).uses.copied()
	for _, kept := range c.KeptRows(ctx, namespace, "") {
		action := kept.Row.Home.Action
		if uses[action] == nil {
			uses[action] = &CacheUse{Action: action}
		}
		uses[action].Rows++
		uses[action].Bytes += kept.Bytes
		if kept.Stale {
			uses[action].Stale += kept.Bytes
		}
	}
	list := make([]*CacheUse, 0, len(uses))
	for _, use := range uses {
		use.Suspended = c.suspensionOf(ctx, namespace, use.Action)
		list = append(list, use)
	}
	slices.SortFunc(list, func(a, b *CacheUse) int {
		if a.Action < b.Action {
			return -1
		}
		return 1
	})
	return list
}

// KeptRows lists the rows of a namespace's annotated actions, the one that was asked for last first; of one action, if it is named. Rows of
// other actions only predict.
func (c *Controller) KeptRows(ctx context.Context, namespace, action string) []memo.Kept {
	keeps := c.keeping(ctx, namespace, action)
	return slices.DeleteFunc(c.tables.tenant(namespace).memo.Kept(), func(k memo.Kept) bool { return !keeps(k.Row) })
}

// keeping is a function that reports whether a row is of an annotated action; of one action, if it is named.
func (c *Controller) keeping(ctx context.Context, namespace, action string) func(*forerun.Row) bool {
	annotated := make(map[string]bool)
	return func(row *forerun.Row) bool {
		home := row.Home.Action
		if action != "" && home != action {
			return false
		}
		kept, known := annotated[home]
		if !known {
			kept = c.keeps(ctx, namespace, home)
			annotated[home] = kept
		}
		return kept
	}
}

// keeps reports whether results of an action are kept.
func (c *Controller) keeps(ctx context.Context, namespace, action string) bool {
	name, err := forerun.ParseName(action, namespace)
	if err != nil {
		return false
	}
	a, err := c.Actions.Resolve(ctx, name, namespace)
	return err == nil && annotation.CacheOf(a.Annotations).Kept
}

// maxShownInput is how many bytes an input may have that a row is shown with.
const maxShownInput = 16 << 10

// shownInput is what a row of a slot is shown with.
func (s *slot) shownInput() json.RawMessage {
	input := s.at.Input
	if !s.cache.Kept {
		return nil
	}
	if s.cache.Key != nil {
		input, _ = s.cache.Key.Pick(input) // as it was when the slot was resolved
	}
	if len(input) > maxShownInput {
		return nil
	}
	return bytes.Clone(input)
}

// Purge says which rows are to be dropped. Its zero value is all.
type Purge struct {
	Action *forerun.Action // nil: of each
	Input  json.RawMessage // a canonical JSON object, as Request has it; nil: each. It needs an Action.
	Record string          // that was read; empty: whatever was read
}

// PurgeRows drops rows of a namespace's annotated actions, and tells how many.
func (c *Controller) PurgeRows(ctx context.Context, namespace string, p Purge) (int, error) {
	table, action := c.tables.tenant(namespace).memo, ""
	if p.Action != nil {
		action = p.Action.FoundAs()
	}
	keeps := c.keeping(ctx, namespace, action)
	which := keeps
	if p.Input != nil {
		input, err := delivered(p.Action, p.Input)
		if err != nil {
			return 0, err
		}
		one := table.Look(c.digests.Deployed(p.Action), input)
		which = func(row *forerun.Row) bool { return row == one && keeps(row) }
	}
	var rows []*forerun.Row
	if p.Record != "" {
		rows = table.Readers(p.Record)
	} else {
		for _, kept := range table.Kept() {
			rows = append(rows, kept.Row)
		}
	}
	return table.Drop(slices.DeleteFunc(rows, func(row *forerun.Row) bool { return !which(row) })), nil
}

// delivered is what a function is given of an input.
func delivered(a *forerun.Action, input json.RawMessage) (json.RawMessage, error) {
	if key := annotation.CacheOf(a.Annotations).Key; key != nil {
		picked, err := key.Pick(input)
		if err != nil {
			return nil, err
		}
		input = picked
	}
	return canonical.Merge(a.Parameters, input)
}

// Explanation is what would happen with an invocation now.
type Explanation struct {
	Outcome forerun.CacheOutcome
	Why     *forerun.Reason
	Row     *forerun.Row  // that is kept; nil: none is
	Changed []VersionPair // the records that have other versions now: the first forerun.MaxCheckedShown
}

// VersionPair is a record with the version that an execution read and the one that it has now. An absent record has version 0.
type VersionPair struct {
	Record    string // as ShownName has it
	Read, Now forerun.Version
}

// Explain tells what would happen with an invocation of an action on an input, a canonical JSON object, by a namespace. It executes nothing.
func (c *Controller) Explain(ctx context.Context, namespace string, a *forerun.Action, input json.RawMessage) (Explanation, error) {
	program, err := c.programs.of(a)
	if err != nil {
		return Explanation{}, err
	}
	says := func(outcome forerun.CacheOutcome, why forerun.ReasonCode) (Explanation, error) {
		return Explanation{Outcome: outcome, Why: forerun.Because(why)}, nil
	}
	switch off := c.cacheOff(); {
	case !annotation.CacheOf(a.Annotations).Kept:
		return says(forerun.CacheOff, forerun.ReasonNotAnnotated)
	case off != "":
		return says(forerun.CacheOff, off)
	case program != nil:
		return says(forerun.CacheBypass, forerun.ReasonWorkflow)
	}
	if why := c.suspension(namespace, a); why != nil {
		return Explanation{Outcome: forerun.CacheOff, Why: why}, nil
	}
	given, err := delivered(a, input)
	if err != nil {
		return Explanation{}, err
	}
	row := c.tables.tenant(namespace).memo.Look(c.digests.Deployed(a), given)
	if row == nil {
		return says(forerun.CacheMiss, forerun.ReasonNoRow)
	}
	x := Explanation{Row: row, Outcome: forerun.CacheStale}
	switch {
	case !row.Stands():
		x.Outcome, x.Why = forerun.CacheMiss, row.Why
	case !row.Until.IsZero() && !c.Clock.Now().Before(row.Until):
		x.Why = forerun.Because(forerun.ReasonTTLOver)
	case !c.areCurrent(namespace, row.Below):
		x.Why = forerun.Because(forerun.ReasonChangedCode)
	default:
		err = c.compare(ctx, &x)
	}
	return x, err
}

// compare completes an explanation by the versions of the records that its row read.
func (c *Controller) compare(ctx context.Context, x *Explanation) error {
	x.Outcome, x.Why = forerun.CacheHit, forerun.Because(forerun.ReasonPure)
	if len(x.Row.Reads) == 0 {
		return nil
	}
	now, err := c.State.Versions(ctx, x.Row.Keys()...)
	if err != nil {
		return err
	}
	x.Why = forerun.Because(forerun.ReasonReadsUnchanged)
	for i, read := range x.Row.Reads {
		if now[i].Version != read.Version && len(x.Changed) < forerun.MaxCheckedShown {
			x.Changed = append(x.Changed, VersionPair{forerun.ShownName(read.Key.Name), read.Version, now[i].Version})
		}
	}
	if len(x.Changed) > 0 {
		x.Outcome, x.Why = forerun.CacheStale, &forerun.Reason{Code: forerun.ReasonChangedRecord, Record: x.Changed[0].Record}
	}
	return nil
}
