package controller

import (
	"context"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
)

// Rows of the memo table go with the deployments that they rest on: once an action was updated or deleted, or its package unpublished, no
// execution finds them. They would only take room until others need it.

// ActionsChanged says that what Actions finds has changed. It returns at once.
func (c *Controller) ActionsChanged() {
	if c.sweeps.Add(1) == 1 {
		c.aside.Go(c.sweep)
	}
}

// restFactor is how many times longer than a sweep the pause behind it is: many deployments in a row share the next one.
const restFactor = 9

// sweep drops the rows that rest on what is not deployed any more, and what is known of that otherwise, until nothing has changed since.
func (c *Controller) sweep() {
	for {
		changes, began := c.sweeps.Load(), time.Now()
		for namespace, tenant := range c.tables.tenants() {
			leave := c.Enter(namespace) // Close waits for it: there is no store after that
			if !c.closed.Load() {
				c.dropOld(namespace, tenant, tenant.Homes())
				t, isGone := c.tables.tenant(namespace), func(h forerun.Home) bool { return c.isGone(h, namespace) }
				t.behaviour.Forget(isGone)
				t.samples.forget(isGone)
			}
			leave()
		}
		if c.sweeps.CompareAndSwap(changes, 0) {
			return
		}
		select {
		case <-time.After(restFactor * time.Since(began)):
		case <-c.open.Done():
			return
		}
	}
}

// dropOld drops a tenant's rows that rest on deployments that are gone.
func (c *Controller) dropOld(namespace string, tenant *memo.Tenant, homes []forerun.Home) {
	gone := make(map[forerun.Home]bool)
	for _, home := range homes {
		if c.isGone(home, namespace) {
			gone[home] = true
		}
	}
	if len(gone) > 0 {
		tenant.DropOf(gone)
	}
}

// isGone reports whether a caller of some namespace does not find a deployment any more. If the store cannot tell, it is not gone.
func (c *Controller) isGone(home forerun.Home, namespace string) bool {
	name, err := forerun.ParseName(home.Action, namespace)
	if err != nil {
		return true
	}
	action, err := c.Actions.Resolve(context.Background(), name, namespace)
	switch forerun.KindOf(err) {
	case forerun.NotFound, forerun.Forbidden:
		return true
	}
	return err == nil && c.digests.Deployed(action) != home.Code
}
