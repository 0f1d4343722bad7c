package openwhisk

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/controller"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// fire answers POST .../triggers/NAME: the action of every active rule is invoked with the trigger's parameters and the body
// over them. The trigger's activation, whose id is the answer, tells in its log what came of each rule. A trigger without an
// active rule does nothing, and the answer is 204.
func (a *API) fire(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	ahead, err := c.speculation()
	if err != nil {
		return err
	}
	a.tellIgnored(c, ahead)
	event, err := c.input()
	if err != nil {
		return err
	}
	leave, err := a.enter(c)
	if err != nil {
		return err
	}
	defer leave()
	if err := a.Quotas.Fire(c.r.Context(), c.caller.Namespace); err != nil {
		return err
	}
	trigger, err := a.Registry.Entity(c.r.Context(), registry.Triggers, name)
	if err != nil {
		return err
	}
	if !hasActive(trigger) {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	input, err := canonical.Merge(trigger.Parameters, event)
	if err != nil {
		return err
	}
	c.r = c.r.WithContext(context.WithoutCancel(c.r.Context())) // all rules fire, even if the client goes
	record := a.newFiring(c, trigger, event)
	for _, rule := range rulesOf(trigger) {
		line := a.activate(c, rule, trigger.Rules[rule], input, terms{ahead: ahead}, a.start)
		record.Logs = append(record.Logs, line.String())
	}
	if err := a.put(c.r.Context(), record); err != nil {
		return err
	}
	c.w.Header().Set("X-Openwhisk-Activation-Id", string(record.ID))
	c.accepted(record.ID)
	return nil
}

// newFiring begins the record of a firing.
func (a *API) newFiring(c *call, trigger *registry.Entity, event json.RawMessage) *forerun.Activation {
	now := a.Controller.Clock.Now()
	return &forerun.Activation{
		ID: forerun.NewActivationID(now), Namespace: c.caller.Namespace, Subject: c.caller.Subject, Action: trigger.Name,
		Version: trigger.Version, Start: now, Result: event,
	}
}

// rulesOf lists the rules of a trigger in the order of their names.
func rulesOf(trigger *registry.Entity) []forerun.Name {
	return slices.SortedFunc(maps.Keys(trigger.Rules), byName)
}

func byName(a, b forerun.Name) int { return strings.Compare(a.Entity, b.Entity) }

func hasActive(trigger *registry.Entity) bool {
	for _, link := range trigger.Rules {
		if link.Active {
			return true
		}
	}
	return false
}

// ruleOutcome is a line in the log of a trigger's activation.
type ruleOutcome struct {
	StatusCode   forerun.Status       `json:"statusCode"`
	Success      bool                 `json:"success"`
	ActivationID forerun.ActivationID `json:"activationId,omitempty"`
	Error        string               `json:"error,omitempty"`
	Rule         string               `json:"rule"`
	Action       string               `json:"action"`
}

func (o ruleOutcome) String() string {
	text, _ := canonical.Marshal(o) // strings and numbers always marshal
	return string(text)
}

// starting begins an invocation, which ends with a record whatever comes, and returns its id.
type starting func(controller.Request) (forerun.ActivationID, error)

// activate invokes the action of a rule as a client would.
func (a *API) activate(c *call, rule forerun.Name, link *registry.RuleLink, input json.RawMessage, terms terms, start starting) ruleOutcome {
	outcome := ruleOutcome{Rule: unslashed(rule), Action: unslashed(link.Action)}
	if !link.Active {
		outcome.StatusCode = forerun.ApplicationError
		outcome.Error = "Rule '" + outcome.Rule + "' is inactive, action '" + outcome.Action + "' was not activated."
		return outcome
	}
	request, err := a.admit(c, link.Action, input, terms, a.Quotas.Invocation)
	if err == nil {
		request.Cause = "" // as OpenWhisk's: the log tells what belongs together
		outcome.ActivationID, err = start(request)
	}
	if outcome.Success = err == nil; outcome.Success {
		return outcome
	}
	status, message := gateway.Explain(c.w, c.r, err)
	c.w.Header().Del("Retry-After") // the firing itself was not refused
	outcome.Error, outcome.StatusCode = message, forerun.ApplicationError
	if status >= http.StatusInternalServerError {
		outcome.StatusCode = forerun.InternalError
	}
	return outcome
}

// start begins an invocation that nobody waits for.
func (a *API) start(request controller.Request) (forerun.ActivationID, error) {
	invocation, err := a.Controller.InvokeAccepted(request, func(accepted *forerun.Activation) error {
		return a.Activations.Accept(context.Background(), accepted)
	})
	if err != nil {
		request.Ended()
		return "", err
	}
	return invocation.ID(), nil
}
