package openwhisk

import (
	"encoding/json"
	"net/http"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// triggerDocument is a trigger as the API shows it.
type triggerDocument struct {
	Namespace   string                      `json:"namespace"`
	Name        string                      `json:"name"`
	Parameters  []forerun.KeyValue          `json:"parameters"`
	Limits      struct{}                    `json:"limits"`
	Version     string                      `json:"version"`
	Publish     bool                        `json:"publish"`
	Annotations []forerun.KeyValue          `json:"annotations"`
	Rules       map[string]ruleLinkDocument `json:"rules,omitzero"` // by "namespace/name"
	Updated     int64                       `json:"updated"`        // milliseconds since 1970
}

type ruleLinkDocument struct {
	Action nameDocument `json:"action"`
	Status string       `json:"status"`
}

// nameDocument is the name of an entity in a document of another.
type nameDocument struct {
	Name string `json:"name"`
	Path string `json:"path"` // the namespace, with the package if any
}

func nameOf(n forerun.Name) nameDocument { return nameDocument{n.Entity, n.Path()} }

func triggerOf(e *registry.Entity) triggerDocument {
	d := triggerDocument{
		Namespace: e.Name.Namespace, Name: e.Name.Entity, Parameters: list(e.Parameters), Version: e.Version, Publish: e.Publish,
		Annotations: list(e.Annotations), Updated: e.Updated.UnixMilli(),
	}
	if e.Rules != nil {
		d.Rules = make(map[string]ruleLinkDocument, len(e.Rules))
		for rule, link := range e.Rules {
			d.Rules[unslashed(rule)] = ruleLinkDocument{nameOf(link.Action), statusOf(link.Active)}
		}
	}
	return d
}

// unslashed is a name as "namespace/name".
func unslashed(n forerun.Name) string { return n.String()[1:] }

// putTrigger answers PUT .../triggers/NAME.
func (a *API) putTrigger(c *call) error {
	content := new(struct{ entityPut })
	name, overwrite, err := c.begin(&content.entityPut, content)
	if err != nil {
		return err
	}
	if content.Parameters != nil {
		for _, kv := range *content.Parameters {
			if kv.Init {
				return forerun.Errorf(forerun.Invalid, kv.Key, "A trigger has no environment: send the parameter '%s' without init, or give it to the action.", kv.Key)
			}
		}
	}
	trigger, err := within(a, c, func() (*registry.Entity, error) {
		return a.Registry.PutEntity(c.r.Context(), registry.Triggers, name, overwrite, func(old *registry.Entity) (*registry.Entity, error) {
			e, err := content.applyTo(old)
			if err == nil && old == nil {
				err = checkFeed(e.Annotations)
			}
			return e, err
		})
	})
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, triggerOf(trigger))
	}
	return err
}

// checkFeed checks the annotation by which clients know the action that feeds a trigger: it is theirs to invoke.
func checkFeed(annotations []forerun.KeyValue) error {
	feed := forerun.Lookup(annotations, "feed")
	if feed == nil {
		return nil
	}
	var name string
	ok := json.Unmarshal(feed, &name) == nil && strings.Trim(name, "/") != ""
	for _, segment := range strings.Split(strings.Trim(name, "/"), "/") {
		ok = ok && forerun.CheckSegment(segment) == nil
	}
	if !ok {
		return forerun.Errorf(forerun.Invalid, "feed", "Feed name is not valid")
	}
	return nil
}

// getTrigger answers GET .../triggers/NAME.
func (a *API) getTrigger(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	secretsOf, err := c.secretsOf()
	if err != nil {
		return err
	}
	trigger, err := a.Registry.Entity(c.r.Context(), registry.Triggers, name)
	if err == nil {
		d := triggerOf(trigger)
		d.Parameters = shown(trigger.Parameters, secretsOf)
		gateway.WriteJSON(c.w, http.StatusOK, d)
	}
	return err
}

// deleteTrigger answers DELETE .../triggers/NAME with what the trigger was.
func (a *API) deleteTrigger(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	trigger, err := within(a, c, func() (*registry.Entity, error) { return a.Registry.DeleteTrigger(c.r.Context(), name) })
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, triggerOf(trigger))
	}
	return err
}
