package controller

import (
	"fmt"
	"sync/atomic"
	"testing"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
)

// TestSuspension: an action that gives two outputs on the same input and records is executed each time, until it is resumed or deployed again.
func TestSuspension(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			var told atomic.Pointer[string]
			town.Suspended = func(namespace, action string, why *forerun.Reason) {
				told.Store(new(namespace + action + " " + why.Record))
			}
			var n atomic.Int64
			counts := func(run *forerun.Run, input map[string]any) (any, error) {
				is, err := town.reading("k")(run, input)
				return map[string]any{"a": is, "b": n.Add(1)}, err
			}
			f, _ := town.counted("f", counts)
			lasts, _ := town.counted("lasts", counts)
			annotate(lasts, annotation.CacheTTL, `"1h"`)
			town.ask(lasts)
			town.ask(lasts, bypass)
			mustBe(t, town.ask(lasts), forerun.CacheHit, forerun.ReasonReadsUnchanged) // it says that it changes in time

			town.ask(f)
			town.write(t, "SET", "k", "new")
			town.ask(f) // the records differ
			mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			if told.Load() != nil {
				t.Errorf("told %s", *told.Load())
			}
			mustBe(t, town.ask(f, bypass), forerun.CacheBypass, forerun.ReasonBypass)
			for range 2 {
				record := town.ask(f)
				mustBe(t, record, forerun.CacheOff, forerun.ReasonSuspended)
				if why := record.Cached.Why.Record; why != "b" {
					t.Errorf("the member that differed: %s", why)
				}
			}
			if told.Load() == nil || *told.Load() != "ns/ns/f b" {
				t.Errorf("told %v", told.Load())
			}
			if x, err := town.Explain(t.Context(), "ns", f, []byte(`{}`)); err != nil || x.Why.Code != forerun.ReasonSuspended {
				t.Errorf("%+v, %v", x, err)
			}
			if uses := town.CacheUses(t.Context(), "ns"); uses[0].Suspended == nil || uses[1].Suspended != nil {
				t.Errorf("%+v, %+v", uses[0], uses[1])
			}
			if town.Resume("other", f) || !town.Resume("ns", f) || town.Resume("ns", f) {
				t.Error("it was resumed by another, or not once")
			}
			town.ask(f)
			mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			town.ask(f, bypass)
			mustBe(t, town.ask(f), forerun.CacheOff, forerun.ReasonSuspended)
			updated := *f
			updated.Version, updated.Updated = "0.0.2", updated.Updated.AddDate(0, 0, 1)
			town.actions["/ns/f"] = &updated
			town.changes.Add(1)
			town.ask(&updated)
			mustBe(t, town.ask(&updated), forerun.CacheHit, forerun.ReasonReadsUnchanged)
		})
	}
}

// TestSuspensionsAreBounded: deployments that are gone are forgotten first. If there are too many others, none is forgotten: all are suspended.
func TestSuspensionsAreBounded(t *testing.T) {
	var s suspensions
	home := func(n int) forerun.Home { return forerun.Home{Action: fmt.Sprint(n)} }
	gone := map[forerun.Home]bool{home(3): true}
	isGone := func(h forerun.Home) bool { return gone[h] }
	for n := range maxSuspensions + 1 {
		if !s.add(home(n), gaveAnother("x"), isGone) {
			t.Fatalf("%d is not new", n)
		}
	}
	if len(s.of) != maxSuspensions || s.why(home(3)) != nil || s.why(home(0)) == nil || s.all {
		t.Errorf("%d are suspended, all: %v", len(s.of), s.all)
	}
	gone = nil
	if !s.add(home(-1), gaveAnother("x"), isGone) || len(s.of) != maxSuspensions || s.why(home(-2)) == nil {
		t.Error("one too many does not suspend all")
	}
	if s.add(home(-3), gaveAnother("x"), isGone) {
		t.Error("all is not all")
	}
	if !s.lift(home(-1)) || s.why(home(-2)) != nil || s.why(home(0)) == nil {
		t.Error("resuming one does not end the suspension of all, or ends others")
	}
}

func TestDiffering(t *testing.T) {
	for _, c := range [][3]string{
		{`{"a":1,"b":2}`, `{"a":1,"b":3}`, "b"}, {`{"a":1}`, `{"a":1,"c":3}`, "c"}, {`[1]`, `{"a":1}`, ""}, {`{"b":1,"a":1}`, `{"b":2,"a":2}`, "a"},
	} {
		if got := differing([]byte(c[0]), []byte(c[1])); got != c[2] {
			t.Errorf("%s: %q", c, got)
		}
	}
}
