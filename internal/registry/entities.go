package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Collection says what an entity is. Its names are those of the index records.
type Collection string

// The collections of entities that are not actions.
const (
	Packages Collection = "package"
	Triggers Collection = "trigger"
	Rules    Collection = "rule"
)

// Entity is a package, a trigger or a rule. All that are in one namespace, and the actions outside packages, share their
// names.
type Entity struct {
	Name        forerun.Name // without a package
	Collection  Collection
	Version     string // "0.0.1", the last number grows with each update
	Publish     bool
	Annotations []forerun.KeyValue
	Parameters  []forerun.KeyValue // of a package or trigger
	Updated     time.Time

	Binding *forerun.Name              // of a package: the package that it stands for; nil if it is one itself
	Rules   map[forerun.Name]*RuleLink // of a trigger: its rules; nil if it never had one
	Trigger forerun.Name               // of a rule
	Action  forerun.Name               // of a rule
}

// RuleLink is what a trigger knows of a rule.
type RuleLink struct {
	Action forerun.Name
	Active bool
}

// storedEntity is an entity as it is stored. Names are fully qualified.
type storedEntity struct {
	Collection  Collection           `json:"collection"`
	Version     string               `json:"version"`
	Publish     bool                 `json:"publish,omitempty"`
	Annotations []forerun.KeyValue   `json:"annotations,omitempty"`
	Parameters  []storedParameter    `json:"parameters,omitempty"`
	Binding     *forerun.Name        `json:"binding,omitempty"`
	Rules       map[string]*RuleLink `json:"rules,omitzero"` // by the rule's name: it is in the trigger's namespace
	Trigger     forerun.Name         `json:"trigger,omitzero"`
	Action      forerun.Name         `json:"action,omitzero"`
	Updated     int64                `json:"updated"` // nanoseconds since 1970
}

func (r *Registry) encodeEntity(e *Entity) ([]byte, error) {
	parameters, err := r.keyring.sealAll(entityRecord(e.Name), e.Parameters)
	if err != nil {
		return nil, err
	}
	s := storedEntity{
		Collection: e.Collection, Version: e.Version, Publish: e.Publish, Annotations: e.Annotations, Parameters: parameters,
		Binding: e.Binding, Trigger: e.Trigger, Action: e.Action, Updated: e.Updated.UnixNano(),
	}
	if e.Rules != nil {
		s.Rules = make(map[string]*RuleLink, len(e.Rules))
		for name, link := range e.Rules {
			s.Rules[name.Entity] = link
		}
	}
	data, err := canonical.Marshal(s)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, e.Name.String(), "The %s cannot be stored: %w", e.Collection, err)
	}
	return data, nil
}

func (r *Registry) decodeEntity(name forerun.Name, data []byte) (*Entity, error) {
	var s storedEntity
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, forerun.Errorf(forerun.Internal, name.String(), "The entity's record is damaged: %w", err)
	}
	e := &Entity{
		Name: name, Collection: s.Collection, Version: s.Version, Publish: s.Publish, Annotations: s.Annotations,
		Parameters: r.keyring.unsealAll(entityRecord(name), name.Namespace, s.Parameters),
		Binding:    s.Binding, Trigger: s.Trigger, Action: s.Action, Updated: time.Unix(0, s.Updated),
	}
	if s.Rules != nil {
		e.Rules = make(map[forerun.Name]*RuleLink, len(s.Rules))
		for rule, link := range s.Rules {
			e.Rules[forerun.Name{Namespace: name.Namespace, Entity: rule}] = link
		}
	}
	return e, nil
}

// Entity returns an entity; it must not be changed. The error is forerun.NotFound if there is none, or Exists if its name is
// that of an entity of another collection.
func (r *Registry) Entity(ctx context.Context, c Collection, name forerun.Name) (*Entity, error) {
	e, ok := r.entities.get(name)
	if !ok {
		epoch := r.entities.begin(name)
		f, err := r.find(ctx, name)
		if err != nil {
			return nil, err
		}
		if f.isAction {
			return nil, otherCollection(name)
		}
		if f.entity == nil {
			return nil, notFound(name)
		}
		e = r.entities.put(name, f.entity, epoch)
	}
	if e.Collection != c {
		return nil, otherCollection(name)
	}
	return e, nil
}

// found is what a name outside packages stands for.
type found struct {
	entity   *Entity // nil if none
	version  forerun.Version
	isAction bool
}

// find reads what has a name, past the cache.
func (r *Registry) find(ctx context.Context, name forerun.Name) (f found, err error) {
	records, err := r.get(ctx, entityRecord(name), actionRecord(name))
	if err != nil {
		return f, err
	}
	f.isAction = records[1].Version != 0
	if f.version = records[0].Version; f.version != 0 {
		f.entity, err = r.decodeEntity(name, records[0].Data)
	}
	return f, err
}

// expect says that the name must still stand for the same.
func (f found) expect(name forerun.Name) []state.Expect {
	expect := []state.Expect{unchanged(entityRecord(name), f.version)}
	if f.version == 0 {
		expect = append(expect, unchanged(actionRecord(name), 0))
	}
	return expect
}

// PutEntity creates or updates a package or a trigger. change makes the new one from the old, which is nil if there is none
// and is not to be changed; it may be called more than once. What is said of PutAction holds here too.
func (r *Registry) PutEntity(ctx context.Context, c Collection, name forerun.Name, overwrite bool, change func(old *Entity) (*Entity, error)) (*Entity, error) {
	return again(name, func() (*Entity, error) {
		f, err := r.findToPut(ctx, c, name, overwrite)
		if err != nil {
			return nil, err
		}
		changed, err := change(f.entity)
		if err != nil {
			return nil, err
		}
		e := f.next(c, name, changed)
		t := new(transaction)
		t.replace(r, f, e)
		return e, t.apply(ctx, r)
	})
}

// findToPut finds what a PUT of an entity of a collection replaces.
func (r *Registry) findToPut(ctx context.Context, c Collection, name forerun.Name, overwrite bool) (found, error) {
	f, err := r.find(ctx, name)
	switch {
	case err != nil:
		return f, err
	case f.isAction || f.entity != nil && f.entity.Collection != c:
		return f, otherCollection(name)
	case f.entity != nil && !overwrite:
		return f, alreadyExists()
	}
	return f, nil
}

// next completes what was made from what was found.
func (f found) next(c Collection, name forerun.Name, changed *Entity) *Entity {
	e := *changed
	e.Name, e.Collection, e.Updated = name, c, time.Unix(0, time.Now().UnixNano())
	if e.Version == "" {
		old := ""
		if f.entity != nil {
			old = f.entity.Version
		}
		e.Version = versionAfter(old)
	}
	return &e
}

// DeleteTrigger removes a trigger with its timer and returns what it was; its rules stay, inactive. The error is that of Entity.
func (r *Registry) DeleteTrigger(ctx context.Context, name forerun.Name) (*Entity, error) {
	return again(name, func() (*Entity, error) {
		f, err := r.findIn(ctx, Triggers, name)
		if err != nil {
			return nil, err
		}
		t := new(transaction)
		t.remove(f)
		t.Ops = append(t.Ops, del(timerRecord(name)))
		return f.entity, t.apply(ctx, r)
	})
}

// findIn finds an entity of a collection, past the cache.
func (r *Registry) findIn(ctx context.Context, c Collection, name forerun.Name) (found, error) {
	f, err := r.find(ctx, name)
	switch {
	case err != nil:
		return f, err
	case f.isAction || f.entity != nil && f.entity.Collection != c:
		return f, otherCollection(name)
	case f.entity == nil:
		return f, notFound(name)
	}
	return f, nil
}

// transaction gathers changes that are made together.
type transaction struct {
	state.Txn
	changed []forerun.Name // entities
	err     error          // the first that came up
}

// replace puts e in the place of what was found.
func (t *transaction) replace(r *Registry, f found, e *Entity) {
	data, err := r.encodeEntity(e)
	t.err = errors.Join(t.err, err)
	t.Expect = append(t.Expect, f.expect(e.Name)...)
	if f.entity != nil {
		t.Ops = append(t.Ops, del(indexRecord(f.entity)))
	}
	t.Ops = append(t.Ops, set(entityRecord(e.Name), data), set(indexRecord(e), nil))
	t.changed = append(t.changed, e.Name)
}

// remove removes an entity that was found.
func (t *transaction) remove(f found) {
	t.Expect = append(t.Expect, f.expect(f.entity.Name)...)
	t.Ops = append(t.Ops, del(entityRecord(f.entity.Name), indexRecord(f.entity)))
	t.changed = append(t.changed, f.entity.Name)
}

func (t *transaction) apply(ctx context.Context, r *Registry) error {
	if t.err != nil {
		return t.err
	}
	_, err := r.store.Apply(ctx, t.Txn)
	if err == nil {
		for _, name := range t.changed {
			r.entities.forget(name)
		}
	}
	return err
}

func indexRecord(e *Entity) string {
	return fmt.Sprintf("%s/%s/%016x/%s", e.Collection, e.Name.Namespace, e.Updated.UnixNano(), e.Name.Entity)
}

// again tries a change until no other comes before it.
func again[T any](name forerun.Name, try func() (T, error)) (T, error) {
	var err error
	for range maxTries {
		var done T
		if done, err = try(); !isConflict(err) {
			return done, err
		}
	}
	var none T
	return none, changedMeanwhile(name, err)
}

func alreadyExists() error {
	return forerun.Errorf(forerun.Exists, "", "resource already exists")
}

func otherCollection(name forerun.Name) error {
	return forerun.Errorf(forerun.Exists, name.String(), "Resource by this name exists but is not in this collection.")
}
