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

// Action returns the action with its code; it must not be changed. The error is forerun.NotFound if there is none.
func (r *Registry) Action(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	if a, ok := r.actions.get(name); ok {
		return a, nil
	}
	epoch := r.actions.begin()
	a, _, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, notFound(name)
	}
	return r.actions.put(name, a, epoch), nil
}

// PutAction creates or updates an action. change makes the new one from the old, which is nil if there is none and is
// not to be changed; it may be called more than once. Name, Updated and, if change leaves it empty, Version are set here:
// "0.0.1", and then the last number grows. The error is change's, or forerun.Exists: the action is there and may not be
// overwritten, or others changed it again and again meanwhile.
func (r *Registry) PutAction(ctx context.Context, name forerun.Name, overwrite bool, change func(old *forerun.Action) (*forerun.Action, error)) (*forerun.Action, error) {
	var err error
	for range maxTries {
		var a *forerun.Action
		if a, err = r.tryPut(ctx, name, overwrite, change); !isConflict(err) {
			return a, err
		}
	}
	return nil, changedMeanwhile(name, err)
}

func (r *Registry) tryPut(ctx context.Context, name forerun.Name, overwrite bool, change func(old *forerun.Action) (*forerun.Action, error)) (*forerun.Action, error) {
	old, version, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if old != nil && !overwrite {
		return nil, forerun.Errorf(forerun.Exists, "", "resource already exists")
	}
	changed, err := change(old)
	if err != nil {
		return nil, err
	}
	a := *changed
	a.Name, a.Updated = name, time.Unix(0, time.Now().UnixNano()) // as it is stored: without the monotonic clock
	if a.Version == "" {
		a.Version = nextVersion(old)
	}
	ops, err := putCommands(old, &a)
	if err != nil {
		return nil, err
	}
	err = r.charge(ctx, old, &a, name.Namespace, func() error {
		_, err := r.store.Apply(ctx, state.Txn{Expect: []state.Expect{unchanged(actionRecord(name), version)}, Ops: ops})
		return err
	})
	if err != nil {
		return nil, err
	}
	r.actions.forget(name)
	return &a, nil
}

// nextVersion is the version of what follows old: its last number plus one.
func nextVersion(old *forerun.Action) string {
	if old == nil {
		return "0.0.1"
	}
	dot := strings.LastIndexByte(old.Version, '.')
	patch, _ := strconv.Atoi(old.Version[dot+1:]) // PutAction's caller checks the versions that it sets
	return old.Version[:dot+1] + strconv.Itoa(patch+1)
}

// putCommands replace the records of old, if any, by those of a.
func putCommands(old, a *forerun.Action) ([]state.Command, error) {
	data, err := encodeAction(a)
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
	return ops, nil
}

// DeleteAction removes an action and returns what it was. The error is forerun.NotFound if there is none.
func (r *Registry) DeleteAction(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	var err error
	for range maxTries {
		var a *forerun.Action
		if a, err = r.tryDelete(ctx, name); !isConflict(err) {
			return a, err
		}
	}
	return nil, changedMeanwhile(name, err)
}

func (r *Registry) tryDelete(ctx context.Context, name forerun.Name) (*forerun.Action, error) {
	old, version, err := r.read(ctx, name)
	if err != nil {
		return nil, err
	}
	if old == nil {
		return nil, notFound(name)
	}
	err = r.charge(ctx, old, nil, name.Namespace, func() error {
		_, err := r.store.Apply(ctx, state.Txn{
			Expect: []state.Expect{unchanged(actionRecord(name), version)},
			Ops:    []state.Command{del(append(recentRecords(name, old.Updated), actionRecord(name), codeRecord(name))...)},
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	r.actions.forget(name)
	return old, nil
}

// read reads an action past the cache; it is nil if there is none.
func (r *Registry) read(ctx context.Context, name forerun.Name) (*forerun.Action, forerun.Version, error) {
	records, err := r.get(ctx, actionRecord(name), codeRecord(name))
	if err != nil || records[0].Version == 0 {
		return nil, 0, err
	}
	a, err := decodeAction(name, records[0].Data, records[1].Data)
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
