package activation

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// The stored form of a record is what encoding/json makes of a forerun.Activation. Each answer waits for its record, so the record is
// written without reflection. A test compares both for a record that has every field.

// buffer has room for what one Put stores.
type buffer struct {
	bytes []byte
	added []state.Added
	gone  [][]byte
}

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// maxBuffer is how many bytes a buffer may have that is used again.
const maxBuffer = 64 << 10

// release gives the buffer back when the store has copied what is in it.
func (b *buffer) release() {
	if cap(b.bytes) > maxBuffer {
		return
	}
	clear(b.added[:cap(b.added)])
	clear(b.gone[:cap(b.gone)])
	b.bytes = b.bytes[:0]
	buffers.Put(b)
}

// record appends the stored form of a record, and returns it.
func (b *buffer) record(a *forerun.Activation) ([]byte, error) {
	from := len(b.bytes)
	whole, err := appendRecord(b.bytes, a)
	if err != nil {
		return nil, err
	}
	b.bytes = whole
	return whole[from:len(whole):len(whole)], nil
}

// text appends a name, and returns it.
func (b *buffer) text(appendName func([]byte, *forerun.Activation) []byte, a *forerun.Activation) []byte {
	from := len(b.bytes)
	b.bytes = appendName(b.bytes, a)
	return b.bytes[from:len(b.bytes):len(b.bytes)]
}

// appendRecord appends the stored form of a record. Its result and the values of its annotations must be JSON.
func appendRecord(b []byte, a *forerun.Activation) ([]byte, error) {
	b = appendIdentity(b, a)
	b = appendTime(b, `,"Start":`, a.Start)
	b = appendTime(b, `,"End":`, a.End)
	b = strconv.AppendInt(append(b, `,"Duration":`...), int64(a.Duration), 10)
	b = strconv.AppendInt(append(b, `,"Status":`...), int64(a.Status), 10)
	b = appendJSON(b, `,"Result":`, a.Result)
	b = appendLogs(b, a.Logs)
	b = appendAnnotations(b, a.Annotations)
	b, err := appendTimeline(b, &a.Timeline)
	b = appendCalls(b, a.Calls)
	if a.Cached != nil && err == nil {
		b, err = appendValue(b, `,"Cached":`, a.Cached)
	}
	if a.Tally != nil && err == nil {
		b, err = appendValue(b, `,"Tally":`, a.Tally)
	}
	if err != nil {
		return nil, forerun.Errorf(forerun.Internal, "activation "+string(a.ID), "The record cannot be stored: %w", err)
	}
	return append(b, '}'), nil
}

// appendIdentity begins a record with the fields that it has from its beginning.
func appendIdentity(b []byte, a *forerun.Activation) []byte {
	b = appendText(b, `{"ID":`, string(a.ID))
	b = appendText(b, `,"Namespace":`, a.Namespace)
	b = appendText(b, `,"Action":{"Namespace":`, a.Action.Namespace)
	b = appendText(b, `,"Package":`, a.Action.Package)
	b = appendText(b, `,"Entity":`, a.Action.Entity)
	b = appendText(b, `},"Version":`, a.Version)
	b = appendText(b, `,"Subject":`, a.Subject)
	if a.Cause != "" {
		b = appendText(b, `,"Cause":`, string(a.Cause))
	}
	return b
}

func appendText(b []byte, name, value string) []byte {
	b, _ = jsontext.AppendQuote(append(b, name...), value) // the error only says that bytes were not UTF-8 and were replaced
	return b
}

func appendTime(b []byte, name string, t time.Time) []byte {
	b = t.AppendFormat(append(append(b, name...), '"'), time.RFC3339Nano)
	return append(b, '"')
}

func appendJSON(b []byte, name string, value json.RawMessage) []byte {
	b = append(b, name...)
	if value == nil {
		return append(b, "null"...)
	}
	return append(b, value...)
}

func appendValue(b []byte, name string, value any) ([]byte, error) {
	data, err := canonical.Marshal(value)
	return append(append(b, name...), data...), err
}

func appendLogs(b []byte, lines []string) []byte {
	if lines == nil {
		return append(b, `,"Logs":null`...)
	}
	b = append(b, `,"Logs":[`...)
	for i, line := range lines {
		b = appendText(b, separator(i), line)
	}
	return append(b, ']')
}

// separator stands before the element i of an array.
func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func appendAnnotations(b []byte, list []forerun.KeyValue) []byte {
	if list == nil {
		return append(b, `,"Annotations":null`...)
	}
	b = append(b, `,"Annotations":[`...)
	for i, annotation := range list {
		b = appendText(append(append(b, separator(i)...), `{"key":`...), "", annotation.Key)
		b = appendJSON(b, `,"value":`, annotation.Value)
		if annotation.Init {
			b = append(b, `,"init":true`...)
		}
		if annotation.Secret {
			b = append(b, `,"secret":true`...)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendCalls(b []byte, calls []forerun.ActivationID) []byte {
	if len(calls) == 0 {
		return b
	}
	b = append(b, `,"Calls":[`...)
	for i, id := range calls {
		b = appendText(b, separator(i), string(id))
	}
	return append(b, ']')
}

// appendTimeline appends the fields that are not zero.
func appendTimeline(b []byte, t *forerun.Timeline) ([]byte, error) {
	b = append(b, `,"Timeline":{`...)
	from := len(b)
	var failure error
	number := func(name string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(b, name...), n, 10)
		}
	}
	moment := func(name string, at time.Time) {
		if !at.IsZero() {
			b = appendTime(b, name, at)
		}
	}
	flag := func(name string, is bool) {
		if is {
			b = append(append(b, name...), "true"...)
		}
	}
	reason := func(name string, why *forerun.Reason) {
		switch {
		case why == nil || failure != nil:
		case *why == forerun.Reason{Code: why.Code}: // as of each record while speculation is off
			b = append(appendText(append(append(b, name...), '{'), `"code":`, string(why.Code)), '}')
		default:
			b, failure = appendValue(b, name, why)
		}
	}
	number(`,"Slot":`, int64(t.Slot))
	number(`,"Inline":`, int64(t.Inline))
	moment(`,"Queued":`, t.Queued)
	moment(`,"Launched":`, t.Launched)
	flag(`,"Speculative":`, t.Speculative)
	moment(`,"Finished":`, t.Finished)
	moment(`,"Promoted":`, t.Promoted)
	moment(`,"Committed":`, t.Committed)
	moment(`,"Squashed":`, t.Squashed)
	flag(`,"Skipped":`, t.Skipped)
	reason(`,"Predicted":`, t.Predicted)
	reason(`,"InTurn":`, t.InTurn)
	number(`,"Held":`, int64(t.Held))
	reason(`,"Stalled":`, t.Stalled)
	number(`,"Waited":`, int64(t.Waited))
	if t.Kind != "" {
		b = appendText(b, `,"Kind":`, string(t.Kind))
	}
	reason(`,"Cause":`, t.Cause)
	if len(b) > from {
		b = append(b[:from], b[from+1:]...) // the comma before the first field
	}
	return append(b, '}'), failure
}
