package openwhisk

import (
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// collections are those of OpenWhisk's that Forerun does not have yet, with what their members are called.
func collections() map[string]string {
	return map[string]string{"triggers": "Triggers", "rules": "Rules", "packages": "Packages", "apis": "APIs"}
}

// missing says that a part of OpenWhisk is not there.
func missing(what string) error {
	return forerun.Errorf(forerun.Unsupported, what, "%s are not part of this version of Forerun.", what)
}

// listNothing answers GET .../COLLECTION: there is none of what cannot be made.
func (a *API) listNothing(c *call) error {
	if _, ok := collections()[c.vars["collection"]]; !ok {
		return a.refuse(c)
	}
	if _, err := c.namespace(""); err != nil {
		return err
	}
	gateway.WriteJSON(c.w, http.StatusOK, []any{})
	return nil
}

// refuse answers everything else about a collection that is not there.
func (a *API) refuse(c *call) error {
	what, ok := collections()[c.vars["collection"]]
	if !ok {
		return forerun.Errorf(forerun.NotFound, c.r.URL.Path, "The requested resource could not be found.")
	}
	if _, err := c.name(); err != nil {
		return err
	}
	if c.r.Method == http.MethodGet || c.r.Method == http.MethodDelete {
		return forerun.Errorf(forerun.NotFound, what, "The requested resource does not exist. %s are not part of this version of Forerun.", what)
	}
	return missing(what)
}
