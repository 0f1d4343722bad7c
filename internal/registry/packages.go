package registry

import (
	"context"
	"slices"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// maxBindings bounds how many bindings may stand for each other, so that those that stand for themselves are found.
const maxBindings = 8

// Package finds a package for a caller of some namespace, with the packages that it is bound to: the first has the name, the
// last is no binding, and holds the actions. A package is open to its owner, and to all if it is published; a binding is open
// to its owner if what it is bound to is. The error is forerun.Forbidden if it is not open to the caller, NotFound if the caller
// owns none of that name, or Exists, as that of Entity.
func (r *Registry) Package(ctx context.Context, name forerun.Name, caller string) ([]*Entity, error) {
	asked := name
	var chain []*Entity
	for {
		isOwner := name.Namespace == caller
		pkg, err := r.Entity(ctx, Packages, name)
		switch {
		case err != nil && !isOwner && forerun.KindOf(err) != forerun.Internal:
			return nil, r.Denied(ctx, asked) // nothing is told of what others have
		case err != nil:
			return nil, err
		case !isOwner && (!pkg.Publish || pkg.Binding != nil):
			return nil, Forbidden(asked)
		}
		if chain = append(chain, pkg); pkg.Binding == nil {
			return chain, nil
		}
		if name = *pkg.Binding; len(chain) == maxBindings {
			return nil, forerun.Errorf(forerun.Unprocessable, asked.String(), "Package binding '%s' contains a circular reference.", asked.Path()+"/"+asked.Entity)
		}
	}
}

// Inherited are the parameters of a package with those of the packages that it is bound to under them.
func Inherited(chain []*Entity) []forerun.KeyValue {
	var all []forerun.KeyValue
	for _, pkg := range slices.Backward(chain) {
		all = over(pkg.Parameters, all)
	}
	return all
}

// over lays parameters over others.
func over(upper, lower []forerun.KeyValue) []forerun.KeyValue {
	if len(lower) == 0 {
		return upper
	}
	has := make(map[string]bool, len(upper)) // both may be very many
	for _, kv := range upper {
		has[kv.Key] = true
	}
	all := slices.Clone(upper)
	for _, kv := range lower {
		if !has[kv.Key] {
			all = append(all, kv)
		}
	}
	return all
}

// resolution is an action with what it inherits, and what that was made of.
type resolution struct {
	action *forerun.Action
	chain  []*Entity
	merged *forerun.Action
}

// Resolve finds an action as a caller of some namespace names it: through the package that it is in, or through a binding.
// Its parameters are the package's, over them the binding's, over them its own. The action must not be changed. The
// error is that of Package, or forerun.NotFound if there is no such action.
func (r *Registry) Resolve(ctx context.Context, name forerun.Name, caller string) (*forerun.Action, error) {
	if name.Package == "" {
		if name.Namespace != caller {
			return nil, r.Denied(ctx, name)
		}
		return r.Action(ctx, name)
	}
	chain, err := r.Package(ctx, forerun.Name{Namespace: name.Namespace, Entity: name.Package}, caller)
	if err != nil {
		return nil, err
	}
	home := chain[len(chain)-1].Name
	action, err := r.Action(ctx, forerun.Name{Namespace: home.Namespace, Package: home.Entity, Entity: name.Entity})
	if err != nil {
		return nil, err
	}
	return r.inherit(name, action, chain), nil
}

// inherit lays the parameters of packages under an action's. For the same it returns the same, so that what was made of the
// action (a sandbox, a program) is found again.
func (r *Registry) inherit(name forerun.Name, action *forerun.Action, chain []*Entity) *forerun.Action {
	known, ok := r.merged.get(name)
	if ok && known.madeOf(action, chain) {
		return known.merged
	}
	parameters := Inherited(chain)
	if len(parameters) == 0 && len(chain) == 1 {
		return action
	}
	merged := *action
	merged.Parameters = over(action.Parameters, parameters)
	if len(chain) > 1 {
		merged.Binding = name.Path()
	}
	if ok {
		r.merged.forget(name)
	}
	return r.share(name, resolution{action, chain, &merged})
}

// share keeps a resolution, and returns the action that all are to share which is made of the same. Another may have been kept a moment
// sooner, of what was there before or is by now.
func (r *Registry) share(name forerun.Name, x resolution) *forerun.Action {
	if kept := r.merged.put(name, x, r.merged.begin(name)); kept.madeOf(x.action, x.chain) {
		return kept.merged
	}
	return x.merged
}

// bytes is about what it keeps in memory.
func (x resolution) bytes() int {
	n := actionBytes(x.merged)
	for _, pkg := range x.chain {
		n += entityBytes(pkg)
	}
	return n
}

func (x resolution) madeOf(action *forerun.Action, chain []*Entity) bool {
	if x.action != action || len(x.chain) != len(chain) {
		return false
	}
	for i := range chain {
		if x.chain[i] != chain[i] {
			return false
		}
	}
	return true
}

// DeletePackage removes a package or binding and returns what it was. With force the actions in it go too; without, it is
// kept if there are any, and the error is forerun.Exists. Else the error is that of Entity.
func (r *Registry) DeletePackage(ctx context.Context, name forerun.Name, force bool) (*Entity, error) {
	return again(name, func() (*Entity, error) { return r.tryDeletePackage(ctx, name, force) })
}

func (r *Registry) tryDeletePackage(ctx context.Context, name forerun.Name, force bool) (*Entity, error) {
	f, err := r.findIn(ctx, Packages, name)
	if err != nil {
		return nil, err
	}
	members := membersRecord(forerun.Name{Namespace: name.Namespace, Package: name.Entity})
	record, err := r.get(ctx, members) // before the actions are listed: none can be made between that and the end
	if err != nil {
		return nil, err
	}
	t := new(transaction)
	t.remove(f)
	t.Expect = append(t.Expect, unchanged(members, record[0].Version))
	t.Ops = append(t.Ops, del(members))
	actions, err := r.actionsToDelete(ctx, name, force)
	if err != nil {
		return nil, err
	}
	for _, action := range actions {
		t.Ops = append(t.Ops, del(recordsOf(action.name, action.updated)...))
	}
	if err := t.apply(ctx, r); err != nil {
		return nil, err
	}
	for _, action := range actions {
		r.actions.forget(action.name)
	}
	if len(actions) > 0 {
		r.recount(name.Namespace)
	}
	return f.entity, nil
}

// actionsToDelete finds the actions of a package that is to be deleted. They are not read: together they may be large.
func (r *Registry) actionsToDelete(ctx context.Context, pkg forerun.Name, force bool) ([]listed, error) {
	n, err := r.CountActions(ctx, pkg.Namespace, pkg.Entity)
	if err != nil || n == 0 {
		return nil, err
	}
	if !force {
		entities := "entities"
		if n == 1 {
			entities = "entity"
		}
		return nil, forerun.Errorf(forerun.Exists, pkg.String(), "Package not empty (contains %d %s). Set force param or delete package contents.", n, entities)
	}
	return r.pick(ctx, pkg.Namespace, pkg.Entity, 0, n)
}

// home finds out whether an action may be made or deleted where its name says: in a package that is there and is no binding,
// or outside packages where nothing else has its name. What it rests on must not change meanwhile.
func (r *Registry) home(ctx context.Context, name forerun.Name) ([]state.Expect, error) {
	if name.Package == "" {
		f, err := r.find(ctx, name)
		if err == nil && f.entity != nil {
			err = otherCollection(name)
		}
		return []state.Expect{unchanged(entityRecord(name), 0)}, err
	}
	pkg := forerun.Name{Namespace: name.Namespace, Entity: name.Package}
	f, err := r.findIn(ctx, Packages, pkg)
	if err == nil && f.entity.Binding != nil {
		err = forerun.Errorf(forerun.Invalid, pkg.String(), "Operation not permitted on package binding.")
	}
	return []state.Expect{unchanged(entityRecord(pkg), f.version)}, err
}

// Denied says why a caller may not read an entity of another's namespace. Everybody may know what the system's namespace has: what is not
// there is forerun.NotFound.
func (r *Registry) Denied(ctx context.Context, name forerun.Name) error {
	if name.Namespace == System {
		records, err := r.get(ctx, entityRecord(name), actionRecord(name))
		if err != nil {
			return err
		}
		if records[0].Version == 0 && records[1].Version == 0 {
			return notFound(name)
		}
	}
	return Forbidden(name)
}

// Forbidden says, in OpenWhisk's words, that a caller may not do something to an entity, or may not know of it.
func Forbidden(name forerun.Name) error {
	resource := name.String()[1:]
	return forerun.Errorf(forerun.Forbidden, resource, "The supplied authentication is not authorized to access '%s'.", resource)
}
