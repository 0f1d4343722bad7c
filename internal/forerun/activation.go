package forerun

import (
	"bytes"
	"encoding/json"
	"time"
)

// Status is OpenWhisk's status code of an activation's response.
type Status int

// The statuses, with OpenWhisk's numbers and words.
const (
	Success          Status = 0
	ApplicationError Status = 1 // the function returned {"error": ...}
	DeveloperError   Status = 2 // it could not be loaded, crashed, exceeded a limit, or returned no object
	InternalError    Status = 3 // ours
)

func (s Status) String() string {
	return [...]string{"success", "application error", "action developer error", "whisk internal error"}[s]
}

// Activation is the record of one execution.
type Activation struct {
	ID          ActivationID
	Namespace   string // of the tenant that invoked
	Action      Name
	Version     string
	Subject     string
	Cause       ActivationID `json:",omitempty"` // the activation that caused this one, if any
	Start, End  time.Time
	Duration    time.Duration // of a sequence: the sum over its components
	Status      Status
	Result      json.RawMessage // what the function returned, or {"error": ...}
	Logs        []string        // "2006-01-02T15:04:05.000000000Z stdout: text"; of a sequence: activation ids
	Annotations []KeyValue      // path, kind, limits, waitTime, initTime, topmost ...
	Timeline    Timeline
	Calls       []ActivationID `json:",omitempty"` // what its function called and waited for
	Noted       bool           `json:"-"`          // what is known of it is kept until its record is in the log
	Cached      *Cached        `json:",omitempty"` // of an annotated function, or workflow, which way it went
	Tally       *Tally         `json:",omitempty"` // how far the invocation ran ahead, if this is its root and it did, or was left behind by its caller
}

// Timeline holds the moments of one slot that a waterfall draws; the zero time means "did not happen".
type Timeline struct {
	Slot        int           `json:",omitempty"` // its number in its invocation, by which the reasons of others name it; the first is 0
	Inline      int           `json:",omitempty"` // which of its composition's own functions it is, from 1; 0: an action
	Queued      time.Time     `json:",omitzero"`  // the controller asked for it
	Launched    time.Time     `json:",omitzero"`  // a handler began to run it
	Speculative bool          `json:",omitempty"` // it was asked for ahead of its turn, and ran ahead if it was Launched before it was Promoted
	Finished    time.Time     `json:",omitzero"`  // its output arrived
	Promoted    time.Time     `json:",omitzero"`
	Committed   time.Time     `json:",omitzero"`
	Squashed    time.Time     `json:",omitzero"`
	Skipped     bool          `json:",omitempty"` // it was not launched, since its output was known
	Predicted   *Reason       `json:",omitempty"` // why it was asked for ahead, or skipped
	InTurn      *Reason       `json:",omitempty"` // why it was not; of a workflow's root, why nothing of it was
	Held        time.Duration `json:",omitempty"` // for how long what it asked for waited until it was promoted
	Stalled     *Reason       `json:",omitempty"` // why something it asked for was not answered ahead, the last time
	Waited      time.Duration `json:",omitempty"` // for how long it waited for what it called, and was not held
	Kind        SquashKind    `json:",omitempty"` // why it was squashed, in one word
	Cause       *Reason       `json:",omitempty"` // and exactly
}

// Result is how an execution ended: its status and the canonical JSON object that it produced, {"error": ...} unless Success.
type Result struct {
	Status Status
	Value  json.RawMessage
}

// Failure makes the Result of an execution that ended without an output of its own.
func Failure(status Status, message string) Result {
	var value bytes.Buffer
	e := json.NewEncoder(&value)
	e.SetEscapeHTML(false)                            // the canonical form has no needless escapes
	_ = e.Encode(map[string]string{"error": message}) // strings always marshal, and a buffer takes every write
	return Result{Status: status, Value: bytes.TrimSuffix(value.Bytes(), []byte("\n"))}
}
