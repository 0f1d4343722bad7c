package openwhisk

import (
	"net/http"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// entityPut is what the bodies of a PUT of a package, a trigger and a rule share. What is nil is left as it was.
type entityPut struct {
	Parameters  *keyValues `json:"parameters"`
	Annotations *keyValues `json:"annotations"`
	Version     *string    `json:"version"`
	Publish     *bool      `json:"publish"`
}

// readEntity reads the body of a PUT into content, which holds put. No body is an empty object.
func (c *call) readEntity(put *entityPut, content any) error {
	body, err := c.body(c.maxPut())
	if err != nil {
		return err
	}
	if len(body) > 0 {
		if err := c.mustBeJSON(); err != nil {
			return err
		}
		if err := c.decode(body, content); err != nil {
			return err
		}
	}
	if n := put.Parameters.size(); n > maxParameters {
		return tooBig("parameters", n, maxParameters)
	}
	if n := put.Annotations.size(); n > maxParameters {
		return tooBig("annotations", n, maxParameters)
	}
	put.Annotations = put.Annotations.annotations()
	return checkVersion(put.Version)
}

// applyTo makes the entity that the body describes, from what was there before, if anything.
func (p *entityPut) applyTo(old *registry.Entity) (*registry.Entity, error) {
	e := new(registry.Entity)
	if old != nil {
		*e = *old
		e.Version = ""
	}
	if p.Parameters != nil {
		parameters, err := p.Parameters.keeping(e.Parameters)
		if err != nil {
			return nil, err
		}
		e.Parameters = parameters
	}
	if p.Annotations != nil {
		e.Annotations = *p.Annotations
	}
	if p.Version != nil {
		e.Version = *p.Version
	}
	if p.Publish != nil {
		e.Publish = *p.Publish
	}
	e.Parameters = sealing(e.Parameters, e.Annotations)
	return e, forerun.CheckEnvironment(e.Parameters)
}

// begin reads what every PUT of an entity begins with.
func (c *call) begin(put *entityPut, content any) (name forerun.Name, overwrite bool, err error) {
	if name, err = c.name(); err != nil {
		return name, false, err
	}
	if overwrite, err = c.flag("overwrite", false); err != nil {
		return name, false, err
	}
	return name, overwrite, c.readEntity(put, content)
}

// listEntities answers GET .../packages, .../triggers or .../rules. Of another's packages those that are published are listed.
func (a *API) listEntities(collection registry.Collection, show func(*registry.Entity) any) func(*call) error {
	plural := string(collection) + "s"
	return func(c *call) error {
		place, err := c.anyName()
		if err != nil {
			return err
		}
		isOwner := place.Namespace == c.caller.Namespace
		if !isOwner && collection != registry.Packages {
			return forbidden(place.Namespace)
		}
		skip, limit, count, err := c.listing(plural)
		if err != nil {
			return err
		}
		if count {
			n, err := a.Registry.CountEntities(c.r.Context(), collection, place.Namespace, !isOwner)
			if err == nil {
				gateway.WriteJSON(c.w, http.StatusOK, map[string]int{plural: max(0, n-skip)})
			}
			return err
		}
		return streamList(c, a.Registry.Entities(c.r.Context(), collection, place.Namespace, !isOwner, skip, limit), show)
	}
}

// entitySummary is a package or a trigger in a list; Binding is there for packages.
type entitySummary struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Updated     int64              `json:"updated"` // milliseconds since 1970
	Binding     any                `json:"binding,omitempty"`
}

func triggerSummaryOf(e *registry.Entity) any { return entitySummaryOf(e) }

func entitySummaryOf(e *registry.Entity) entitySummary {
	return entitySummary{
		Namespace: e.Name.Namespace, Name: e.Name.Entity, Version: e.Version, Publish: e.Publish,
		Annotations: list(e.Annotations), Updated: e.Updated.UnixMilli(),
	}
}
