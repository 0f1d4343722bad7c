package speculate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Lesson is what can be learnt from a committed slot (C3).
type Lesson struct {
	Code    forerun.Digest
	Input   json.RawMessage // as delivered
	Row     *forerun.Row    // for the memo table, or nil
	Outcome *Outcome        // for the predictor, or nil
}

// Branch is a step of a program whose result alone decides the next step by being true or false. Branches with a new
// input are counted separately. Where the memo table knows the input it decides, so the predictor is asked about new
// inputs only, and these often behave differently.
type Branch struct {
	Program forerun.Digest
	Place   int
	Input   Novelty
}

// Novelty is whether the memo table has a row of an input.
type Novelty byte

// The kinds of inputs. Without predicted outputs the kind is not determined.
const (
	Unasked Novelty = iota
	Unseen
	Seen
)

// Outcome is which way a branch went.
type Outcome struct {
	Branch Branch
	Path   uint64          // that led to the branch
	Next   int             // the place where the walk went on; -1: it ended
	Value  json.RawMessage // a result that leads there
	Likely float64         // from which share on a way was predicted
	Misled bool            // the prediction did not hold, whichever way the branch went
}

// maxReads is how many records an execution may have read to be skipped by its row later.
const maxReads = 1000

func (s *slot) branch() Branch { return Branch{s.thread.program.code, s.stop.Place, s.novelty} }

// learn hands on a committed slot's lessons. Errors are never kept.
func (m *Machine) learn(s *slot) {
	if s.result.Status != forerun.Success {
		return
	}
	l := Learn{Slot: s.id}
	switch {
	case m.mode != Off:
		l.Lesson = &Lesson{Code: s.code, Input: s.input, Row: s.newRow(), Outcome: m.outcomeOf(s)}
	case s.traits.cached, s.traits.watched:
		l.Lesson = &Lesson{Code: s.code, Input: s.input, Row: s.newRow()}
	}
	m.do(l)
}

func (s *slot) newRow() *forerun.Row {
	if s.kind != function || s.skipped || s.stop.Detach != nil || s.asked > maxAsked {
		return nil
	}
	if len(s.reads.list) > maxReads {
		s.blurred(forerun.NewReason(forerun.ReasonManyReads, forerun.Detail{Count: maxReads}))
	}
	r := &forerun.Row{
		Output: s.result.Value, Callees: s.calls, Below: s.below, Effects: s.effects, Hosts: s.readsHosts(), Exact: !s.inexact, Why: s.barred, Until: s.lasts(),
		Remembers: s.remembers || s.unverified,
	}
	if r.Hosts && r.Why == nil {
		r.Why = forerun.Because(forerun.ReasonReadFromHosts)
	}
	if r.Remembers && r.Why == nil {
		r.Why = forerun.Because(forerun.ReasonUnverified)
	}
	if r.Exact {
		r.Reads = slices.Clone(s.reads.list)
		slices.SortFunc(r.Reads, func(a, b forerun.Seen) int {
			return cmp.Or(cmp.Compare(a.Key.Space, b.Key.Space), cmp.Compare(a.Key.Name, b.Key.Name))
		})
	}
	return r
}

func (m *Machine) outcomeOf(s *slot) *Outcome {
	if !s.stop.Branch || s.thread == nil || !s.walked {
		return nil
	}
	value, ok := s.condition()
	if !ok {
		return nil
	}
	o := &Outcome{Branch: s.branch(), Path: s.path, Next: s.next.Place, Value: value, Likely: m.likely, Misled: s.misled}
	if s.next.End {
		o.Next = -1
	}
	return o
}

// maxCondition bounds the bytes kept of a value that a branch tests. A longer value is a text, an object or a list, and
// these are true.
const maxCondition = 64

// condition is a result that leads where a slot's did; ok is false if that was where errors lead.
func (s *slot) condition() (value json.RawMessage, ok bool) {
	if s.stop.Within == "" {
		return bare(s.result.Value), true
	}
	inner := membersOf(s.result.Value)[s.stop.Within]
	if inner == nil || membersOf(inner)["error"] != nil {
		return nil, false
	}
	return json.RawMessage(fmt.Sprintf(`{%q:%s}`, s.stop.Within, bare(inner))), true
}

// bare reduces a result to the members that a branch tests. A result that is not an object is tested itself.
func bare(value json.RawMessage) json.RawMessage {
	if bytes.HasPrefix(value, []byte("{")) {
		value = membersOf(value)["value"]
	}
	switch {
	case value == nil || bytes.Equal(value, []byte("null")):
		return json.RawMessage(`{}`)
	case len(value) > maxCondition:
		return json.RawMessage(`{"value":true}`)
	}
	return json.RawMessage(`{"value":` + string(value) + `}`)
}

// membersOf returns the members of a JSON object, and none for any other value.
func membersOf(value json.RawMessage) (members map[string]json.RawMessage) {
	if json.Unmarshal(value, &members) != nil {
		return nil
	}
	return members
}

// Bounds of a row's part about callees: how many executions it may rest on, and how many bytes of input a call may have. The latter is
// memo.MaxRow: a larger row would not be kept anyway.
const (
	maxBelow = 1000
	maxAsked = 1 << 20
)

// remember notes the reads of a promoted slot's column, for its row.
func (s *slot) remember() {
	for _, e := range s.column.order {
		if !e.read {
			continue
		}
		v, exact := e.seenVersion()
		if !exact { // it was overwritten before anybody saw it (rule R8)
			s.blurred(&forerun.Reason{Code: forerun.ReasonOverwritten, Record: forerun.ShownName(e.key.Name)})
			continue
		}
		s.note([]forerun.Seen{{Key: e.key, Version: v}})
	}
}

// note notes the versions of reads, of which each is another record's. Two versions of one record make a row that only predicts (rules R5, R8).
func (c *conduct) note(reads []forerun.Seen) {
	if c.reads.list == nil {
		c.reads.list = slices.Clip(reads) // which may be a row's: it is not changed
		return
	}
	for _, seen := range reads {
		known, ok := c.reads.of(seen.Key)
		switch {
		case ok && known != seen.Version:
			c.blurred(&forerun.Reason{Code: forerun.ReasonTwoVersions, Record: forerun.ShownName(seen.Key.Name)})
		case !ok && len(c.reads.list) <= maxReads:
			c.reads.add(seen)
		}
	}
}

// absorb takes over the conduct of slots inside a slot.
func (s *slot) absorb(c *slot) {
	s.note(c.reads.list)
	if c.thread != nil {
		s.restOn(c)
	}
	s.inherit(c)
}

// inherit takes over whether a row of a callee, or of a part, could stand for an execution.
func (s *slot) inherit(c *slot) {
	s.effects, s.inexact, s.hosts = s.effects || c.effects, s.inexact || c.inexact, s.hosts || c.readsHosts()
	s.until = sooner(s.until, c.lasts())
	s.bar(c.barred)
	s.unverified = s.unverified || c.unverified || c.remembers && c.traits.cached
	if c.remembers && !c.traits.cached {
		s.blurred(forerun.NewReason(forerun.ReasonRemembers, forerun.Detail{Text: c.named().Action}))
	}
}

// readsHosts reports whether a slot rests on what hosts answered, without an end.
func (s *slot) readsHosts() bool { return s.hosts && s.traits.until.IsZero() }

// lasts is until when a row of a slot may stand for an execution; zero: as long as what it rests on is current.
func (s *slot) lasts() time.Time { return sooner(s.traits.until, s.until) }

// sooner is the first of two moments. Zero is no moment.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// acted notes an effect.
func (c *conduct) acted(why *forerun.Reason) {
	c.effects = true
	c.bar(why)
}

// blurred notes that the output may depend on more than the input, the reads and the code (rule R8).
func (c *conduct) blurred(why *forerun.Reason) {
	c.inexact = true
	c.bar(why)
}

// loose notes something that goes on by itself, which has effects that are not known.
func (c *conduct) loose(why forerun.ReasonCode) {
	c.effects, c.inexact = true, true
	c.bar(forerun.Because(why))
}

// readHosts notes a read of the outside.
func (c *conduct) readHosts() {
	c.hosts = true
}

func (c *conduct) bar(why *forerun.Reason) {
	if c.barred == nil {
		c.barred = why
	}
}

// restOn notes that a slot's result rests on the code of another slot, and of that one's callees.
func (s *slot) restOn(c *slot) {
	if len(s.below)+len(c.below) >= maxBelow { // too many to check whether each is unchanged
		s.below = nil
		s.blurred(forerun.NewReason(forerun.ReasonManyCallees, forerun.Detail{Count: maxBelow}))
		return
	}
	s.below = append(append(s.below, forerun.Callee{Action: c.stop.Action, Code: c.code}), c.below...)
}
