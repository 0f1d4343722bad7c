package controller

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"forerun.dev/forerun/internal/forerun"
)

// newRecord begins the record of an activation that is queued now.
func newRecord(namespace, subject string, id, cause forerun.ActivationID) *forerun.Activation {
	return &forerun.Activation{
		ID: id, Namespace: namespace, Subject: subject, Cause: cause,
		Timeline: forerun.Timeline{Queued: time.Now()},
	}
}

// started notes that a handler began, or that a program was entered.
func (s *slot) started(at time.Time, initTime time.Duration) {
	line := &s.record.Timeline
	line.Launched = at
	if !s.ahead {
		line.Promoted = at
	}
	s.initTime = min(initTime, at.Sub(line.Queued)) // other activations waited for the time before this one's request
	s.record.Start = at.Add(-s.initTime)            // OpenWhisk counts the initialisation to the activation
	s.wait = s.record.Start.Sub(line.Queued)
}

// ended notes what the worker told at the end of a function.
func (s *slot) ended(end forerun.RunEnd) {
	s.record.Logs, s.cpu, s.timedOut = end.Logs, end.CPU, end.TimedOut
	s.record.End = end.At
	line := &s.record.Timeline
	line.Finished = end.At
	if end.Held > 0 {
		s.heldFor(span{line.Promoted.Add(-end.Held), line.Promoted})
		if line.Stalled == nil {
			line.Stalled = forerun.Because(forerun.ReasonOutside)
		}
	}
}

// finish completes the record of a slot that is over.
func (s *slot) finish(r forerun.Result) {
	record, now := s.record, time.Now()
	record.Noted = s.noted
	record.Status, record.Result = r.Status, r.Value
	if record.Start.IsZero() { // it never began
		record.Start = record.Timeline.Queued
		if turn := record.Timeline.Promoted; record.End.IsZero() && turn.After(record.Start) { // it was looked for speculatively, and not found
			record.Start = turn
		}
	}
	if record.End.IsZero() {
		record.End, record.Timeline.Finished = now, now
	}
	if !s.program { // what it, or what it called, waited for its turn it would not have waited, begun then
		record.Duration = max(0, record.End.Sub(record.Start)-s.idle.sum)
	}
	if s.parent != nil {
		s.parent.record.Duration += record.Duration
		s.parent.memory = max(s.parent.memory, s.memoryLimit())
	}
	if record.Timeline.Squashed.IsZero() {
		record.Timeline.Committed = now
	}
	record.Annotations = s.annotations()
}

// date gives the times of records as they are told: in order and without jumps, whatever was done to the machine's clock.
func (c *Controller) date(records []*forerun.Activation) {
	for _, record := range records {
		var room [8]*time.Time
		moments := append(append(room[:0], momentsOf(&record.Timeline)...), &record.Start, &record.End)
		if record.Tally != nil {
			for i := range record.Tally.Slots {
				moments = append(moments, momentsOf(&record.Tally.Slots[i].Timeline)...)
			}
		}
		c.Clock.Date(moments...)
	}
}

func momentsOf(line *forerun.Timeline) []*time.Time {
	return []*time.Time{&line.Queued, &line.Launched, &line.Finished, &line.Promoted, &line.Committed, &line.Squashed}
}

// annotations are those that OpenWhisk puts into a record.
func (s *slot) annotations() []forerun.KeyValue {
	name := s.record.Action
	list := make([]forerun.KeyValue, 0, maxAnnotations)
	list = append(list, forerun.KeyValue{Key: "path", Value: quoted(name.Path() + "/" + name.Entity)})
	add := func(key string, value json.RawMessage) {
		list = append(list, forerun.KeyValue{Key: key, Value: value})
	}
	if s.action == nil { // not found
		return list
	}
	if s.action.Binding != "" {
		add("binding", quoted(s.action.Binding))
	}
	add("waitTime", milliseconds(s.wait))
	if s.program {
		add("topmost", json.RawMessage(strconv.FormatBool(s.parent == nil)))
		add("kind", quoted("sequence"))
		if s.action.Exec.Kind != "sequence" {
			add("conductor", json.RawMessage("true"))
		}
	} else {
		add("kind", quoted(s.action.Exec.Kind))
		add("timeout", json.RawMessage(strconv.FormatBool(s.timedOut)))
		if s.initTime > 0 {
			add("initTime", milliseconds(s.initTime))
		}
	}
	if c := s.record.Cached; c != nil && c.Outcome == forerun.CacheHit {
		add("cached", quoted(string(c.Of)))
	}
	if s.parent != nil {
		add("causedBy", quoted("sequence"))
	}
	add("limits", s.limits())
	return list
}

// maxAnnotations is how many annotations a record has at most.
const maxAnnotations = 7

// limits is the annotation of the action's limits.
func (s *slot) limits() json.RawMessage {
	l := s.action.Limits
	value := make([]byte, 0, 80)
	value = strconv.AppendInt(append(value, `{"concurrency":`...), int64(l.Concurrency), 10)
	value = strconv.AppendInt(append(value, `,"logs":`...), int64(l.Logs), 10)
	value = strconv.AppendInt(append(value, `,"memory":`...), int64(s.memoryLimit()), 10)
	value = strconv.AppendInt(append(value, `,"timeout":`...), int64(l.Timeout), 10)
	return append(value, '}')
}

// memoryLimit is the action's, of a program the largest of what it ran and its own, in MB.
func (s *slot) memoryLimit() int {
	if s.action == nil {
		return 0
	}
	return max(s.action.Limits.Memory, s.memory)
}

// Interrupted ends the record of an accepted activation whose server died before its end.
func Interrupted(a *forerun.Activation) {
	r := forerun.Failure(forerun.InternalError, "The server was stopped before the activation ended or its record was written. What it wrote to state may be there.")
	a.Status, a.Result, a.End = r.Status, r.Value, a.Start
	if a.Annotations == nil {
		a.Annotations = (&slot{record: a}).annotations()
	}
}

func quoted(s string) json.RawMessage {
	b, _ := jsontext.AppendQuote(make([]byte, 0, len(s)+2), s) // the error only says that bytes were not UTF-8 and were replaced
	return b
}

func milliseconds(d time.Duration) json.RawMessage {
	return json.RawMessage(strconv.FormatInt(max(0, d.Milliseconds()), 10))
}
