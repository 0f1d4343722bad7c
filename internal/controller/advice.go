package controller

import (
	"context"

	"forerun.dev/forerun/internal/behaviour"
)

// watch counts an execution of a slot's action, and reports whether it is to be followed because of that.
func (e *execution) watch(s *slot) bool {
	if e.rehearsal != nil || s.at.Self || s.at.Function != nil || e.cacheOff != "" {
		return false
	}
	watch := e.c.tables.tenant(e.namespace).behaviour.Count(e.c.home(s.action))
	s.watched = watch || s.cache.Kept && s.suspended == nil
	return watch
}

// Advice is what was seen of an action, and whether it is annotated.
type Advice struct {
	behaviour.Advice
	Annotated bool // its results are kept
}

// Advice tells what was seen of a namespace's actions, by name; of one, if it is named.
func (c *Controller) Advice(ctx context.Context, namespace, action string) (list []Advice) {
	for _, a := range c.tables.tenant(namespace).behaviour.Advice() {
		if action == "" || a.Home.Action == action {
			list = append(list, Advice{a, c.keeps(ctx, namespace, a.Home.Action)})
		}
	}
	return list
}
