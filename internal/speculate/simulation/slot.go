package simulation

import (
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// slot is what the controller knows of a slot.
type slot struct {
	id        speculate.SlotID
	action    string
	self      bool
	input     []byte
	parent    speculate.SlotID
	caller    speculate.SlotID
	op        speculate.OpID // its call
	told      []answer       // by its column
	code      *oracle.Code
	digest    forerun.Digest
	version   int
	below     []forerun.Callee // whose code its output rests on, if it is skipped
	program   bool
	resolved  bool
	checking  bool
	awaits    bool    // an equal execution
	flight    *flight // that it is the first of, or waits for
	launched  bool
	counted   bool // it was launched ahead, and is no head yet
	head      bool
	promoting bool
	joint     bool           // with others, or with what it may have called
	applied   bool           // the store has done so
	expect    []forerun.Seen // by the promotion
	finished  bool
	committed bool
	over      bool
	skipped   bool
	failed    *forerun.Result // while its promotion was under way
	result    *forerun.Result
	handler   *handler
	ended     *handler // the one that it had
	dead      bool     // it has none any more, which is not told yet
}

// answer is what a function was told of a command.
type answer struct {
	command oracle.Command
	reply   string
}

// phase is the state of a slot, as it can be seen.
func (s *slot) phase() Phase {
	switch {
	case s == nil || s.over:
		return Over
	case s.program:
		return Composed
	case !s.resolved:
		return Resolving
	case s.checking:
		return Checking
	case s.awaits:
		return Awaiting
	case s.finished && s.promoting:
		return FinishedPromoting
	case s.finished:
		return Finished
	case !s.launched:
		return Waiting
	case s.head:
		return Head
	case s.promoting:
		return Promoting
	}
	return Ahead
}
