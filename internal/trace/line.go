package trace

import (
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// Line is what is told of any slot, whether it has a record or was squashed. Moments are microseconds since 1970; 0: it did not come.
type Line struct {
	Slot        int                `json:"slot"`             // its number, by which Reasons name it
	Inline      int                `json:"inline,omitempty"` // which of its composition's own functions it is, from 1; 0: an action
	Queued      int64              `json:"queued"`
	Launched    int64              `json:"launched,omitempty"`
	Finished    int64              `json:"finished,omitempty"`
	Promoted    int64              `json:"promoted,omitempty"`
	Committed   int64              `json:"committed,omitempty"`
	Squashed    int64              `json:"squashed,omitempty"`
	Held        int64              `json:"held,omitempty"`   // microseconds that its requests waited for its turn
	Waited      int64              `json:"waited,omitempty"` // microseconds that it waited for what it called
	Speculative bool               `json:"speculative"`      // it was asked for before its turn
	Skipped     bool               `json:"skipped,omitempty"`
	Kind        forerun.SquashKind `json:"kind,omitempty"` // of the squash
	Texts
	Reasons Reasons `json:"reasons,omitzero"`
}

// Reasons are why things happened to a slot, as codes.
type Reasons struct {
	Predicted *forerun.Reason `json:"predicted,omitempty"` // why it was asked for before its turn, or skipped
	InTurn    *forerun.Reason `json:"inTurn,omitempty"`    // why it was neither
	Stalled   *forerun.Reason `json:"stalled,omitempty"`   // why it was held
	Cause     *forerun.Reason `json:"cause,omitempty"`     // of the squash
}

// Texts are the sentences of Reasons.
type Texts struct {
	Predicted string `json:"predicted,omitempty"`
	InTurn    string `json:"inTurn,omitempty"`
	Stalled   string `json:"stalled,omitempty"`
	Cause     string `json:"cause,omitempty"`
}

// Record is what is told of an activation beside its record.
type Record struct {
	Line
	Calls []forerun.ActivationID `json:"calls,omitempty"` // what it called and waited for
	Tally *Tally                 `json:"tally,omitempty"` // of an invocation's root
	Cache *Cache                 `json:"cache,omitempty"` // of an annotated action
}

// Cache is which way an execution of an annotated action went.
type Cache struct {
	Outcome forerun.CacheOutcome `json:"outcome"`
	Why     string               `json:"why,omitempty"`
	Reason  *forerun.Reason      `json:"reason,omitempty"`
	Of      forerun.ActivationID `json:"of,omitempty"`       // of a hit, the execution that it repeats
	Records []forerun.Checked    `json:"records,omitempty"`  // whose versions were checked, the first ones
	Checked int                  `json:"checked,omitempty"`  // how many there were
	Took    int64                `json:"checking,omitempty"` // microseconds until their versions were known
}

// Tally is how far an invocation was speculative.
type Tally struct {
	Early    int    `json:"early"`
	Used     int    `json:"used"`
	Squashed int    `json:"squashed"`
	Skipped  int    `json:"skipped"`
	Depth    int    `json:"depth"`
	InOrder  int64  `json:"inOrder,omitempty"` // microseconds that its functions take in order, by estimate; 0: there is none
	Slots    []Gone `json:"slots"`
}

// Gone is a slot that was squashed.
type Gone struct {
	Action string `json:"action"`
	Line
}

// Of is the trace of one activation.
func Of(a *forerun.Activation) Record {
	r := Record{Line: lineOf(&a.Timeline), Calls: a.Calls}
	if c := a.Cached; c != nil {
		r.Cache = &Cache{c.Outcome, Sentence(c.Why), c.Why, c.Of, c.Checked, c.Records, c.Checking.Microseconds()}
	}
	if t := a.Tally; t != nil {
		r.Tally = &Tally{Early: t.Early, Used: t.Used, Squashed: t.Squashed, Skipped: t.Skipped, Depth: t.Depth, InOrder: t.InOrder.Microseconds(), Slots: []Gone{}}
		for i := range t.Slots {
			s := &t.Slots[i]
			r.Tally.Slots = append(r.Tally.Slots, Gone{s.Action.Path() + "/" + s.Action.Entity, lineOf(&s.Timeline)})
		}
	}
	return r
}

func lineOf(t *forerun.Timeline) Line {
	l := Line{
		Slot: t.Slot, Inline: t.Inline, Queued: micros(t.Queued), Launched: micros(t.Launched), Finished: micros(t.Finished), Promoted: micros(t.Promoted),
		Committed: micros(t.Committed), Squashed: micros(t.Squashed), Held: t.Held.Microseconds(), Waited: t.Waited.Microseconds(),
		Speculative: t.Speculative, Skipped: t.Skipped, Kind: t.Kind, Reasons: Reasons{t.Predicted, t.InTurn, t.Stalled, t.Cause},
	}
	l.Texts = l.Reasons.texts(slotNumber)
	return l
}

func (r *Reasons) texts(number func(slot int) string) Texts {
	return Texts{sentence(r.Predicted, number), sentence(r.InTurn, number), sentence(r.Stalled, number), sentence(r.Cause, number)}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
