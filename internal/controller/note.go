package controller

import (
	"context"
	"slices"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
)

// A function that is a part of a workflow and has a durable effect has a record, whenever the server dies. The record itself is written
// at the end of the workflow. So a note of the function, and of the programs around it, is in the store no later than its first effect:
//
//   - In order, the step that executes the first command that may write keeps the notes, too. What the function asks of the API
//     follows its notes.
//   - A speculative function is noted by the transaction that promotes it, if it has written.
//
// The server that starts after a death makes records of the notes that it finds. The record of an activation replaces its note. A function
// without effects is not noted.

// Notes implements state.Bridge.
func (b *Bridge) Notes(id forerun.ActivationID) []state.Command {
	e := b.c.executionOf(id)
	if e == nil {
		return nil
	}
	e.mu.Lock()
	notes := e.unnoted(nil, e.active[id])
	e.mu.Unlock()
	return e.c.notes(notes)
}

// Noted implements state.Bridge.
func (b *Bridge) Noted(id forerun.ActivationID) {
	if e := b.c.executionOf(id); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		markNoted(e.active[id])
	}
}

// note returns once the notes of a function that asks something of the API are in the log.
func (e *execution) note(ctx context.Context, id forerun.ActivationID) error {
	e.mu.Lock()
	s := e.active[id]
	notes := e.unnoted(nil, s)
	e.mu.Unlock()
	if len(notes) == 0 {
		return nil
	}
	e.c.date(notes)
	if err := e.c.Records.Note(ctx, notes...); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	markNoted(s)
	return nil
}

// isPart reports whether a slot is a part of a workflow.
func (s *slot) isPart() bool { return s.parent != nil || s.tree.caller != nil }

// unnoted adds notes of a slot, and of the programs that it is a part of, that have none. mu is held.
func (e *execution) unnoted(notes []*forerun.Activation, s *slot) []*forerun.Activation {
	if s == nil || !s.isPart() {
		return notes
	}
	for ; s != nil && !s.noted; s = s.parent {
		if !s.silent {
			notes = append(notes, s.note())
		}
	}
	return notes
}

// markNoted notes that the notes of a slot, and of the programs that it is a part of, are in the log. mu is held.
func markNoted(s *slot) {
	for ; s != nil && !s.noted; s = s.parent {
		s.noted = true
	}
}

// note is what is known of an activation that goes on.
func (s *slot) note() *forerun.Activation {
	r := s.record
	start := r.Start
	if start.IsZero() {
		start = r.Timeline.Queued
	}
	return &forerun.Activation{
		ID: r.ID, Namespace: r.Namespace, Action: r.Action, Version: r.Version, Subject: r.Subject, Cause: r.Cause, Start: start,
		Annotations: s.annotations(), Timeline: forerun.Timeline{Slot: r.Timeline.Slot, Queued: r.Timeline.Queued},
	}
}

// notes are the commands that keep notes.
func (c *Controller) notes(notes []*forerun.Activation) []state.Command {
	if len(notes) == 0 {
		return nil
	}
	c.date(notes)
	return c.Records.Notes(notes...)
}

// notesFor are the commands that keep notes of the speculative slots that are to be promoted and have written, and these slots. mu is
// held.
func (e *execution) notesFor(promoted []speculate.SlotID) (slots []*slot, ops []state.Command) {
	var notes []*forerun.Activation
	for _, id := range promoted {
		if s := e.slots[id]; s != nil && len(s.claims) > 0 {
			slots, notes = append(slots, s), e.unnoted(notes, s)
		}
	}
	return slots, e.c.notes(notes)
}

// withoutNotes is what a step observed, without the commands that kept notes.
func withoutNotes(o state.Observed, notes []state.Command) state.Observed {
	if len(notes) == 0 {
		return o
	}
	space := notes[0].Space
	o.Replies = o.Replies[:len(o.Replies)-len(notes)]
	o.Reads = slices.DeleteFunc(o.Reads, func(e state.Expect) bool { return e.Key.Space == space })
	o.Wrote = slices.DeleteFunc(o.Wrote, func(k forerun.Key) bool { return k.Space == space })
	return o
}
