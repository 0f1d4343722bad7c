package activation

import (
	"testing"

	"forerun.dev/forerun/internal/forerun"
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
