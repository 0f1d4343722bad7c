package forerun

import "encoding/json"

// Program is a compiled workflow as the pipeline walks it: the sequence table. It is immutable.
type Program interface {
	// Start walks to the first stop.
	Start(input json.RawMessage) Stop
	// Resume goes on behind a stop at an action or a function with its result.
	Resume(at Cursor, r Result) Stop
	// Join goes on behind a fork with the results of its branches, in their order.
	Join(at Cursor, branches []Result) Stop
}

// Cursor is a program's own, immutable note of a place in a walk, so a walk can go on from it more than once.
type Cursor any

// Stop is where a walk through a program waits, or its end. One of End, Fork, Self, Function, Detach and Action says
// what is to be done.
type Stop struct {
	Cursor Cursor // where the walk waits
	Place  int    // which step of the program that is: the same each time that a walk waits there

	End    bool // the program, or the branch, is over with Result
	Result Result

	Fork []Stop // the first stops of branches that run in parallel; none is a fork only if Join is set
	Join bool   // it is a fork: go on with Join when each branch has ended

	Self     bool      // run the action that the program belongs to, as a function, on Input
	Function *Function // run this code, which the program brings along, on Input
	Detach   Program   // begin this as an invocation of its own, of the same action, on Input; go on with {activationId, sessionId}: that one's, and this one's
	Action   string    // run this action, as the program's document names it, on Input
	Input    json.RawMessage

	// Branch tells that the walk behind this stop depends on whether the result's member "value" is true, and on nothing else of a
	// result that is no error. Within is the member of the result whose "value" that is, if it is not the result's own; without it, or with
	// an error in it, the result is an error.
	Branch bool
	Within string
}

// Size is how many bytes of input a stop has for what is to be done.
func (s *Stop) Size() int {
	size := len(s.Input)
	for i := range s.Fork {
		size += s.Fork[i].Size()
	}
	return size
}

// Function is code that is part of a program.
type Function struct {
	Kind string `json:"kind"` // of an action, "nodejs:default"
	Code string `json:"code"` // an expression that evaluates to a function

	Number int `json:"-"` // which of the program's functions it is, from 1; they have no names
}
