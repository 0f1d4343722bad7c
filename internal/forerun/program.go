package forerun

import "encoding/json"

// Program is a compiled workflow as the pipeline walks it: the sequence table. It is immutable.
type Program interface {
	// Start walks to the first stop.
	Start(input json.RawMessage) Stop
	// Resume goes on behind a stop with the result of its action. The cursor is one of the program's own.
	Resume(at Cursor, r Result) Stop
}

// Cursor is a program's own, immutable note of a place in a walk, so a walk can go on from it more than once.
type Cursor any

// Stop is where a walk through a program waits, or its end.
type Stop struct {
	End    bool   // the program is over, with Result; else Action is to be run on Input
	Result Result // of the whole program
	Cursor Cursor // where the walk waits
	Action string // as the program's document names it
	Input  json.RawMessage
}
