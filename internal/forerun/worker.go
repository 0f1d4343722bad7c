package forerun

import (
	"encoding/json"
	"time"
)

// Run asks a worker to execute one activation.
type Run struct {
	Activation  ActivationID
	Action      *Action
	Input       json.RawMessage // the canonical bytes of a JSON object, delivered as they are
	Namespace   string          // the invoking tenant: owner of the state the activation sees
	Token       string          // API key of this activation alone, void when it ends ("uuid:secret")
	Transaction string          // X-Request-ID of the invocation
	Caller      ActivationID    // of the activation that waits for it; "" if none does, or not yet
	Speculative bool            // hold its effects on the outside until Promote; other activations come first
	Fresh       bool            // its process is to have served no other
	Rehearsed   bool            // it is Speculative, and never promoted: where it could begin only then, Wanted is told
	EndSandbox  bool            // when it is squashed its sandbox is not used again
	Bridged     bool            // its commands on state go to the worker's Bridge, not to the store
	Noted       bool            // it is not Bridged, but the store is to have the Bridge's notes of it with what it writes
	Events      WorkerEvents    // where what happens is told
	// Wrote hears of the lines so far, in the form of Activation.Logs, each time that the function has written more. They
	// stay as they are. It is called with a lock of the worker held: it must not block, nor call the worker. May be nil.
	Wrote func(lines []string)
}

// Worker is a node that runs activations. Its methods return at once and never call back from
// within; what happens is told to Run.Events. They may be called concurrently.
type Worker interface {
	// Run queues an activation. Two things might happen: Started (unless it fails before) and then Ended; or,
	// when Squash comes first, nothing more.
	Run(r *Run)
	// Await tells that another activation waits for one from now on: it is what that was expected to call.
	Await(id, caller ActivationID)
	// Promote makes a speculative activation non-speculative, in place: its effects on the outside go out, and its time limit
	// begins. One that has ended is to be promoted, or squashed, too: its handler waits for that.
	Promote(id ActivationID)
	// Squash kills an activation, running or finished: no event of it is begun after Squash returned.
	Squash(id ActivationID)
}

// Load is how busy a worker's node is, as it matters to a namespace.
type Load struct {
	Busy       float64 // share of its processors that is in use, 0 to 1; 0 also for a moment that is the first such of late
	Processors int     // that it has
	Waiting    bool    // activations that are not speculative wait for a sandbox: the namespace's own, or others' for room
}

// Spent is processor time that was spent since some moment, and what takes much of it.
type Spent struct {
	Own       time.Duration // by the server and its sandboxes
	All       time.Duration // by all programs of the machine
	Whole     time.Duration // by all of its processors, idle time included
	Sandboxes int           // that were begun, or given their code
	Starting  int           // sandboxes for which that goes on
}

// WorkerEvents hears what happens to one activation, each event at most once, one at a time. A worker holds none of its
// locks while it tells an event, since the hearer may call it back.
type WorkerEvents interface {
	// Started: a handler has begun. initTime is the time it took to load the code, 0 when warm.
	Started(id ActivationID, at time.Time, initTime time.Duration)
	// Ended: the activation is over and its doors are shut to it. What it left running is killed before anything else runs
	// in its sandbox.
	Ended(id ActivationID, end RunEnd)
	// Wanted: a speculative activation is to be squashed unless it is promoted now, and why: others that are not speculative wait for
	// its sandbox (MadeWay), it has been ahead for too long (Overdue), or it has sent more than can wait (Failed).
	Wanted(id ActivationID, kind SquashKind, why *Reason)
}

// RunEnd is how an activation ended in its handler.
type RunEnd struct {
	Status Status
	Result json.RawMessage // canonical JSON object; {"error": ...} unless Success
	Logs   []string        // lines in the form of Activation.Logs
	At     time.Time
	// CPU is what activations of the function take of the processors, on average; 0: that is not known.
	CPU time.Duration
	// Held is for how long the first call that reached for the outside waited until the activation was promoted.
	Held time.Duration
	// Unheard: it is ahead, and has ended without waiting for what it sent to the outside, which waits, or had, and was not sent. In its
	// turn some of it would have been.
	Unheard bool
	// TimedOut: the action's time limit ended it.
	TimedOut bool
	// Reach is how far it reached, of a Bridged run: what its process asked for since its code was loaded, which other processes of its
	// sandbox may have asked for meanwhile. Requests that were refused, or that wait, count.
	Reach Reach
	// Remembers: its process served another activation before. It may remember records that this activation shows no
	// read of.
	Remembers bool
}
