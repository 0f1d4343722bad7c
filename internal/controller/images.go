package controller

import (
	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// executor lets the machine execute commands, which are *command.Step, on images. The replies are command.Outcome.
type executor struct {
	command.Executor
	clock *clock.Clock
}

var _ speculate.Records = (*executor)(nil)

// Execute executes a step that does not hold.
func (e *executor) Execute(step any, reads []speculate.Image) (reply any, writes []speculate.Image) {
	s := step.(*command.Step)
	s.Begin(e.clock.Now()) // it may have waited since it was asked for
	images := make([]state.Image, len(reads))
	for i, image := range reads {
		images[i] = image
	}
	outcome, made := e.Executor.Execute(s, images)
	if outcome.Long != nil {
		return speculate.Later{Why: outcome.Long}, nil
	}
	if made == nil {
		return outcome, nil
	}
	writes = make([]speculate.Image, len(made))
	for i, image := range made {
		if image != nil {
			writes[i] = image
		}
	}
	return outcome, writes
}

// Over is of the time at which a step would be executed now.
func (e *executor) Over(image speculate.Image) bool {
	return image.(*command.Image).Over(e.clock.Now())
}
