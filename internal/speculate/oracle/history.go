// Package oracle decides whether what the world saw of invocations could have
// come from an execution without speculation: whether there is an order of their
// steps, one at a time and each at once, in which other clients read what they
// read, the outside saw what it saw, clients got the answers that they got,
// each between its question and the next event that followed the answer, and the
// store ends as it did. It is a search; one that runs out of its budget is an
// error. It knows nothing of how speculation is done.
package oracle

import (
	"encoding/json"
	"fmt"

	"forerun.dev/forerun/internal/forerun"
)

// Kind is the kind of an event.
type Kind byte

// The kinds of events.
const (
	Begin   Kind = iota // an invocation of Action on Input
	End                 // its Result
	Other               // another client does Command and gets Reply
	Outside             // Text reaches the outside
	Crash               // of a handler of Action, which gives Result
	Given               // the client is told that its invocation was given up
	Gone                // nothing of a given up invocation does anything any more
	Tick                // of the clock
	Update              // of Action
)

// Event is something that the world saw, or did.
type Event struct {
	Kind       Kind
	Invocation int
	Action     string
	Input      json.RawMessage // of a crash, like Next, where to search first: it is not believed
	Next       int             // instruction of a handler that crashes
	Result     forerun.Result
	Command    Command
	Reply      string
}

func (e Event) String() string {
	switch e.Kind {
	case Begin:
		return fmt.Sprintf("invocation %d: %s on %s", e.Invocation, e.Action, e.Input)
	case End:
		return fmt.Sprintf("invocation %d answers %v %s", e.Invocation, e.Result.Status, e.Result.Value)
	case Other:
		return fmt.Sprintf("another client: %v -> %s", e.Command, e.Reply)
	case Outside:
		return fmt.Sprintf("outside, of invocation %d: %s", e.Invocation, e.Reply)
	case Crash:
		return fmt.Sprintf("a handler of invocation %d crashes: %s", e.Invocation, e.Action)
	case Given:
		return fmt.Sprintf("invocation %d is given up", e.Invocation)
	case Gone:
		return fmt.Sprintf("nothing is left of invocation %d", e.Invocation)
	case Update:
		return "new code for " + e.Action
	}
	return "the clock ticks"
}

// Text is what an effect of an action says outside.
func Text(action string, c Command) string { return fmt.Sprintf("%s says %d", action, c.Argument) }

// Segment is a part of a history before which, and behind which, nothing runs.
type Segment struct {
	Actions map[string]*Action
	Version map[string]int // of the actions at its beginning: an index of Versions
	Fixed   bool           // the versions are these whatever happens, and what is not among them must not run
	Clock   int            // at its beginning
	Before  Store
	Events  []Event
	Hints   []Hint // of an order in which to search: what they say is not believed
	After   *Store // nil: anything
	Budget  int    // of states
}

// Hint says that an invocation did a command, or that an execution of an action began or ended in it, before the event At, and behind the
// one before that.
type Hint struct {
	At         int
	Invocation int
	Action     string // that began, or:
	Ended      bool   // ended; without action:
	Command    Command
	Acc        int // the accumulator of who did it, or ended; -1: not known
}
