package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// large is a record with a result and logs of so many bytes, queued n minutes into the day.
func large(n, result, logs int) *forerun.Activation {
	a := record(n, "guest", "a")
	a.Start = day.Add(time.Duration(n) * time.Minute)
	a.ID = firstID(a.Start)[:12] + forerun.ActivationID(fmt.Sprintf("%020x", n))
	a.Status = forerun.Success
	a.Result, _ = json.Marshal(map[string]string{"x": strings.Repeat("r", result)})
	a.Logs = []string{strings.Repeat("l", logs)}
	return a
}

// TestRecordsInABurst: the records of a tenant take no more than twice their part, however many are written at a time. Each activation has one.
func TestRecordsInABurst(t *testing.T) {
	const part = 1 << 20
	l, k, hours := keeperWith(t, Retention{}, state.Allowance{Bytes: state.RecordsPart * part})
	l.HoldTo(k)
	*hours = 24
	var burst sync.WaitGroup
	const n = 50
	for i := range n {
		burst.Go(func() {
			if err := l.Put(t.Context(), large(i, 100<<10, 100<<10)); err != nil {
				t.Error(err)
			}
		})
	}
	burst.Wait()
	stored, _ := k.store.Stored("guest")
	if stored[state.Records] > 2*part+n*largeRecord || stored[state.Records] < part {
		t.Errorf("stored: %v", stored)
	}
	kept := 0
	for i := range n {
		a, err := l.Get(t.Context(), "guest", large(i, 0, 0).ID)
		switch {
		case err != nil:
			t.Fatal(err)
		case len(a.Result) > 100<<10 && a.Status == forerun.Success:
			kept++
		case a.Status != forerun.DeveloperError || !strings.Contains(string(a.Result), "The result was not kept: ") || !strings.Contains(a.Logs[0], "The logs were not kept: "):
			t.Errorf("%d: %s %.200s", i, a.Status, a.Result)
		}
	}
	if kept < 5 || kept > 20 {
		t.Errorf("%d results of %d are kept", kept, n)
	}
	if err := k.trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stored, _ := k.store.Stored("guest"); stored[state.Records] > part || stored[state.Records] < part/2 {
		t.Errorf("after a look of the keeper: %v", stored)
	}
	if err := k.Admit("guest"); err != nil {
		t.Error(err)
	}
	put(t, l, large(n, 10, 2*part))
	if a, err := l.Get(t.Context(), "guest", large(n, 0, 0).ID); err != nil || a.Status != forerun.Success || len(a.Result) > 100 || !strings.Contains(a.Logs[0], "part of what it may store (1.0 MiB)") {
		t.Errorf("with large logs alone: %s %.200s (%v)", a.Status, a.Logs, err)
	}
}

// TestTooManyRecords: a tenant whose records take too much begins nothing, until the keeper has removed the oldest, which it does at once.
func TestTooManyRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, k, hours := keeperWith(t, Retention{}, state.Allowance{Bytes: state.RecordsPart * 100 << 10})
		l.HoldTo(k)
		*hours = 24
		n := 0
		for ; k.Admit("guest") == nil && n < 1000; n++ {
			put(t, l, large(n, 1000, 1000)) // too small to be cut
		}
		if err := k.Admit("guest"); forerun.KindOf(err) != forerun.OverQuota || err == nil {
			t.Errorf("after %d records: %v", n, err)
		}
		if err := k.Admit("other"); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { k.Run(ctx) })
		time.Sleep(time.Second) // less than until its next look
		if err := k.Admit("guest"); err != nil {
			t.Error(err)
		}
		left, err := l.Count(t.Context(), "guest", Query{})
		if err != nil || left >= n/2 || left < n/4 {
			t.Errorf("%d records of %d are left, %v", left, n, err)
		}
		if got := remaining(t, l, "guest", "a"); !strings.HasPrefix(got, fmt.Sprintf("%d %d ", n-1, n-2)) {
			t.Errorf("not the newest are left: %s", got)
		}
		cancel()
		running.Wait()
	})
}
