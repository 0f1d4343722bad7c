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

// listActions answers GET .../actions, and .../actions/PACKAGE/ for one package.
func (a *API) listActions(c *call) error {
	namespace, err := c.namespace(c.vars["package"])
	if err != nil {
		return err
	}
	skip, limit, err := c.page("actions")
	if err != nil {
		return err
	}
	count, err := c.flag("count", false)
	if err != nil {
		return err
	}
	if count {
		n, err := a.Registry.CountActions(c.r.Context(), namespace, c.vars["package"])
		if err == nil {
			gateway.WriteJSON(c.w, http.StatusOK, map[string]int{"actions": max(0, n-skip)})
		}
		return err
	}
	actions, err := a.Registry.Actions(c.r.Context(), namespace, c.vars["package"], skip, limit)
	if err != nil {
		return err
	}
	summaries := make([]actionSummary, len(actions))
	for i, action := range actions {
		summaries[i] = summaryOf(action)
	}
	gateway.WriteJSON(c.w, http.StatusOK, summaries)
	return nil
}

// getAction answers GET .../actions/NAME.
func (a *API) getAction(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	withCode, err := c.flag("code", true)
	if err != nil {
		return err
	}
	action, err := a.Registry.Action(c.r.Context(), name)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, actionOf(action, withCode))
	}
	return err
}

// deleteAction answers DELETE .../actions/NAME with what the action was.
func (a *API) deleteAction(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	action, err := a.Registry.DeleteAction(c.r.Context(), name)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, actionOf(action, true))
	}
	return err
}
