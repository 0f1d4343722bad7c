package openwhisk

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// ruleDocument is a rule as the API shows it; lists do not tell its status.
type ruleDocument struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Status      string             `json:"status,omitempty"`
	Trigger     nameDocument       `json:"trigger"`
	Action      nameDocument       `json:"action"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Updated     int64              `json:"updated"` // milliseconds since 1970
}

// The states of a rule.
const (
	active   = "active"
	inactive = "inactive"
)

func statusOf(isActive bool) string {
	if isActive {
		return active
	}
	return inactive
}

func ruleOf(e *registry.Entity, status string) ruleDocument {
	return ruleDocument{
		Namespace: e.Name.Namespace, Name: e.Name.Entity, Status: status, Trigger: nameOf(e.Trigger), Action: nameOf(e.Action),
		Version: e.Version, Publish: e.Publish, Annotations: list(e.Annotations), Updated: e.Updated.UnixMilli(),
	}
}

func ruleSummaryOf(e *registry.Entity) any { return ruleOf(e, "") }

// rulePut is the body of a PUT.
type rulePut struct {
	entityPut
	Trigger *entityName `json:"trigger"`
	Action  *entityName `json:"action"`
}

// entityName is a name in a body: "/namespace/name" or {"path": "namespace", "name": "name"}.
type entityName string

// UnmarshalJSON implements json.Unmarshaler.
func (n *entityName) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, (*string)(n)) == nil {
		return nil
	}
	var parts struct{ Path, Name *string }
	if json.Unmarshal(data, &parts) != nil || parts.Path == nil || parts.Name == nil {
		return malformed("fully qualified name malformed")
	}
	*n = entityName(*parts.Path + "/" + *parts.Name)
	return nil
}

func (n *entityName) resolve(own string) (*forerun.Name, error) {
	if n == nil {
		return nil, nil
	}
	name, err := component(string(*n), own)
	return &name, err
}

// putRule answers PUT .../rules/NAME: a new rule is active, an updated one is what it was.
func (a *API) putRule(c *call) error {
	content := new(rulePut)
	name, overwrite, err := c.begin(&content.entityPut, content)
	if err != nil {
		return err
	}
	content.Parameters = nil // rules have none
	trigger, err := content.Trigger.resolve(name.Namespace)
	if err != nil {
		return err
	}
	action, err := content.Action.resolve(name.Namespace)
	if err != nil {
		return err
	}
	if err := a.checkReferences(c, trigger, action); err != nil {
		return err
	}
	var isActive bool
	rule, err := within(a, c, func() (rule *registry.Entity, err error) {
		rule, isActive, err = a.Registry.PutRule(c.r.Context(), name, overwrite, func(old *registry.Entity) (*registry.Entity, error) {
			e, err := content.applyTo(old)
			if err != nil {
				return nil, err
			}
			if trigger != nil {
				e.Trigger = *trigger
			}
			if action != nil {
				e.Action = *action
			}
			if e.Trigger.Entity == "" || e.Action.Entity == "" {
				return nil, forerun.Errorf(forerun.Invalid, name.String(), "rule requires a valid trigger and a valid action")
			}
			return e, a.checkTies(c.r.Context(), e, name.Namespace)
		})
		return rule, err
	})
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, ruleOf(rule, statusOf(isActive)))
	}
	return err
}

// checkReferences checks that the caller may name what a rule names, all of it at once.
func (a *API) checkReferences(c *call, trigger, action *forerun.Name) error {
	var refused []string
	if trigger != nil && trigger.Namespace != c.caller.Namespace {
		refused = append(refused, unslashed(*trigger))
	}
	if action != nil {
		_, err := a.Registry.Resolve(c.r.Context(), *action, c.caller.Namespace)
		switch {
		case err == nil:
		case forerun.KindOf(err) == forerun.Forbidden:
			refused = append(refused, unslashed(*action))
		case action.Package != "" && forerun.KindOf(err) != forerun.NotFound, forerun.KindOf(err) == forerun.Internal:
			return err
		}
	}
	if refused == nil {
		return nil
	}
	slices.Sort(refused)
	return forbidden(strings.Join(refused, ", "))
}

// checkTies checks that what a rule ties together is there.
func (a *API) checkTies(ctx context.Context, rule *registry.Entity, caller string) error {
	_, err := a.Registry.Entity(ctx, registry.Triggers, rule.Trigger)
	if isAbsent(err) {
		return forerun.Errorf(forerun.Invalid, rule.Trigger.String(), "trigger %s does not exist", rule.Trigger)
	}
	if err != nil {
		return err
	}
	if _, err = a.Registry.Resolve(ctx, rule.Action, caller); isAbsent(err) {
		return forerun.Errorf(forerun.Invalid, rule.Action.String(), "action %s does not exist", rule.Action)
	}
	return err
}

// isAbsent tells that there is no such entity, or one of another collection.
func isAbsent(err error) bool {
	return err != nil && (forerun.KindOf(err) == forerun.NotFound || forerun.KindOf(err) == forerun.Exists)
}

// setRule answers POST .../rules/NAME {"status": "active" or "inactive"}.
func (a *API) setRule(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	body, err := c.body(int64(c.bounds.Payload))
	if err != nil {
		return err
	}
	if err := c.mustBeJSON(); err != nil {
		return err
	}
	content := new(struct {
		Status string `json:"status"`
	})
	if err := c.decode(body, content); err != nil {
		return err
	}
	if content.Status != active && content.Status != inactive {
		return malformed("%s is not a recognized rule state", content.Status)
	}
	leave, err := a.enter(c)
	if err != nil {
		return err
	}
	defer leave()
	if err := a.Registry.SetRule(c.r.Context(), name, content.Status == active); err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	_, _ = io.WriteString(c.w, "OK") // nobody is left to tell
	return nil
}

// getRule answers GET .../rules/NAME.
func (a *API) getRule(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	rule, err := a.Registry.Entity(c.r.Context(), registry.Rules, name)
	if err != nil {
		return err
	}
	isActive, err := a.Registry.Active(c.r.Context(), rule)
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, ruleOf(rule, statusOf(isActive)))
	}
	return err
}

// deleteRule answers DELETE .../rules/NAME with what the rule was.
func (a *API) deleteRule(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	rule, err := within(a, c, func() (*registry.Entity, error) { return a.Registry.DeleteRule(c.r.Context(), name) })
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, ruleOf(rule, inactive))
	}
	return err
}
