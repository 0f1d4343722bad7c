package controller

import (
	"context"
	"encoding/binary"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// placement is what a slot executes, and where: of a Resolve or a Launch.
type placement struct {
	Action   string
	Self     bool
	Function *forerun.Function
	Input    json.RawMessage
}

func place(l speculate.Launch) placement { return placement{l.Action, l.Self, l.Function, l.Input} }

// resolve finds the action of a slot, and the program that it is; nil if it is a function.
func (e *execution) resolve(s *slot, at placement) (program forerun.Program, err error) {
	if err := s.mayStep(at); err != nil {
		return nil, err
	}
	if s.action, err = e.action(s, at); err != nil {
		return nil, err
	}
	s.record.Action, s.record.Version = s.action.Name, s.action.Version
	switch {
	case at.Self:
	case s.parent == nil && s.tree.part != nil:
		program = s.tree.part
	default:
		if program, err = e.c.programs.of(s.action); err != nil {
			return nil, err
		}
	}
	s.readCache(at)
	s.account(program, at)
	return program, nil
}

// action finds the action of a slot: the one that was asked for; within a program, the one that is deployed now, or
// code of the program's own, which goes by its name and has its limits.
func (e *execution) action(s *slot, at placement) (*forerun.Action, error) {
	switch {
	case s.parent == nil:
		if s.tree.action == nil { // it is not called yet
			if _, err := e.expected(s.tree, at.Action); err != nil {
				return nil, err
			}
		}
		s.changes = s.tree.changes
		return s.tree.action, nil
	case at.Self:
		return s.parent.action, nil
	case at.Function != nil:
		s.record.Timeline.Inline = at.Function.Number
		return e.c.programs.inline(s.parent.action, at.Function.Kind), nil
	}
	composition := s.parent.action.Exec.Kind != "sequence"
	name, err := forerun.ParseName(at.Action, e.namespace)
	switch {
	case err != nil && composition:
		return nil, refusal("Failed to parse action name from json value " + string(quoted(at.Action)) + " during composition.")
	case err != nil:
		return nil, err
	}
	s.record.Action, s.changes = name, e.c.Actions.Changes()
	action, err := e.c.Actions.Resolve(context.Background(), name, e.namespace)
	switch kind := forerun.KindOf(err); {
	case err == nil:
		return action, nil
	case composition && kind == forerun.NotFound:
		return nil, refusal("Failed to resolve action with name '" + name.String()[1:] + "' during composition.")
	case composition && kind == forerun.Forbidden:
		return nil, refusal("Failed entitlement check for action with name '" + name.String()[1:] + "' during composition.")
	case kind == forerun.NotFound:
		return nil, forerun.Errorf(forerun.NotFound, "", "The action %s, which %s runs, does not exist.", name, s.parent.action.Name)
	}
	return nil, err
}

// parameters are what is laid under the input. A sequence's own only list its components (OpenWhisk's `_actions`).
func (s *slot) parameters() []forerun.KeyValue {
	if s.action.Exec.Kind == "sequence" {
		return nil
	}
	return s.action.Parameters
}

// expected finds an action that a function is expected to call by the name that it had when it was called before.
func (e *execution) expected(t *tree, name string) (action *forerun.Action, err error) {
	parsed, err := forerun.ParseName(name, e.namespace)
	if err != nil {
		return nil, err
	}
	t.changes = e.c.Actions.Changes()
	t.action, err = e.c.Actions.Resolve(context.Background(), parsed, e.namespace)
	return t.action, err
}

// code identifies the code that a slot executes. The functions of a composition belong to one action, but each has its
// own identity and its own lessons.
func (e *execution) code(s *slot) forerun.Digest {
	code := e.c.digests.Deployed(s.action)
	number := binary.NativeEndian.Uint64(code[8:]) ^ uint64(s.record.Timeline.Inline)
	binary.NativeEndian.PutUint64(code[8:], number)
	return code
}
