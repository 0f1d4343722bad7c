// Package behaviour classifies actions by what their executions were seen to do,
// and tells which invocations a kept result could have answered.
//
// It hears of executions whose reads and effects were followed: each of an
// annotated action, the first ones of any other, and then one in WatchEvery. For each action it keeps
// counts and the last inputs as hashes, so its memory is bounded. It cannot see
// that an output depends on a clock, on chance, or on the memory of a process.
package behaviour

import (
	"cmp"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// The bounds of what is kept for a tenant.
const (
	maxActions = 200
	maxInputs  = 64      // of an action
	maxNear    = 16      // of these, the latest, whose members are compared
	maxMembers = 16      // of an input that are looked at one by one; with more, none is
	maxInput   = 4 << 10 // bytes of an input whose members are looked at
	maxNames   = 64      // of members of an action: no further one is looked at
	maxName    = 128     // bytes of the name of a member that is looked at
)

// How many executions of an action without an annotation are followed: the first ones, and then one in so many. To follow one costs the server about as
// much as a native call.
const (
	WatchFirst = 8
	WatchEvery = 256
)

// Class is what kind of an action it is.
type Class string

// The classes. An action is of the last one that fits.
const (
	Unknown       Class = "unknown"             // no execution was followed
	Computational Class = "computational"       // its output follows from its input, as far as was seen
	Stateful      Class = "stateful"            // it reads or writes records
	Environmental Class = "environment-related" // it gave two outputs on the same input and versions of records
	OutsideWorld  Class = "outside"             // it reaches for the outside
)

// Execution is a committed execution that was followed.
type Execution struct {
	Input     json.RawMessage // as it was delivered
	Row       *forerun.Row
	Took, CPU time.Duration
}

// Advice is what was seen of an action, and what that means for its annotations.
type Advice struct {
	Home     forerun.Home
	Class    Class
	Count    uint64          // executions that began since the start
	Followed uint64          // of these, executions whose reads and effects were seen
	Repeated uint64          // of the followed ones, those on an input that was seen lately
	Current  uint64          // of the repeated ones, those that read the same versions as before
	Took     time.Duration   // mean of the followed ones
	CPU      time.Duration   // mean processor time; 0: it is not known
	Why      *forerun.Reason // a result could not have stood for the last execution of which that is so; nil: each could
	Unneeded []string        // members of the input that changed alone, and never the output or the reads
}

// Safe reports whether an annotation could be set, as far as was seen.
func (a *Advice) Safe() bool {
	return a.Followed > 0 && a.Why == nil && a.Class != Environmental
}

// Monitor has what is known of a tenant's actions. Its zero value is ready, and may be used concurrently.
type Monitor struct {
	mu      sync.Mutex // guards the rest
	actions map[forerun.Home]*action
}

// seed is of all hashes here. They are compared within one server only.
var seed = maphash.MakeSeed()

// action is what is known of one deployment.
type action struct {
	Advice
	outside, records, differs bool
	inputs                    []seenInput     // the latest last
	members                   map[string]bool // that were seen to change alone: true if output or reads changed, too
}

// seenInput is an input with what the execution gave, as hashes.
type seenInput struct {
	input, output, reads uint64
	without              map[string]uint64 // the input without each of its members
}

// Count counts an execution, and reports whether it is to be followed.
func (m *Monitor) Count(home forerun.Home) (watch bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.action(home)
	a.Count++
	isNew := a.Count <= WatchFirst && len(m.actions) < maxActions // in a full table an action may be new again and again
	return isNew || a.Count%WatchEvery == 0
}

// action is the place of a deployment. The caller holds mu. A new one takes the place of another if there are too many.
func (m *Monitor) action(home forerun.Home) *action {
	a := m.actions[home]
	if a != nil {
		return a
	}
	if m.actions == nil {
		m.actions = make(map[forerun.Home]*action)
	}
	if len(m.actions) >= maxActions {
		for other := range m.actions {
			delete(m.actions, other)
			break
		}
	}
	a = &action{members: make(map[string]bool)}
	a.Home, a.Class = home, Unknown
	m.actions[home] = a
	return a
}

// Note takes an execution into account.
func (m *Monitor) Note(home forerun.Home, x Execution) {
	seen := digest(x)
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.action(home)
	a.Followed++
	n := time.Duration(a.Followed)
	a.Took += (x.Took - a.Took) / n
	a.CPU += (x.CPU - a.CPU) / n
	if !x.Row.IsSeen() {
		a.Why = x.Row.Why
	}
	a.compare(seen)
	a.classify(x.Row)
	a.inputs = append(a.inputs, seen)
	a.inputs = a.inputs[max(0, len(a.inputs)-maxInputs):]
}

// compare looks at earlier executions on the same input, and on inputs that differ in one member.
func (a *action) compare(now seenInput) {
	at := -1
	for i := range a.inputs {
		before := &a.inputs[i]
		if before.input == now.input {
			at = i
			continue
		}
		if len(a.inputs)-i > maxNear {
			continue
		}
		for name, hash := range now.without {
			if hash == before.without[name] {
				a.changedAlone(name, before.output != now.output || before.reads != now.reads)
			}
		}
	}
	if at < 0 {
		return
	}
	a.Repeated++
	if a.inputs[at].reads == now.reads {
		a.Current++
		a.differs = a.differs || a.inputs[at].output != now.output
	}
	a.inputs = slices.Delete(a.inputs, at, at+1)
}

// changedAlone notes whether output or reads changed with a member. Strangers may choose names, so only the first ones are kept.
func (a *action) changedAlone(name string, mattered bool) {
	if before, known := a.members[name]; known || len(a.members) < maxNames {
		a.members[name] = before || mattered
	}
}

func (a *action) classify(row *forerun.Row) {
	if why := row.Why; why != nil {
		a.outside = a.outside || why.Code == forerun.ReasonReached || why.Code == forerun.ReasonAskedAPI || why.Code == forerun.ReasonReadFromHosts
		a.records = a.records || why.Code == forerun.ReasonWrote || why.Code == forerun.ReasonNoVersion
	}
	a.outside = a.outside || row.Hosts
	a.records = a.records || len(row.Reads) > 0
	switch {
	case a.outside:
		a.Class = OutsideWorld
	case a.differs:
		a.Class = Environmental
	case a.records:
		a.Class = Stateful
	default:
		a.Class = Computational
	}
}

// digest reduces an execution to hashes.
func digest(x Execution) seenInput {
	s := seenInput{input: maphash.Bytes(seed, x.Input), output: maphash.Bytes(seed, x.Row.Output)}
	var reads maphash.Hash
	reads.SetSeed(seed)
	for _, read := range x.Row.Reads {
		maphash.WriteComparable(&reads, read)
	}
	s.reads = reads.Sum64()
	var members map[string]json.RawMessage
	if len(x.Input) > maxInput || json.Unmarshal(x.Input, &members) != nil || len(members) > maxMembers {
		return s
	}
	s.without = make(map[string]uint64, len(members))
	names := slices.Sorted(maps.Keys(members))
	for _, left := range names {
		if len(left) > maxName {
			continue
		}
		var h maphash.Hash
		h.SetSeed(seed)
		for _, name := range names {
			maphash.WriteComparable(&h, name)
			if name != left {
				maphash.WriteComparable(&h, string(members[name]))
			}
		}
		s.without[left] = h.Sum64()
	}
	return s
}

// Advice tells what is known of all actions, by name.
func (m *Monitor) Advice() []Advice {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Advice, 0, len(m.actions))
	for _, a := range m.actions {
		told := a.Advice
		for name, mattered := range a.members {
			if !mattered {
				told.Unneeded = append(told.Unneeded, name)
			}
		}
		slices.Sort(told.Unneeded)
		list = append(list, told)
	}
	slices.SortFunc(list, func(a, b Advice) int { return cmp.Compare(a.Home.Action, b.Home.Action) })
	return list
}

// Forget drops what is known of deployments that are gone.
func (m *Monitor) Forget(isGone func(forerun.Home) bool) {
	m.mu.Lock()
	homes := slices.Collect(maps.Keys(m.actions))
	m.mu.Unlock()
	gone := slices.DeleteFunc(homes, func(h forerun.Home) bool { return !isGone(h) })
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, home := range gone {
		delete(m.actions, home)
	}
}
