package controller

import (
	"fmt"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// maxComponents is how many actions the conductors of one invocation may run, together: OpenWhisk's action sequence
// limit. They themselves may be asked twice as often, and once more.
const maxComponents = 50

// accounting counts what conductors run, over all that are nested in one invocation.
type accounting struct{ components, conductors int }

// errTooLong has OpenWhisk's words.
var errTooLong = forerun.Errorf(forerun.Invalid, "", "Too many actions in the composition.")

// account counts a slot of a conductor's program. The error says that there are too many.
func (s *slot) account(l speculate.Launch) error {
	if s.parent == nil || !s.parent.conducts {
		return nil
	}
	count := &s.tree.conducted
	if l.Self {
		if count.conductors > 2*maxComponents {
			return errTooLong
		}
		count.conductors++
		return nil
	}
	if count.components >= maxComponents {
		return errTooLong
	}
	count.components++
	return nil
}

// enter makes a program what the slot executes.
func (s *slot) enter(program forerun.Program) {
	s.program = true
	if _, s.conducts = program.(flow.Conductor); s.conducts && s.parent != nil && s.parent.conducts {
		s.tree.conducted.components-- // its own components count
	}
	s.started(s.record.Timeline.Queued, 0)
}

// refused is the result of a slot that could not be launched. A conductor is asked again with what was wrong with its
// component, and there is no record of that.
func (s *slot) refused(err error) forerun.Result {
	if s.parent == nil || !s.parent.conducts {
		return forerun.Failure(forerun.DeveloperError, err.Error())
	}
	s.silent = true
	name := s.record.Action.Path() + "/" + s.record.Action.Entity
	message := err.Error()
	switch forerun.KindOf(err) {
	case forerun.NotFound:
		message = fmt.Sprintf("Failed to resolve action with name '%s' during composition.", name)
	case forerun.Forbidden:
		message = fmt.Sprintf("Failed entitlement check for action with name '%s' during composition.", name)
	}
	return forerun.Failure(forerun.ApplicationError, message)
}
