package openwhisk

import (
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// tracedActivation is a whole record with a member that OpenWhisk's has not: it is there when it is asked for.
type tracedActivation struct {
	activationDocument
	Trace traceDocument `json:"trace"`
}

// traceDocument is what `forerun activation trace` draws of a record.
type traceDocument struct {
	timelineDocument
	Calls []forerun.ActivationID `json:"calls,omitempty"`
	Tally *tallyDocument         `json:"tally,omitempty"`
}

// timelineDocument has moments in microseconds since 1970, absent if they did not come.
type timelineDocument struct {
	Slot        int                `json:"slot"`
	Inline      int                `json:"inline,omitempty"`
	Queued      int64              `json:"queued"`
	Launched    int64              `json:"launched,omitempty"`
	Finished    int64              `json:"finished,omitempty"`
	Promoted    int64              `json:"promoted,omitempty"`
	Committed   int64              `json:"committed,omitempty"`
	Squashed    int64              `json:"squashed,omitempty"`
	Held        int64              `json:"held,omitempty"` // microseconds
	Stalled     string             `json:"stalled,omitempty"`
	Waited      int64              `json:"waited,omitempty"` // microseconds
	Speculative bool               `json:"speculative"`
	Skipped     bool               `json:"skipped,omitempty"`
	Predicted   string             `json:"predicted,omitempty"`
	InTurn      string             `json:"inTurn,omitempty"`
	Kind        forerun.SquashKind `json:"kind,omitempty"`
	Cause       string             `json:"cause,omitempty"`
}

type tallyDocument struct {
	Early    int            `json:"early"`
	Used     int            `json:"used"`
	Squashed int            `json:"squashed"`
	Skipped  int            `json:"skipped"`
	Depth    int            `json:"depth"`
	InOrder  int64          `json:"inOrder,omitempty"` // microseconds
	Slots    []squashedSlot `json:"slots"`             // that were squashed
}

type squashedSlot struct {
	Action string `json:"action"`
	timelineDocument
}

func traceOf(a *forerun.Activation) traceDocument {
	d := traceDocument{timelineDocument: timelineOf(&a.Timeline), Calls: a.Calls}
	if t := a.Tally; t != nil {
		d.Tally = &tallyDocument{Early: t.Early, Used: t.Used, Squashed: t.Squashed, Skipped: t.Skipped, Depth: t.Depth, InOrder: t.InOrder.Microseconds(), Slots: []squashedSlot{}}
		for i := range t.Slots {
			s := &t.Slots[i]
			d.Tally.Slots = append(d.Tally.Slots, squashedSlot{s.Action.Path() + "/" + s.Action.Entity, timelineOf(&s.Timeline)})
		}
	}
	return d
}

func timelineOf(t *forerun.Timeline) timelineDocument {
	return timelineDocument{
		Slot: t.Slot, Inline: t.Inline, Queued: micros(t.Queued), Launched: micros(t.Launched), Finished: micros(t.Finished), Promoted: micros(t.Promoted),
		Committed: micros(t.Committed), Squashed: micros(t.Squashed), Held: t.Held.Microseconds(), Stalled: t.Stalled, Waited: t.Waited.Microseconds(),
		Speculative: t.Speculative, Skipped: t.Skipped, Predicted: t.Predicted, InTurn: t.InTurn, Kind: t.Kind, Cause: t.Cause,
	}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
