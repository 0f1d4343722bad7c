package openwhisk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"slices"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/registry"
)

// bindingDocument names the package that a binding stands for.
type bindingDocument struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// bindingOf shows a package's binding, or otherwise if it is none.
func bindingOf(e *registry.Entity, otherwise any) any {
	if e.Binding == nil {
		return otherwise
	}
	return bindingDocument{e.Binding.Namespace, e.Binding.Entity}
}

// packageDocument is a package as the API shows it. Where it is read, the lists "actions" and "feeds" follow.
type packageDocument struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Binding     any                `json:"binding"`
	Parameters  []forerun.KeyValue `json:"parameters"`
	Version     string             `json:"version"`
	Publish     bool               `json:"publish"`
	Annotations []forerun.KeyValue `json:"annotations"`
	Updated     int64              `json:"updated"` // milliseconds since 1970
}

// packageAction is an action in a package.
type packageAction struct {
	Name        string             `json:"name"`
	Version     string             `json:"version"`
	Annotations []forerun.KeyValue `json:"annotations"`
}

func packageOf(e *registry.Entity) packageDocument {
	return packageDocument{
		Namespace: e.Name.Namespace, Name: e.Name.Entity, Binding: bindingOf(e, document{}), Parameters: list(e.Parameters),
		Version: e.Version, Publish: e.Publish, Annotations: list(e.Annotations), Updated: e.Updated.UnixMilli(),
	}
}

func packageSummaryOf(e *registry.Entity) any {
	s := entitySummaryOf(e)
	s.Binding = bindingOf(e, false)
	return s
}

// packagePut is the body of a PUT.
type packagePut struct {
	entityPut
	Binding *struct {
		Namespace *string `json:"namespace"`
		Name      *string `json:"name"`
	} `json:"binding"` // an empty object is none
}

// binding reads what the body binds to; nil if nothing.
func (p *packagePut) binding(own string) (*forerun.Name, error) {
	b := p.Binding
	switch {
	case b == nil || b.Namespace == nil && b.Name == nil:
		return nil, nil
	case b.Namespace == nil || b.Name == nil:
		return nil, malformed("A 'binding' must have a 'namespace' and a 'name'.")
	}
	to := forerun.Name{Namespace: *b.Namespace, Entity: *b.Name}
	if to.Namespace == "_" {
		to.Namespace = own
	}
	if forerun.CheckSegment(to.Namespace) != nil || forerun.CheckSegment(to.Entity) != nil {
		return nil, malformed("The 'binding' holds illegal characters.")
	}
	return &to, nil
}

// putPackage answers PUT .../packages/NAME: it creates or updates a package, or a binding.
func (a *API) putPackage(c *call) error {
	content := new(packagePut)
	name, overwrite, err := c.begin(&content.entityPut, content)
	if err != nil {
		return err
	}
	if name.Entity == "default" {
		return forerun.Errorf(forerun.Invalid, name.Entity, "Package name 'default' is reserved.")
	}
	binding, err := content.binding(name.Namespace)
	if err != nil {
		return err
	}
	pkg, err := within(a, c, func() (*registry.Entity, error) {
		return a.Registry.PutEntity(c.r.Context(), registry.Packages, name, overwrite, func(old *registry.Entity) (*registry.Entity, error) {
			e, err := content.applyTo(old)
			if err != nil {
				return nil, err
			}
			if binding != nil {
				if err := a.checkBinding(c.r.Context(), old, *binding, name.Namespace); err != nil {
					return nil, err
				}
				e.Binding = binding
			}
			e.Annotations = bindingAnnotation(e)
			return e, nil
		})
	})
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, packageOf(pkg))
	}
	return err
}

// checkBinding checks that a package can be bound to another, which its owner must be allowed to read.
func (a *API) checkBinding(ctx context.Context, old *registry.Entity, to forerun.Name, owner string) error {
	chain, err := a.Registry.Package(ctx, to, owner)
	switch kind := forerun.KindOf(err); {
	case err != nil && kind == forerun.NotFound:
		return forerun.Errorf(forerun.Invalid, to.String(), "Binding references a package that does not exist.")
	case err != nil && kind == forerun.Exists:
		return forerun.Errorf(forerun.Exists, to.String(), "Cannot bind to a resource that is not a package.")
	case err != nil:
		return err
	case len(chain) > 1:
		return forerun.Errorf(forerun.Invalid, to.String(), "Cannot bind to another package binding.")
	case old != nil && old.Binding == nil:
		return forerun.Errorf(forerun.Exists, old.Name.String(), "Resource is a package and cannot be converted into a binding.")
	}
	return nil
}

// bindingAnnotation are a package's annotations with its binding among them, for clients that see it in lists only.
func bindingAnnotation(e *registry.Entity) []forerun.KeyValue {
	kvs := slices.DeleteFunc(slices.Clone(e.Annotations), func(kv forerun.KeyValue) bool { return kv.Key == "binding" })
	if e.Binding == nil {
		return kvs
	}
	value, _ := json.Marshal(bindingOf(e, nil)) // strings always marshal
	return append(kvs, forerun.KeyValue{Key: "binding", Value: value})
}

// getPackage answers GET .../packages/NAME with the package and what is in it: a binding has the actions and the parameters
// of its package.
func (a *API) getPackage(c *call) error {
	name, err := c.anyName()
	if err != nil {
		return err
	}
	secretsOf, err := c.secretsOf()
	if err != nil {
		return err
	}
	chain, err := a.Registry.Package(c.r.Context(), name, c.caller.Namespace)
	if err != nil {
		return err
	}
	home := chain[len(chain)-1].Name
	d := packageOf(chain[0])
	d.Parameters = shown(registry.Inherited(chain), secretsOf)
	head, _ := bytes.CutSuffix(gateway.Marshal(d), []byte("}"))
	show := func(action *forerun.Action) packageAction { return packageActionOf(c.seen(action)) }
	return c.stream(func(out *bufio.Writer) error {
		_, _ = out.Write(head) // that it fails is told by what follows
		_, _ = out.WriteString(`,"actions":`)
		if err := writeList(out, a.actionsIn(c.r.Context(), home, false), show); err != nil {
			return err
		}
		_, _ = out.WriteString(`,"feeds":`)
		if err := writeList(out, a.actionsIn(c.r.Context(), home, true), show); err != nil {
			return err
		}
		return out.WriteByte('}')
	})
}

// actionsIn walks the actions of a package: the feeds, which have the annotation "feed", or the others.
func (a *API) actionsIn(ctx context.Context, pkg forerun.Name, feeds bool) iter.Seq2[*forerun.Action, error] {
	return func(yield func(*forerun.Action, error) bool) {
		for action, err := range a.Registry.Actions(ctx, pkg.Namespace, pkg.Entity, 0, registry.NoLimit) {
			isAsked := err != nil || (forerun.Lookup(action.Annotations, "feed") != nil) == feeds
			if isAsked && !yield(action, err) {
				return
			}
		}
	}
}

func packageActionOf(a *forerun.Action) packageAction {
	return packageAction{a.Name.Entity, a.Version, list(a.Annotations)}
}

// deletePackage answers DELETE .../packages/NAME with what the package was. The parameter force deletes its actions too.
func (a *API) deletePackage(c *call) error {
	name, err := c.name()
	if err != nil {
		return err
	}
	force, err := c.flag("force", false)
	if err != nil {
		return err
	}
	pkg, err := within(a, c, func() (*registry.Entity, error) { return a.Registry.DeletePackage(c.r.Context(), name, force) })
	if err == nil {
		gateway.WriteJSON(c.w, http.StatusOK, packageOf(pkg))
	}
	return err
}
