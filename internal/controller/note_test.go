package controller

import (
	"strings"
	"testing"
	"testing/synctest"

	"forerun.dev/forerun/internal/forerun"
)

// notes are the activations that are noted now.
func (t *town) notes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for _, a := range t.noted {
		names = append(names, a.Action.Entity)
	}
	return names
}

// TestNotes: a function in order, and what it is a part of, is noted before its first write to state; one without effects is not. When the
// records are written the notes are dropped.
func TestNotes(t *testing.T) {
	for _, bridged := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			town := newTown(t)
			town.Bridge = &Bridge{town.Controller}
			write := func(run *forerun.Run) error {
				if !run.Noted {
					t.Error("it is not noted")
				}
				town.Bridge.Notes(run.Activation)
				town.Bridge.Noted(run.Activation)
				return nil
			}
			if bridged {
				town = newAheadTown(t)
				write = func(run *forerun.Run) error {
					_, err := town.do(run, "SET", "k", "v")
					return err
				}
			}
			var before, during, after int
			town.function("a", add("a", 1))
			town.function("b", func(run *forerun.Run, input map[string]any) (any, error) {
				before = len(town.notes())
				if bridged {
					if _, err := town.do(run, "GET", "k"); err != nil {
						return nil, err
					}
				}
				before += len(town.notes())
				err := write(run)
				during = len(town.notes())
				return input, err
			})
			inner := town.deploy("inner", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
			outer := town.deploy("outer", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", inner.Name.String()}})
			record := town.invoke(outer, `{}`)
			synctest.Wait()
			after = len(town.notes())
			if before != 0 || during != 3 || after != 0 || record.Status != forerun.Success {
				t.Errorf("bridged %v: %d notes before it wrote, %d then, %d at the end; %s", bridged, before, during, after, record.Result)
			}
		})
	}
}

// TestNotesOfPromoted: writes of a speculative function are in the store together with the notes of it and of its workflow.
func TestNotesOfPromoted(t *testing.T) {
	town := newAheadTown(t)
	var second bool
	wrote := make(chan struct{})
	town.function("a", func(*forerun.Run, map[string]any) (any, error) {
		if second {
			<-wrote
		}
		return map[string]any{}, nil
	})
	var id forerun.ActivationID
	town.function("b", func(run *forerun.Run, _ map[string]any) (any, error) {
		_, err := town.do(run, "SET", "k", string(run.Activation))
		if id = run.Activation; second {
			close(wrote)
		}
		return map[string]any{}, err
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	town.invoke(seq, `{}`)
	second = true
	record := town.invoke(seq, `{}`)
	found, err := town.State.Get(t.Context(), forerun.Key{Space: "activations", Name: string(id)}, forerun.Key{Space: "activations", Name: string(record.ID)}, forerun.Key{Space: "ns", Name: "k"})
	if err != nil || found[0].Version == 0 || found[0].Version != found[2].Version || found[1].Version != found[2].Version {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestInterrupted: a note tells all that is known, and its record that the rest is not.
func TestInterrupted(t *testing.T) {
	s := &slot{record: newRecord("ns", "ada", "id", "cause"), action: &forerun.Action{Exec: forerun.Exec{Kind: "python:3"}}}
	s.record.Action = forerun.Name{Namespace: "ns", Entity: "f"}
	a := s.note()
	if Interrupted(a); a.Cause != "cause" || a.Start.IsZero() || a.Status != forerun.InternalError || !strings.Contains(string(a.Result), "was stopped") ||
		string(forerun.Lookup(a.Annotations, "kind")) != `"python:3"` {
		t.Errorf("%+v", a)
	}
}
