package controller

import (
	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
)

// accounting counts what a conductor runs, and those among its components with it. They may run forerun.MaxComponents
// actions; they themselves may be asked twice as often, and once more.
type accounting struct{ components, conductors int }

// refusal is the error of a step of a composition that does not become an activation, in OpenWhisk's words: the
// composition goes on with it as the step's result.
type refusal string

func (r refusal) Error() string { return string(r) }

const errTooLong refusal = "Too many actions in the composition."

// conducted tells whether the slot is a step of a conductor.
func (s *slot) conducted() bool { return s.parent != nil && s.parent.accounting != nil }

// mayStep refuses a step of a conductor that would be one too many.
func (s *slot) mayStep(at placement) error {
	if !s.conducted() {
		return nil
	}
	count := s.parent.accounting
	if at.Self && count.conductors > 2*forerun.MaxComponents || !at.Self && count.components >= forerun.MaxComponents {
		return errTooLong
	}
	return nil
}

// account counts a step of a conductor. One that is a conductor itself has its own steps counted instead.
func (s *slot) account(program forerun.Program, at placement) {
	_, conductor := program.(flow.Conductor)
	switch {
	case conductor && s.conducted():
		s.accounting = s.parent.accounting
	case conductor:
		s.accounting = new(accounting)
	case !s.conducted():
	case at.Self:
		s.counted = &s.parent.accounting.conductors
		*s.counted++
	case program == nil || s.action.Exec.Kind == "sequence":
		s.counted = &s.parent.accounting.components
		*s.counted++
	}
}
