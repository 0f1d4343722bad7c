package controller

import (
	"encoding/json"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// called has an activation call an action, and returns the record of the call.
func (t *town) called(run *forerun.Run, name string) *forerun.Activation {
	a := t.actions["/ns/"+name]
	i := t.Invoke(Request{Namespace: "ns", Subject: "ada", Action: a, Changes: t.Changes(), Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
	<-i.Done()
	return i.Record()
}

// TestRowsGoWithTheirAction: the rows of an action that is updated or deleted go at once, and so do rows that rest on it.
func TestRowsGoWithTheirAction(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	town.function("callee", add("n", 1))
	town.counted("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
		return town.called(run, "callee").Result, nil
	})
	town.counted("other", add("n", 2))
	fill := func() {
		for _, name := range []string{"caller", "other"} {
			town.ask(town.actions["/ns/"+name])
		}
	}
	expect := func(want int64, what string) {
		t.Helper()
		town.ActionsChanged()
		for town.sweeps.Load() > 0 {
			time.Sleep(time.Millisecond)
		}
		if n := town.Memo().Rows; n != want {
			t.Errorf("%s: there are %d rows, not %d", what, n, want)
		}
	}
	fill()
	expect(2, "nothing has changed")
	town.update("callee")
	expect(1, "a callee was updated")
	fill()
	expect(2, "the caller ran again")
	town.update("other")
	expect(1, "an action was updated")
	delete(town.actions, "/ns/callee")
	expect(0, "a callee was deleted")
}

// TestRowOfAnUpdatedAction: what an execution gave whose action was updated meanwhile does not stay.
func TestRowOfAnUpdatedAction(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	f, _ := town.counted("f", func(*forerun.Run, map[string]any) (any, error) {
		town.update("f")
		return map[string]any{}, nil
	})
	town.ask(f)
	if n := town.Memo().Rows; n != 0 {
		t.Errorf("%d rows of old code stay", n)
	}
}

// TestSamplesGoWithTheirAction: what was compared of a deployment that is gone is forgotten. The samples hold no result.
func TestSamplesGoWithTheirAction(t *testing.T) {
	town := newVerifyTown(t, speculate.Off)
	for _, name := range []string{"stays", "goes"} {
		f, _ := town.counted(name, add("n", 1))
		town.ask(f)
	}
	samples := &town.tables.tenant("ns").samples
	var sampled []forerun.Home
	for _, home := range town.tables.tenant("ns").memo.Homes() {
		row := &forerun.Row{Home: home, By: "a"}
		samples.note(row)
		samples.note(row)
		samples.rested(home, rest{until: time.Now().Add(restFor)})
		if other := (&forerun.Row{Home: home, By: "b"}); samples.first(row) || !samples.first(other) {
			t.Errorf("of %s a row counts twice", home.Action)
		}
		sampled = append(sampled, home)
	}
	delete(town.actions, "/ns/goes")
	town.ActionsChanged()
	for town.sweeps.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	for _, home := range sampled {
		stays := home.Action == "/ns/stays"
		_, rests := samples.rests(home, time.Now())
		if noted := len(samples.of[home]) > 0; noted != stays || rests != stays {
			t.Errorf("%s: it is known still: %v", home.Action, noted)
		}
	}
	if len(sampled) != 2 || len(samples.of) != 1 || len(samples.rest) != 1 {
		t.Errorf("of %d deployments %d and %d are known", len(sampled), len(samples.of), len(samples.rest))
	}
}
