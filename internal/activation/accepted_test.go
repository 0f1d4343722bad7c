package activation

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

func TestRecoverEndsWhatWasAcceptedAndNotEnded(t *testing.T) {
	l := open(t)
	ended, lost, forgotten := record(1, "guest", "a"), record(2, "guest", "b"), record(3, "other", "c")
	for _, a := range []*forerun.Activation{ended, lost, forgotten} {
		if err := l.Accept(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	put(t, l, ended, forgotten)
	if err := l.Forget(t.Context(), forgotten); err != nil {
		t.Fatal(err)
	}
	interrupt := func(a *forerun.Activation) { a.Status = forerun.InternalError }
	if n, err := l.Recover(t.Context(), interrupt); n != 1 || err != nil {
		t.Errorf("recovered %d, %v; want 1", n, err)
	}
	for _, want := range []struct {
		*forerun.Activation
		status forerun.Status
	}{{ended, forerun.ApplicationError}, {lost, forerun.InternalError}, {forgotten, forerun.ApplicationError}} {
		got, err := l.Get(t.Context(), want.Namespace, want.ID)
		if err != nil || got.Status != want.status {
			t.Errorf("%s: %+v, %v; want the status %s", want.Action, got, err, want.status)
		}
	}
	if n, err := l.Recover(t.Context(), interrupt); n != 0 || err != nil {
		t.Errorf("recovered %d again, %v", n, err)
	}
}

// TestRecoverListsParts: the record of a workflow that a server did not live to end lists the functions that have notes.
func TestRecoverListsParts(t *testing.T) {
	l := open(t)
	workflow, first, second, apart := record(1, "guest", "chain"), record(2, "guest", "one"), record(3, "guest", "two"), record(4, "guest", "three")
	workflow.Logs, workflow.Annotations = nil, []forerun.KeyValue{{Key: "kind", Value: json.RawMessage(`"sequence"`)}}
	first.Cause, second.Cause = workflow.ID, workflow.ID
	if err := l.Note(t.Context(), second, apart, workflow, first); err != nil {
		t.Fatal(err)
	}
	if n, err := l.Recover(t.Context(), func(*forerun.Activation) {}); n != 4 || err != nil {
		t.Fatalf("recovered %d, %v", n, err)
	}
	got, err := l.Get(t.Context(), "guest", workflow.ID)
	if want := []string{string(first.ID), string(second.ID)}; err != nil || !slices.Equal(got.Logs, want) {
		t.Errorf("it lists %q, %v; want %q", got.Logs, err, want)
	}
}

// TestRecordsReplaceNotes: nothing is left of the note of an activation that has its record, and others' notes stay.
func TestRecordsReplaceNotes(t *testing.T) {
	l := open(t)
	ended, going := record(1, "guest", "a"), record(2, "guest", "b")
	if err := l.Note(t.Context(), ended, going); err != nil {
		t.Fatal(err)
	}
	ended.Noted = true
	put(t, l, ended)
	left, err := l.accepted(t.Context())
	if err != nil || len(left) != 1 || left[0].ID != going.ID || !left[0].Start.Equal(going.Start) || left[0].Action != going.Action {
		t.Errorf("%+v, %v", left, err)
	}
	if got, err := l.Get(t.Context(), "guest", ended.ID); err != nil || got.Action != ended.Action {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestNoteIsARecord: a note reads as the record of the same activation would, whatever its names hold.
func TestNoteIsARecord(t *testing.T) {
	odd := "a \"quoted\" \\ <name> &\t\u2028 of \U0001f600 and \x00"
	for name, a := range map[string]*forerun.Activation{
		"empty": {}, "full": function(1),
		"odd": {
			ID: "id", Namespace: odd, Action: forerun.Name{Namespace: odd, Package: odd, Entity: odd}, Version: odd, Subject: odd, Cause: "cause",
			Start:       time.Date(2026, 11, 28, 9, 0, 0, 123456789, time.FixedZone("", 3600)),
			Annotations: []forerun.KeyValue{{Key: odd, Value: json.RawMessage(`{"a":[1,"b"]}`)}, {Key: "", Value: json.RawMessage("null")}},
			Timeline:    forerun.Timeline{Slot: 12, Queued: day},
		},
	} {
		a.End, a.Duration, a.Status, a.Result, a.Logs = time.Time{}, 0, 0, nil, nil // a note has none of these
		data, err := canonical.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		want, err := decode(name, data)
		if err != nil {
			t.Fatal(err)
		}
		want.Result = nil // of a record it is null
		if got, err := decode(name, appendNote(nil, a)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got\n%+v, %v\nwant\n%+v", name, got, err, want)
		}
	}
}

// TestNotesCountForNoTenant: a note may be written twice, as two functions of one workflow may both write it, and no account is wrong.
func TestNotesCountForNoTenant(t *testing.T) {
	l, _, _ := keeperWith(t, Retention{}, state.Allowance{Bytes: -1})
	stored := func() int64 {
		stored, _ := l.store.(*embedded.Store).Stored("guest")
		return stored.Total()
	}
	put(t, l, record(1, "guest", "a"))
	one := stored()
	a := record(2, "guest", "a")
	for range 2 {
		if err := l.Note(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Accept(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got := stored(); got != one {
		t.Errorf("with a note the tenant stores %d bytes, without it %d", got, one)
	}
	a.Noted = true
	if put(t, l, a); stored() != 2*one {
		t.Errorf("two records of %d bytes are counted as %d", one, stored())
	}
}
