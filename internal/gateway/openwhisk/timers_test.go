package openwhisk

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/registry"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/timer"
)

// timed gives the world a trigger with a timer and two rules, of which one is active, and returns its next firing.
func timed(t *testing.T, w *world, parameters timer.Parameters) timer.Firing {
	t.Helper()
	w.deploy("echo", "echo")
	w.wants(200, "PUT", "triggers/t", `{"parameters":[{"key":"a","value":1},{"key":"b","value":1}]}`)
	for _, rule := range []string{"r1", "r2", "r3"} {
		w.wants(200, "PUT", "rules/"+rule, `{"trigger":"/_/t","action":"/_/echo"}`)
	}
	w.wants(200, "POST", "rules/r3", `{"status":"inactive"}`)
	parameters["feed"] = json.RawMessage(`"once"`)
	body, err := json.Marshal(parameters)
	if err != nil {
		t.Fatal(err)
	}
	w.wants(200, "PUT", "triggers/t/timer", string(body))
	_, made, err := w.api.timerOf(t.Context(), forerun.Name{Namespace: "guest", Entity: "t"})
	if err != nil {
		t.Fatal(err)
	}
	f := timer.Firing{Trigger: forerun.Name{Namespace: "guest", Entity: "t"}, ID: made.ID, Moment: time.UnixMilli(made.Next), First: time.UnixMilli(made.Next), Payload: made.Payload()}
	f.Delete, f.Rules = made.Deletes()
	return f
}

// wants makes a request, which must be answered with a status, and returns the answer.
func (w *world) wants(status int, method, path, body string) string {
	w.t.Helper()
	r := w.request(method, namespaces+"_/"+path, body)
	if r.status != status {
		w.t.Fatalf("%s %s: %d %s, not %d", method, path, r.status, r.body, status)
	}
	return r.body
}

// begun fires a trigger, and lists the activations of its rules.
func begun(t *testing.T, w *world, f timer.Firing) []string {
	t.Helper()
	if err := w.api.FireTimer(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	record, err := w.api.Activations.Get(t.Context(), "guest", firingID(f))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, line := range record.Logs {
		var outcome ruleOutcome
		if err := json.Unmarshal([]byte(line), &outcome); err != nil {
			t.Fatal(err)
		}
		if outcome.Success {
			ids = append(ids, outcome.Rule+" "+string(outcome.ActivationID))
		}
	}
	return ids
}

var inAYear = json.RawMessage(`"` + time.Now().AddDate(1, 0, 0).UTC().Format(time.RFC3339) + `"`)

// TestFireTimerAgain: a firing that is repeated, after the server was killed at any step of it, begins nothing again.
func TestFireTimerAgain(t *testing.T) {
	w := newWorld(t)
	f := timed(t, w, timer.Parameters{"date": inAYear, "trigger_payload": json.RawMessage(`{"b":2}`)})
	first := begun(t, w, f)
	if len(first) != 2 {
		t.Fatalf("begun were %q", first)
	}
	record := w.wants(200, "GET", "activations/"+string(firingID(f)), "")
	for _, want := range []string{`"scheduled"`, "guest/r1", "guest/r2", `"b":2`, "is inactive"} {
		if !strings.Contains(record, want) || strings.Contains(record, "missedSince") {
			t.Errorf("the record %s is without %s", record, want)
		}
	}
	if again := begun(t, w, f); !slices.Equal(again, first) {
		t.Errorf("once more there are %q, not %q", again, first)
	}
	w.wants(200, "PUT", "triggers/t?overwrite=true", `{"parameters":[]}`) // the input is another now
	// As if the server had been killed before it wrote the record.
	lost := state.Command{Space: "activations", Args: [][]byte{[]byte("DEL"), []byte("id/guest/" + string(firingID(f)))}}
	if _, err := w.store.Apply(t.Context(), state.Txn{Ops: []state.Command{lost}}); err != nil {
		t.Fatal(err)
	}
	if again := begun(t, w, f); !slices.Equal(again, first) {
		t.Errorf("after a kill there are %q, not %q", again, first)
	}
	f.First, f.Moment = f.Moment, f.Moment.Add(time.Second)
	if next := begun(t, w, f); len(next) != 2 || slices.Contains(first, next[0]) || slices.Contains(first, next[1]) {
		t.Errorf("at another moment there are %q, at the first there were %q", next, first)
	}
	if record := w.wants(200, "GET", "activations/"+string(firingID(f)), ""); !strings.Contains(record, "missedSince") {
		t.Error(record)
	}
}

// TestFireTimerGone: what was changed or deleted is not fired.
func TestFireTimerGone(t *testing.T) {
	w := newWorld(t)
	f := timed(t, w, timer.Parameters{"date": inAYear})
	w.wants(200, "PATCH", "triggers/t/timer", `{"trigger_payload":"x"}`)
	if err := w.api.FireTimer(t.Context(), f); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("a changed timer: %v", err)
	}
	w.wants(200, "DELETE", "triggers/t", "")
	w.wants(404, "GET", "triggers/t/timer", "")
	w.wants(404, "PUT", "triggers/t/timer", `{"feed":"alarm","cron":"* * * * *"}`)
	w.wants(200, "DELETE", "triggers/t/timer", "")
	if err := w.api.FireTimer(t.Context(), f); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("a deleted timer: %v", err)
	}
}

// TestFireTimerDeletes: a trigger and its rules go with the last firing, also if it is repeated.
func TestFireTimerDeletes(t *testing.T) {
	w := newWorld(t)
	f := timed(t, w, timer.Parameters{"date": inAYear, "deleteAfterFire": json.RawMessage(`"rules"`)})
	if ids := begun(t, w, f); len(ids) != 2 {
		t.Errorf("begun were %q", ids)
	}
	for _, path := range []string{"triggers/t", "rules/r1", "rules/r2", "rules/r3"} {
		w.wants(404, "GET", path, "")
	}
	if err := w.api.FireTimer(t.Context(), f); forerun.KindOf(err) != forerun.NotFound {
		t.Error(err)
	}
}

// TestFireTimerRefused: a firing that the tenant's quota refuses has a record that says so.
func TestFireTimerRefused(t *testing.T) {
	w := newWorld(t)
	f := timed(t, w, timer.Parameters{"date": inAYear})
	none := 0
	if _, err := w.api.Registry.SetQuotas(t.Context(), "guest", registry.Quotas{FiresPerMinute: &none}); err != nil {
		t.Fatal(err)
	}
	if err := w.api.FireTimer(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	if record := w.wants(200, "GET", "activations/"+string(firingID(f)), ""); !strings.Contains(record, "Too many requests in the last minute") {
		t.Error(record)
	}
}
