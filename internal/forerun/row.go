package forerun

import (
	"encoding/json"
	"time"
)

// Row is a row of the memo table: what a committed execution of an action on an input did. It is immutable.
type Row struct {
	Output  json.RawMessage // of a success: errors are not kept
	Callees []Callee        // what it called and waited for, in order
	// Exact says that Output depends on nothing but the input, Reads and Below, so that an execution may be skipped while those are
	// what they were (rule R8). Else the row only predicts.
	Exact   bool
	Effects bool // it, or what it called, wrote a record or reached the outside: it may not be skipped
	// Remembers: its process, or a callee's, had served others before. Its output may depend on records that the process remembers and Reads
	// lacks. The row stands for no execution before a process that had served none has given the same.
	Remembers bool
	Hosts     bool            // it, or what it called, read from hosts of read-hosts, and no cache-ttl says for how long that holds
	Since     time.Time       // when the execution ended, if there is an Until
	Until     time.Time       // it stands for an execution until then; zero: while what it rests on is current
	Why       *Reason         // it may not be skipped; nil: it may
	By        ActivationID    // the execution
	Took      time.Duration   // of the execution, without its calls
	Home      Home            // the action that it is of
	Input     json.RawMessage // that counted, without the action's bound parameters; nil: it is long, or the action's results are not kept
	Reads     []Seen          // the records that it, or what it called, read, each once
	Below     []Callee        // its callees, what they called, and so on: without inputs
}

// Stands reports whether the row may stand for an execution, while what it rests on is current.
func (r *Row) Stands() bool { return r.IsSeen() && !r.Remembers }

// IsSeen reports whether nothing was seen that keeps the row from standing for an execution.
func (r *Row) IsSeen() bool { return r.Exact && !r.Effects && !r.Hosts }

// Verified is the row once a process that had served no other has given the same.
func (r *Row) Verified() *Row {
	v := *r
	v.Remembers = false
	if v.isOpen() {
		v.Why = nil
	}
	return &v
}

// Unverified is the row with a reason why it is not verified, if only that keeps it from standing.
func (r *Row) Unverified(why *Reason) *Row {
	u := *r
	if u.isOpen() {
		u.Why = why
	}
	return &u
}

// isOpen reports whether the row would stand if a process that has served no other gave the same.
func (r *Row) isOpen() bool {
	return r.Why != nil && (r.Why.Code == ReasonUnverified || r.Why.Code == ReasonUnverifiable)
}

// Bar has the row stand for no execution, verified or not. It predicts all the same.
func (r *Row) Bar(why *Reason) {
	r.Exact, r.Reads = false, nil
	if r.Why == nil || r.isOpen() {
		r.Why = why
	}
}

// Homes are the deployments without which the row is of no use: the action's and the callees'. Code that a program brings along
// has none of its own.
func (r *Row) Homes() []Home {
	homes := make([]Home, 0, 1+len(r.Below))
	add := func(h Home) {
		if h.Action != "" {
			homes = append(homes, h)
		}
	}
	add(r.Home)
	for _, c := range r.Below {
		add(Home{c.Action, c.Code})
	}
	return homes
}

// Keys are the records that it read.
func (r *Row) Keys() []Key {
	keys := make([]Key, len(r.Reads))
	for i, read := range r.Reads {
		keys[i] = read.Key
	}
	return keys
}

// Home is a deployment of an action.
type Home struct {
	Action string // the name by which it was found
	Code   Digest // Digests.Deployed
}

// Callee is an action that an execution called and waited for.
type Callee struct {
	Action string
	Input  json.RawMessage // as it was called, without the action's own parameters
	Code   Digest
	Told   bool // the caller may have been told its id before it had ended: it is not executed ahead of the call
}

// Seen is a record as it was read.
type Seen struct {
	Key     Key
	Version Version
}
