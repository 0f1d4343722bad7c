package registry

import (
	"context"
	"iter"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// Actions lists the actions of a namespace, without their code, the latest update first: limit of them behind the first
// skip. pkg, if not empty, narrows it to one package.
func (r *Registry) Actions(ctx context.Context, namespace, pkg string, skip, limit int) ([]*forerun.Action, error) {
	var names []forerun.Name
	for name, err := range r.recent(ctx, namespace, pkg) {
		if err != nil {
			return nil, err
		}
		if len(names) == limit {
			break
		}
		if skip--; skip < 0 {
			names = append(names, name)
		}
	}
	return r.withoutCode(ctx, names)
}

// CountActions counts the actions that Actions would list.
func (r *Registry) CountActions(ctx context.Context, namespace, pkg string) (int, error) {
	n := 0
	for _, err := range r.recent(ctx, namespace, pkg) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// recent walks the names of a namespace's or package's actions, the latest update first.
func (r *Registry) recent(ctx context.Context, namespace, pkg string) func(yield func(forerun.Name, error) bool) {
	scope := under(recentPrefix(namespace, pkg))
	scope.Reverse = true
	return func(yield func(forerun.Name, error) bool) {
		for entry, err := range r.store.Scan(ctx, scope) {
			name, ok := actionOfRecent(entry.Name)
			if err == nil && !ok {
				err = forerun.Errorf(forerun.Internal, entry.Name, "The registry's index holds a record that it cannot read.")
			}
			if !yield(name, err) {
				return
			}
		}
	}
}

// withoutCode reads the metadata of actions; one that was deleted meanwhile is left out.
func (r *Registry) withoutCode(ctx context.Context, names []forerun.Name) ([]*forerun.Action, error) {
	if len(names) == 0 {
		return nil, nil
	}
	records := make([]string, len(names))
	for i, name := range names {
		records[i] = actionRecord(name)
	}
	found, err := r.get(ctx, records...)
	if err != nil {
		return nil, err
	}
	actions := make([]*forerun.Action, 0, len(names))
	for i, record := range found {
		if record.Version == 0 {
			continue
		}
		a, err := decodeAction(names[i], record.Data, nil)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	return actions, nil
}

// Entities lists a namespace's entities of a collection, the latest update first: limit of them behind the first skip. With
// published only packages that are published are listed, and no bindings.
func (r *Registry) Entities(ctx context.Context, c Collection, namespace string, published bool, skip, limit int) ([]*Entity, error) {
	var list []*Entity
	for e, err := range r.latest(ctx, c, namespace, published) {
		if err != nil {
			return nil, err
		}
		if skip--; skip >= 0 {
			continue
		}
		if len(list) == limit {
			break
		}
		list = append(list, e)
	}
	return list, nil
}

// CountEntities counts the entities that Entities would list.
func (r *Registry) CountEntities(ctx context.Context, c Collection, namespace string, published bool) (int, error) {
	n := 0
	for _, err := range r.latest(ctx, c, namespace, published) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// latest walks a namespace's entities, the latest update first; one that was deleted meanwhile is left out.
func (r *Registry) latest(ctx context.Context, c Collection, namespace string, published bool) iter.Seq2[*Entity, error] {
	prefix := string(c) + "/" + namespace + "/"
	scope := under(prefix)
	scope.Reverse = true
	return func(yield func(*Entity, error) bool) {
		for entry, err := range r.store.Scan(ctx, scope) {
			if err != nil {
				yield(nil, err)
				return
			}
			_, entity, _ := strings.Cut(strings.TrimPrefix(entry.Name, prefix), "/")
			e, err := r.Entity(ctx, c, forerun.Name{Namespace: namespace, Entity: entity})
			switch {
			case err != nil && forerun.KindOf(err) != forerun.Internal:
				continue
			case err == nil && published && (!e.Publish || e.Binding != nil):
				continue
			}
			if !yield(e, err) {
				return
			}
		}
	}
}
