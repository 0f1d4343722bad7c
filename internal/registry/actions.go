package registry

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// maxTries bounds how often a change is tried again that another one came before.
const maxTries = 10

// Action returns the action with its code and its own parameters only; it must not be changed. The error is forerun.NotFound if
// there is none, or Exists if its name is that of another entity.
func (r *Registry) Action(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	if a, ok := r.actions.get(name); ok {
		return a, nil
	}
	epoch := r.actions.begin(name)
	a, _, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, r.noAction(ctx, name)
	}
	return r.actions.put(name, a, epoch), nil
}

// noAction says that an action is not there, or what else has its name.
func (r *Registry) noAction(ctx context.Context, name forerun.Name) error {
	if name.Package == "" {
		if f, err := r.find(ctx, name); err != nil || f.entity != nil {
			return errors.Join(err, otherCollection(name))
		}
	}
	return notFound(name)
}

// PutAction creates or updates an action. change makes the new one from the old, which is nil if there is none and is
// not to be changed; it may be called more than once. Name, Updated and, if change leaves it empty, Version are set here:
// "0.0.1", and then the last number grows. The error is change's, or forerun.Exists: the action is there and may not be
// overwritten, its name is taken by another entity, or others changed it again and again meanwhile; forerun.NotFound if the
// package is not there, or Invalid if that is a binding.
func (r *Registry) PutAction(ctx context.Context, name forerun.Name, overwrite bool, change func(old *forerun.Action) (*forerun.Action, error)) (*forerun.Action, error) {
	return again(name, func() (*forerun.Action, error) { return r.tryPut(ctx, name, overwrite, change) })
}

func (r *Registry) tryPut(ctx context.Context, name forerun.Name, overwrite bool, change func(old *forerun.Action) (*forerun.Action, error)) (*forerun.Action, error) {
	home, err := r.home(ctx, name)
	if err != nil {
		return nil, err
	}
	old, version, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if old != nil && !overwrite {
		return nil, alreadyExists()
	}
	changed, err := change(old)
	if err != nil {
		return nil, err
	}
	a := *changed
	a.Name, a.Updated = name, time.Unix(0, time.Now().UnixNano()) // as it is stored: without the monotonic clock
	if a.Version == "" {
		a.Version = versionAfter(versionOf(old))
	}
	ops, err := r.putCommands(old, &a)
	if err != nil {
		return nil, err
	}
	err = r.charge(ctx, old, &a, name.Namespace, func() error {
		_, err := r.store.Apply(ctx, state.Txn{Expect: append(home, unchanged(actionRecord(name), version)), Ops: ops})
		return err
	})
	if err != nil {
		return nil, err
	}
	r.actions.forget(name)
	return &a, nil
}

func versionOf(a *forerun.Action) string {
	if a == nil {
		return ""
	}
	return a.Version
}

// versionAfter is the version of what follows one: its last number plus one; after none it is the first.
func versionAfter(old string) string {
	if old == "" {
		return "0.0.1"
	}
	dot := strings.LastIndexByte(old, '.')
	patch, _ := strconv.Atoi(old[dot+1:]) // who sets versions checks them
	return old[:dot+1] + strconv.Itoa(patch+1)
}

// putCommands replace the records of old, if any, by those of a.
func (r *Registry) putCommands(old, a *forerun.Action) ([]state.Command, error) {
	data, err := r.encodeAction(a)
	if err != nil {
		return nil, err
	}
	var ops []state.Command
	if old != nil {
		ops = append(ops, del(append(recentRecords(old.Name, old.Updated), codeRecord(old.Name))...))
	}
	ops = append(ops, set(actionRecord(a.Name), data))
	if a.Exec.Code != "" {
		ops = append(ops, set(codeRecord(a.Name), []byte(a.Exec.Code)))
	}
	for _, name := range recentRecords(a.Name, a.Updated) {
		ops = append(ops, set(name, nil))
	}
	if a.Name.Package != "" {
		ops = append(ops, set(membersRecord(a.Name), nil))
	}
	return ops, nil
}

// DeleteAction removes an action and returns what it was. The error is forerun.NotFound if there is none, Exists if its name is
// that of another entity, or Invalid if its package is a binding.
func (r *Registry) DeleteAction(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	return again(name, func() (*forerun.Action, error) { return r.tryDelete(ctx, name) })
}

func (r *Registry) tryDelete(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	home, err := r.home(ctx, name)
	if err != nil {
		return nil, err
	}
	old, version, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, notFound(name)
	}
	err = r.charge(ctx, old, nil, name.Namespace, func() error {
		_, err := r.store.Apply(ctx, state.Txn{
			Expect: append(home, unchanged(actionRecord(name), version)),
			Ops:    []state.Command{del(recordsOf(name, old.Updated)...)},
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	r.actions.forget(name)
	return old, nil
}

// recordsOf are all records of an action that was updated at a time.
func recordsOf(name forerun.Name, updated time.Time) []string {
	return append(recentRecords(name, updated), actionRecord(name), codeRecord(name))
}

// read reads an action past the cache; it is nil if there is none.
func (r *Registry) read(ctx context.Context, name forerun.Name) (*forerun.Action, forerun.Version, error) {
	records, err := r.get(ctx, actionRecord(name), codeRecord(name))
	if err != nil || records[0].Version == 0 {
		return nil, 0, err
	}
	a, err := r.decodeAction(name, records[0].Data, records[1].Data)
	return a, records[0].Version, err
}

func isConflict(err error) bool {
	var conflict *state.ConflictError
	return errors.As(err, &conflict)
}

func notFound(name forerun.Name) error {
	return forerun.Errorf(forerun.NotFound, name.String(), "The requested resource does not exist.")
}

func changedMeanwhile(name forerun.Name, cause error) error {
	return &forerun.Error{Kind: forerun.Exists, Subject: name.String(), Message: "Concurrent modification to resource detected.", Err: cause}
}
