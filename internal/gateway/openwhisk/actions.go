package openwhisk

import (
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// malformed says what is wrong with a body.
func malformed(format string, args ...any) error {
	return forerun.Errorf(forerun.Invalid, "", "The request content was malformed:\n"+format, args...)
}

// listActions answers GET .../actions, and .../actions/PACKAGE/ for one package, which may be another's that is published.
func (a *API) listActions(c *call) error {
	place, err := a.placeOfActions(c)
	if err != nil {
		return err
	}
	skip, limit, count, err := c.listing("actions")
	if err != nil {
		return err
	}
	if count {
		n, err := a.Registry.CountActions(c.r.Context(), place.Namespace, place.Package)
		if err == nil {
			gateway.WriteJSON(c.w, http.StatusOK, map[string]int{"actions": max(0, n-skip)})
		}
		return err
	}
	return streamList(c, a.Registry.Actions(c.r.Context(), place.Namespace, place.Package, skip, limit), func(action *forerun.Action) actionSummary {
		return summaryOf(c.seen(action))
	})
}

// placeOfActions is the namespace, and the package if any, whose actions are to be listed.
func (a *API) placeOfActions(c *call) (forerun.Name, error) {
	if c.vars.get("package") == "" {
		namespace, err := c.namespace("")
		return forerun.Name{Namespace: namespace}, err
	}
	asked, err := c.anyName()
	if err != nil {
		return asked, err
	}
	chain, err := a.Registry.Package(c.r.Context(), forerun.Name{Namespace: asked.Namespace, Entity: asked.Package}, c.caller.Namespace)
	if err != nil {
		return asked, err
	}
	home := chain[len(chain)-1].Name
	return forerun.Name{Namespace: home.Namespace, Package: home.Entity}, nil
}

// getAction answers GET .../actions/NAME.
func (a *API) getAction(c *call) error {
	name, err := c.anyName()
	if err != nil {
		return err
	}
	withCode, err := c.flag("code", true)
	if err != nil {
		return err
	}
	secretsOf, err := c.secretsOf()
	if err != nil {
		return err
	}
	action, err := a.Registry.Resolve(c.r.Context(), name, c.caller.Namespace)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, actionOf(c.seen(action), withCode, secretsOf))
	}
	return err
}

// deleteAction answers DELETE .../actions/NAME with what the action was.
func (a *API) deleteAction(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	action, err := within(a, c, func() (*forerun.Action, error) { return a.Registry.DeleteAction(c.r.Context(), name) })
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, actionOf(action, true, ""))
	}
	return err
}
