package registry

import (
	"context"
	"iter"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// Actions walks the actions of a namespace, without their code, the latest update first: limit of them behind the first
// skip. pkg, if not empty, narrows it to one package. Each is read when it is its turn, as together they may have hundreds of
// megabytes; one that was deleted meanwhile is left out.
func (r *Registry) Actions(ctx context.Context, namespace, pkg string, skip, limit int) iter.Seq2[*forerun.Action, error] {
	return func(yield func(*forerun.Action, error) bool) {
		found, err := r.pick(ctx, namespace, pkg, skip, limit)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, l := range found {
			a, err := r.withoutCode(ctx, l.name)
			if a == nil && err == nil {
				continue
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
	}
}

// pick finds, in the index, the actions that Actions walks.
func (r *Registry) pick(ctx context.Context, namespace, pkg string, skip, limit int) ([]listed, error) {
	var found []listed
	for l, err := range r.recent(ctx, namespace, pkg) {
		if err != nil {
			return nil, err
		}
		if len(found) == limit {
			break
		}
		if skip--; skip < 0 {
			found = append(found, l)
		}
	}
	return found, nil
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

// recent walks the index of a namespace's or package's actions, the latest update first.
func (r *Registry) recent(ctx context.Context, namespace, pkg string) iter.Seq2[listed, error] {
	scope := under(recentPrefix(namespace, pkg))
	scope.Reverse = true
	return func(yield func(listed, error) bool) {
		for entry, err := range r.store.Scan(ctx, scope) {
			l, ok := actionOfRecent(entry.Name)
			if err == nil && !ok {
				err = forerun.Errorf(forerun.Internal, entry.Name, "The registry's index holds a record that it cannot read.")
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// withoutCode reads the metadata of an action; it is nil if there is none.
func (r *Registry) withoutCode(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	records, err := r.get(ctx, actionRecord(name))
	if err != nil || records[0].Version == 0 {
		return nil, err
	}
	return r.decodeAction(name, records[0].Data, nil)
}

// Entities walks a namespace's entities of a collection, the latest update first: limit of them behind the first skip. With
// published only packages that are published are listed, and no bindings. What is said of Actions holds here too.
func (r *Registry) Entities(ctx context.Context, c Collection, namespace string, published bool, skip, limit int) iter.Seq2[*Entity, error] {
	return func(yield func(*Entity, error) bool) {
		names, err := r.namesOf(ctx, c, namespace, published, skip, limit)
		if err != nil {
			yield(nil, err)
			return
		}
		for _, name := range names {
			e, err := r.Entity(ctx, c, name)
			if !isListed(e, err, published) {
				continue
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// namesOf finds the entities that Entities walks.
func (r *Registry) namesOf(ctx context.Context, c Collection, namespace string, published bool, skip, limit int) ([]forerun.Name, error) {
	var names []forerun.Name
	for e, err := range r.latest(ctx, c, namespace, published) {
		if err != nil {
			return nil, err
		}
		if len(names) == limit {
			break
		}
		if skip--; skip < 0 {
			names = append(names, e.Name)
		}
	}
	return names, nil
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
			if isListed(e, err, published) && !yield(e, err) {
				return
			}
		}
	}
}

// isListed tells whether an entity that was read belongs in a list, or the error that it could not be read.
func isListed(e *Entity, err error, published bool) bool {
	if err != nil {
		return forerun.KindOf(err) == forerun.Internal
	}
	return !published || e.Publish && e.Binding == nil
}
