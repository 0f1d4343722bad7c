package openwhisk

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"regexp"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// putAction answers PUT .../actions/NAME: it creates the action or, with overwrite, updates it; what the body leaves out
// stays as it was.
func (a *API) putAction(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	overwrite, err := c.flag("overwrite", false)
	if err != nil {
		return err
	}
	content, err := a.readPut(c)
	if err != nil {
		return err
	}
	action, err := within(a, c, func() (*forerun.Action, error) {
		return a.Registry.PutAction(c.r.Context(), name, overwrite, func(old *forerun.Action) (*forerun.Action, error) {
			action, err := content.applyTo(old)
			if err != nil {
				return nil, err
			}
			action.Name = name
			return action, a.checkProgram(c.r.Context(), action)
		})
	})
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, actionOf(action, true, ""))
	}
	return err
}

// actionPut is the body of a PUT. What is nil is left as it was.
type actionPut struct {
	Exec           *execPut   `json:"exec"`
	Parameters     *keyValues `json:"parameters"`
	Annotations    *keyValues `json:"annotations"`
	DelAnnotations []string   `json:"delAnnotations"`
	Limits         limitsPut  `json:"limits"`
	Version        *string    `json:"version"`
	Publish        *bool      `json:"publish"`
}

// readPut reads and checks a body, as far as that goes without knowing the old action.
func (a *API) readPut(c *call) (*actionPut, error) {
	body, err := c.body(c.maxPut())
	if err != nil {
		return nil, err
	}
	content := new(actionPut)
	if len(body) > 0 {
		if err := c.mustBeJSON(); err != nil {
			return nil, err
		}
		if err := c.decode(body, content); err != nil {
			return nil, err
		}
	}
	if err := a.checkExec(content, c.caller.Namespace); err != nil {
		return nil, err
	}
	return content, errors.Join(content.checkSizes(a.Bounds.Code), content.checkAnnotations(), content.Limits.check(&a.Bounds), checkVersion(content.Version))
}

// decode is decode for a body that may be large.
func (c *call) decode(body []byte, content any) error {
	done, err := c.quotas.Apart(c.r.Context(), c.caller.Namespace, body)
	if err != nil {
		return err
	}
	defer done()
	return decode(body, content)
}

// decode reads a JSON object into content, and says in words what does not fit.
func decode(body []byte, content any) error {
	err := json.Unmarshal(body, content)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return malformed("The content must be a JSON object, not %s.", wrong.Value)
		}
		return malformed("'%s' must be %s, not %s", wrong.Field, inJSON(wrong.Type), wrong.Value)
	}
	if _, ok := errors.AsType[*forerun.Error](err); ok {
		return err
	}
	if err != nil {
		return malformed("The content is not valid JSON: %w", err)
	}
	return nil
}

// inJSON is what JSON calls a type that a body's member has here.
func inJSON(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int:
		return "an integer"
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

func (p *actionPut) checkSizes(maxCode int) error {
	if p.Exec != nil && p.Exec.Code != nil {
		if n := len(*p.Exec.Code) + len(p.Exec.Main); n > maxCode {
			return tooBig("exec", n, maxCode)
		}
	}
	if n := p.Parameters.size(); n > maxParameters {
		return tooBig("parameters", n, maxParameters)
	}
	if n := p.Annotations.size(); n > maxParameters {
		return tooBig("annotations", n, maxParameters)
	}
	return nil
}

func (p *actionPut) checkAnnotations() error {
	if p.Annotations == nil {
		return nil
	}
	if err := annotation.Check(*p.Annotations.annotations()); err != nil {
		return malformed("%w", err)
	}
	return nil
}

func tooBig(field string, is, allowed int) error {
	return forerun.Errorf(forerun.TooLarge, field, "%s larger than allowed: %d > %d bytes.", field, is, allowed)
}

var semanticVersion = regexp.MustCompile(`^(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})\.(0|[1-9]\d{0,8})$`)

func checkVersion(v *string) error {
	if v != nil && (!semanticVersion.MatchString(*v) || *v == "0.0.0") {
		return malformed("semantic version malformed")
	}
	return nil
}

// applyTo makes the action that the body describes, from what was there before, if anything.
func (p *actionPut) applyTo(old *forerun.Action) (*forerun.Action, error) {
	a := &forerun.Action{Limits: forerun.DefaultLimits()}
	annotations := keyValues{}
	if old != nil {
		*a = *old
		a.Version = ""
		annotations = old.Annotations
	} else if p.Exec == nil {
		return nil, forerun.Errorf(forerun.Invalid, "exec", "exec undefined")
	}
	var err error
	if a.Parameters, err = p.parameters(old); err != nil {
		return nil, err
	}
	if p.Exec != nil {
		a.Exec = p.Exec.exec()
	}
	p.Limits.applyTo(&a.Limits)
	if p.Version != nil {
		a.Version = *p.Version
	}
	if p.Publish != nil {
		a.Publish = *p.Publish
	}
	a.Annotations = p.annotations(annotations, old == nil, a.Exec.Kind)
	a.Parameters = sealing(a.Parameters, a.Annotations)
	return a, forerun.CheckEnvironment(a.Parameters)
}

// parameters are the body's, or the old ones; a sequence has none but the list of its components.
func (p *actionPut) parameters(old *forerun.Action) ([]forerun.KeyValue, error) {
	wasSequence := old != nil && old.Exec.Kind == sequence
	switch {
	case p.Exec != nil && p.Exec.Kind == sequence:
		names, _ := json.Marshal(p.Exec.Components) // strings always marshal
		return []forerun.KeyValue{{Key: "_actions", Value: names}}, nil
	case p.Exec == nil && wasSequence:
		return old.Parameters, nil
	case p.Parameters != nil && old != nil:
		return p.Parameters.keeping(old.Parameters)
	case p.Parameters != nil:
		return p.Parameters.keeping(nil)
	case old != nil && !wasSequence:
		return old.Parameters, nil
	}
	return nil, nil
}

func (p *actionPut) annotations(kvs keyValues, create bool, kind string) []forerun.KeyValue {
	kvs = kvs.without(p.DelAnnotations)
	if p.Annotations != nil {
		kvs = kvs.under(*p.Annotations)
	}
	if create && forerun.Lookup(kvs, annotation.ProvideAPIKey) == nil {
		kvs = kvs.with(annotation.ProvideAPIKey, json.RawMessage(annotation.DefaultAPIKey))
	}
	quoted, _ := json.Marshal(kind) // strings always marshal
	return kvs.with("exec", quoted)
}
