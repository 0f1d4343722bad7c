package controller

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"forerun.dev/forerun/internal/forerun"
)

// An annotated action that gave two outputs on the same input and the same versions of all records depends on something that Forerun does not
// see: its annotation is wrong. Such an action is suspended. It is executed each time, until it is deployed again or its tenant resumes it.

// suspensions lists a tenant's suspended deployments. Its zero value is ready.
type suspensions struct {
	mu  sync.Mutex // guards the rest
	of  map[forerun.Home]*forerun.Reason
	all bool // there were more than maxSuspensions: every action is suspended until one is resumed
}

// maxSuspensions bounds the deployments of a tenant that are suspended one by one.
const maxSuspensions = 1000

// why is the reason for which a deployment is suspended, or nil.
func (s *suspensions) why(home forerun.Home) *forerun.Reason {
	s.mu.Lock()
	defer s.mu.Unlock()
	why := s.of[home]
	if why == nil && s.all {
		return gaveAnother("")
	}
	return why
}

// add suspends a deployment, and reports whether it was not suspended before. isGone tells which deployments may be forgotten.
func (s *suspensions) add(home forerun.Home, why *forerun.Reason, isGone func(forerun.Home) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.of[home]; ok || s.all {
		return false
	}
	if len(s.of) >= maxSuspensions {
		maps.DeleteFunc(s.of, func(h forerun.Home, _ *forerun.Reason) bool { return isGone(h) })
	}
	if len(s.of) >= maxSuspensions {
		s.all = true
		return true
	}
	if s.of == nil {
		s.of = make(map[forerun.Home]*forerun.Reason)
	}
	s.of[home] = why
	return true
}

// lift ends the suspension of a deployment, and reports whether there was one.
func (s *suspensions) lift(home forerun.Home) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.of[home]
	ok = ok || s.all
	delete(s.of, home)
	s.all = false
	return ok
}

// compare suspends the action of a slot if an earlier execution, with the same input, versions and code, gave another output. A row with an end
// may have another: its action says so.
func (e *execution) compare(s *slot, before, now *forerun.Row) {
	same := s.cache.Kept && before.IsSeen() && now.IsSeen() && before.Until.IsZero() && now.Until.IsZero() &&
		slices.Equal(before.Reads, now.Reads) && slices.EqualFunc(before.Below, now.Below, sameCall)
	if !same || bytes.Equal(before.Output, now.Output) {
		return
	}
	e.c.suspend(e.namespace, now.Home, gaveAnother(differing(before.Output, now.Output)))
}

// suspend has no row of a deployment stand for an execution, and drops what rests on it.
func (c *Controller) suspend(namespace string, home forerun.Home, why *forerun.Reason) {
	tables := c.tables.tenant(namespace)
	if !tables.suspended.add(home, why, func(h forerun.Home) bool { return c.isGone(h, namespace) }) {
		return
	}
	tables.memo.DropOf(map[forerun.Home]bool{home: true})
	if c.Suspended != nil {
		c.Suspended(namespace, home.Action, why)
	}
}

// gaveAnother is why an action is suspended that gave two outputs; member differed, or all if it is empty.
func gaveAnother(member string) *forerun.Reason {
	return &forerun.Reason{Code: forerun.ReasonSuspended, Record: cmp.Or(member, "result")}
}

// differing is the first member that two outputs do not have alike; empty if they are not both objects.
func differing(a, b json.RawMessage) string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return ""
	}
	names := slices.Collect(maps.Keys(x))
	names = slices.AppendSeq(names, maps.Keys(y))
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(x[name], y[name]) {
			return forerun.ShownName(name)
		}
	}
	return ""
}

// home is the deployment of an action.
func (c *Controller) home(a *forerun.Action) forerun.Home {
	return forerun.Home{Action: a.FoundAs(), Code: c.digests.Deployed(a)}
}

// suspension is why results of an action are not used; nil: they are.
func (c *Controller) suspension(namespace string, a *forerun.Action) *forerun.Reason {
	return c.tables.tenant(namespace).suspended.why(c.home(a))
}

// Resume ends the suspension of an action, and reports whether there was one. Rows from before are dropped.
func (c *Controller) Resume(namespace string, a *forerun.Action) bool {
	tables, home := c.tables.tenant(namespace), c.home(a)
	if !tables.suspended.lift(home) {
		return false
	}
	tables.memo.DropOf(map[forerun.Home]bool{home: true})
	return true
}

// suspensionOf is suspension for an action by its name.
func (c *Controller) suspensionOf(ctx context.Context, namespace, action string) *forerun.Reason {
	name, err := forerun.ParseName(action, namespace)
	if err != nil {
		return nil
	}
	a, err := c.Actions.Resolve(ctx, name, namespace)
	if err != nil {
		return nil
	}
	return c.suspension(namespace, a)
}
