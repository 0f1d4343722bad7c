package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/schedule"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/resp"
)

// The words of the state door about phases.
const (
	phaseCommand = "FORERUN.PHASE"
	phaseEnd     = "END"
	defaultPhase = "default" // of code that says nothing, and between two phases
	initPhase    = "init"    // in which code is loaded
	maxWord      = 100       // bytes of an argument that are looked at
)

// phase executes FORERUN.PHASE name [cpu] and FORERUN.PHASE END of an activation. It answers when the phase may begin;
// to END at once.
func (s *scheduler) phase(ctx context.Context, t *tenure, args [][]byte) (state.Reply, error) {
	name, class, err := parsePhase(args)
	if err != nil {
		return state.Reply{}, resp.Refusal("ERR " + err.Error())
	}
	s.mu.Lock()
	a := s.turns[t.activation]
	if a == nil || a.tenure != t {
		s.mu.Unlock()
		return state.Reply{}, resp.Refusal("ERR the activation is over")
	}
	begun := s.ask(a, name, class, name == defaultPhase)
	s.mu.Unlock()
	select {
	case <-begun:
		return state.Reply{Kind: state.Simple, Text: []byte("OK")}, nil
	case <-ctx.Done():
	case <-t.ctx.Done():
	}
	return state.Reply{}, errClosed
}

// isPhase reports whether a command is about phases.
func isPhase(args [][]byte) bool {
	return len(args) > 0 && len(args[0]) == len(phaseCommand) && strings.EqualFold(string(args[0]), phaseCommand)
}

// notSaid is the class of a phase of which the code says none.
const notSaid schedule.Class = 0

// parsePhase reads the arguments of FORERUN.PHASE.
func parsePhase(args [][]byte) (name string, class schedule.Class, err error) {
	if len(args) != 2 && len(args) != 3 {
		return "", 0, errors.New("wrong number of arguments for '" + phaseCommand + "': give a name and perhaps a number of processors, or END")
	}
	name = string(args[1][:min(len(args[1]), maxWord)])
	if len(args) == 2 && strings.EqualFold(name, phaseEnd) {
		return defaultPhase, notSaid, nil
	}
	if err := schedule.CheckPhase(name); err != nil {
		return "", 0, err
	}
	if len(args) == 2 {
		return name, notSaid, nil
	}
	cpu, err := strconv.ParseFloat(string(args[2][:min(len(args[2]), maxWord)]), 64)
	if err != nil {
		return "", 0, fmt.Errorf("%.40q is not a number of processors", args[2])
	}
	class, err = schedule.ClassOf(cpu)
	return name, class, err
}

// microtasks are the classes that an action's annotation gives to its phases. An annotation that the gateway refuses was set on an older server, and gives none.
func microtasks(a *forerun.Action) map[string]schedule.Class {
	text := forerun.Lookup(a.Annotations, schedule.Annotation)
	if text == nil {
		return nil
	}
	classes, _ := schedule.ParseClasses(text)
	return classes
}

// classOf is the class of a phase: the annotation's, or else what the code says. Without either it is a processor, unless something is learnt.
func (a *admission) classOf(phase string, said schedule.Class) (class schedule.Class, learn bool) {
	if class, ok := a.classes[phase]; ok {
		return class, false
	}
	if said == notSaid {
		return schedule.Core, true
	}
	return said, false
}
