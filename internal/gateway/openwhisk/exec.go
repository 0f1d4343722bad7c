package openwhisk

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
)

// sequence is the kind of an action that runs others, one after the other.
const sequence = "sequence"

// execPut is what an action is to execute, in a body.
type execPut struct {
	Kind       string    `json:"kind"`
	Code       *string   `json:"code"`
	Main       string    `json:"main"`
	Components *[]string `json:"components"`
}

// checkExec checks what an action is to execute and puts it into its final form.
func (a *API) checkExec(p *actionPut, own string) (err error) {
	if p.Exec == nil {
		return nil
	}
	e := p.Exec
	switch e.Kind = strings.ToLower(strings.TrimSpace(e.Kind)); {
	case e.Kind == "":
		return malformed("'kind' must be a string defined in 'exec'")
	case e.Kind == "blackbox":
		return noDocker()
	case e.Kind == sequence:
		return e.resolveComponents(own)
	case e.Code == nil:
		return malformed("'code' must be a string or attachment object defined in 'exec' for '%s' actions", e.Kind)
	case p.Annotations != nil && isComposition(*p.Annotations):
		if kind, err := a.kind(e.Kind); err == nil {
			e.Kind = kind
		}
		return nil // its code is hardly ever run: the document in the annotation is
	}
	if isGo(e.Kind) && !isBase64(strings.TrimSpace(*e.Code)) {
		return malformed("Go source is not compiled by this server: `forerun action create` and `forerun deploy` compile it, or send the program that `CGO_ENABLED=0 go build` makes.")
	}
	e.Kind, err = a.kind(e.Kind)
	return err
}

// isGo tells the kinds of OpenWhisk's Go runtime. A program of theirs runs as native: both speak ActionLoop.
func isGo(kind string) bool { return kind == "go" || strings.HasPrefix(kind, "go:") }

// kind resolves a kind: "python:default" is the first of its language, and "go:1.22" is native.
func (a *API) kind(name string) (string, error) {
	asked := name
	if isGo(name) {
		name = "native"
	}
	language, isDefault := strings.CutSuffix(name, ":default")
	var valid []string
	for _, kind := range a.kinds() {
		if kind == name || isDefault && (kind == language || strings.HasPrefix(kind, language+":")) {
			return kind, nil
		}
		valid = append(valid, "'"+kind+"'")
	}
	valid = append(valid, "'"+sequence+"'")
	return "", malformed("The specified runtime '%s' is not supported by this platform. Valid values are: %s.", asked, strings.Join(valid, ", "))
}

// kinds are those that an action can have in the end.
func (a *API) kinds() []string {
	return slices.DeleteFunc(slices.Clone(a.Kinds), func(kind string) bool { return strings.HasSuffix(kind, ":default") })
}

// isComposition tells what composer deploys: the composition's document is in the annotation "conductor".
func isComposition(annotations []forerun.KeyValue) bool {
	var document struct{ Type json.RawMessage }
	return json.Unmarshal(forerun.Lookup(annotations, "conductor"), &document) == nil && document.Type != nil
}

// resolveComponents makes the components' names absolute.
func (e *execPut) resolveComponents(own string) error {
	if e.Components == nil {
		return malformed("'components' must be defined for sequence kind")
	}
	if len(*e.Components) > forerun.MaxComponents {
		return tooManyComponents("components")
	}
	for i, c := range *e.Components {
		name, err := component(c, own)
		if err != nil {
			return err
		}
		(*e.Components)[i] = name.String()
	}
	return nil
}

func (e *execPut) exec() forerun.Exec {
	exec := forerun.Exec{Kind: e.Kind}
	if e.Kind == sequence {
		exec.Components = *e.Components
		return exec
	}
	exec.Code, exec.Main, exec.Binary = *e.Code, e.Main, isBase64(strings.TrimSpace(*e.Code))
	return exec
}

// isBase64 is OpenWhisk's test for code that is an archive.
func isBase64(code string) bool {
	if code == "" || len(code)%4 != 0 {
		return false
	}
	digits := strings.TrimSuffix(strings.TrimSuffix(code, "="), "=")
	return !strings.ContainsFunc(digits, func(c rune) bool {
		return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '+' && c != '/'
	})
}

// checkProgram checks an action as a whole: that its kind can be run and, if it runs other actions, that it can be
// compiled and its sequences end.
func (a *API) checkProgram(ctx context.Context, action *forerun.Action) error {
	if err := annotation.CheckWorkflow(action.Exec.Kind, action.Annotations); err != nil {
		return malformed("%w", err)
	}
	switch {
	case action.Exec.Kind == sequence:
		if err := a.checkSequence(ctx, action); err != nil {
			return err
		}
	case isComposition(action.Annotations):
	default:
		if _, err := a.kind(action.Exec.Kind); err != nil {
			return err
		}
	}
	return a.CheckFlow(action)
}

// checkSequence refuses sequences that are too long, that contain themselves, or whose components are not there.
func (a *API) checkSequence(ctx context.Context, action *forerun.Action) error {
	if len(action.Exec.Components) == 0 {
		return forerun.Errorf(forerun.Invalid, "components", "No component specified for the sequence.")
	}
	count := 0
	return a.walkSequence(ctx, action.Name.Namespace, action.Name, action.Exec.Components, 0, &count)
}

// walkSequence counts the functions that components come down to, for a caller who must be allowed to run them.
func (a *API) walkSequence(ctx context.Context, caller string, origin forerun.Name, components []string, depth int, count *int) error {
	for _, c := range components {
		name, err := forerun.ParseName(c, origin.Namespace)
		if err != nil {
			return err
		}
		if name == origin || depth > forerun.MaxComponents {
			return forerun.Errorf(forerun.Invalid, c, "Sequence may not refer to itself.")
		}
		action, err := a.Registry.Resolve(ctx, name, caller)
		switch {
		case err != nil && forerun.KindOf(err) == forerun.NotFound:
			return forerun.Errorf(forerun.Invalid, c, "Sequence component does not exist.")
		case err != nil:
			return err
		case action.Name == origin:
			return forerun.Errorf(forerun.Invalid, c, "Sequence may not refer to itself.")
		case action.Exec.Kind == sequence:
			if err := a.walkSequence(ctx, caller, origin, action.Exec.Components, depth+1, count); err != nil {
				return err
			}
		default:
			*count++
		}
		if *count > forerun.MaxComponents {
			return tooManyComponents(c)
		}
	}
	return nil
}

func tooManyComponents(subject string) error {
	return forerun.Errorf(forerun.Invalid, subject, "Too many actions in the sequence.")
}
