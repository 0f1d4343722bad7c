package schedule

import (
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Event is something that happened: Asks, Waits, Answered, Promoted, Used, Ended, Processors or Passed.
type Event interface{ isEvent() }

// Asks: an activation wants to begin a phase. If it is in a phase, that phase ends.
type Asks struct {
	Activation forerun.ActivationID
	Tenant     string
	Weight     int    // of the tenant among the others; 0: 1
	Kind       string // the phase of all activations of one action, for what is learnt; empty: nothing is learnt
	Class      Class
	Learn      bool // neither the code nor the annotation says the class
	Ahead      bool // the activation is speculative
	AtOnce     bool // one that runs goes on at once, in the back if there are no slabs for it
}

// Waits: the activation waits at one of our doors, and uses no processor.
type Waits struct{ Activation forerun.ActivationID }

// Answered: the door has answered the activation, which goes on at once, with the weight that it had.
type Answered struct{ Activation forerun.ActivationID }

// Promoted: the activation is not speculative any more.
type Promoted struct{ Activation forerun.ActivationID }

// Used: the phase has used so much processor time since it was let in.
type Used struct {
	Activation forerun.ActivationID
	CPU        time.Duration
	Delayed    time.Duration // in which it wanted a processor and had none, as far as that is measured
}

// Ended: the activation has no process any more that works for it. It may be unknown, or have ended before.
type Ended struct {
	Activation forerun.ActivationID
	Killed     bool // nothing is learnt from it
}

// Processors: the node may use so many from now on.
type Processors struct{ Number int }

// Passed: time has passed.
type Passed struct{}

func (Asks) isEvent()       {}
func (Waits) isEvent()      {}
func (Answered) isEvent()   {}
func (Promoted) isEvent()   {}
func (Used) isEvent()       {}
func (Ended) isEvent()      {}
func (Processors) isEvent() {}
func (Passed) isEvent()     {}

// Decision says what becomes of a phase.
type Decision struct {
	Activation forerun.ActivationID
	Kind       DecisionKind
	Class      Class // of Reclassified
}

// DecisionKind is the kind of a Decision.
type DecisionKind int

// The kinds of decisions.
const (
	LetIn        DecisionKind = iota // the phase begins in front
	LetInBehind                      // the phase begins in the back
	ToFront                          // the phase gets its full weight
	ToBack                           // the phase goes on with less weight
	Reclassified                     // the phase used more than its class, and has another
)

func (k DecisionKind) String() string {
	return [...]string{"let in", "let in behind", "to the front", "to the back", "reclassified"}[k]
}
