package controller

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// choosy are records some of which cannot be written, or not yet.
type choosy struct {
	Records
	refused func(*forerun.Activation) error
}

func (c *choosy) Put(ctx context.Context, records ...*forerun.Activation) error {
	for _, r := range records {
		if err := c.refused(r); err != nil {
			return err
		}
	}
	return c.Records.Put(ctx, records...)
}

func noRoom() error { return forerun.Errorf(forerun.Full, "state", "no room") }

// TestRecordsAfterThoseThatCannotBeWritten are: an activation has its record, if there is room by then, and it is told that others have not.
func TestRecordsAfterThoseThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		var first atomic.Bool
		town.Controller.Records = &choosy{Records: town, refused: func(*forerun.Activation) error {
			if first.CompareAndSwap(false, true) {
				return noRoom()
			}
			return nil
		}}
		town.function("big", func(*forerun.Run, map[string]any) (any, error) {
			return map[string]any{"text": strings.Repeat("x", largeRecords/2)}, nil
		})
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/big", "/ns/big", "/ns/big", "/ns/big", "/ns/big"}})
		i := town.Invoke(Request{Namespace: "ns", Action: seq, Input: json.RawMessage(`{}`)})
		<-i.Done()
		if err := i.Err(); forerun.KindOf(err) != forerun.Full || !strings.Contains(err.Error(), string(i.ID())+": The records could not be written: ") {
			t.Errorf("who waits hears %v", i.Err())
		}
		if written := slices.Concat(town.written...); len(written) != 4 || written[3].ID != i.ID() {
			t.Errorf("of 6 records, the first 2 of which were refused, %d are written", len(written))
		}
	})
}

// TestRecordsOfCallsThatCannotBeWritten: the caller that was told the answer of a speculative call, and its client, hear of that. No client is told that all
// is well before. What the function asks for later is done for what it is itself.
func TestRecordsOfCallsThatCannotBeWritten(t *testing.T) {
	town := callAheadThenAsk(t, 1_000)
	if err := town.asked[0]; err == nil || forerun.KindOf(err) != forerun.Full {
		t.Errorf("the function that called hears %v", err)
	}
	if err := town.asked[1]; err != nil {
		t.Errorf("when it was told so it hears %v", err)
	}
	if err := town.i.Err(); err == nil || forerun.KindOf(err) != forerun.Full {
		t.Errorf("the client hears %v, and %s", err, town.i.Record().Result)
	}
}

// TestRecordsOfCallsAreWrittenLater when there is room again: before what the function asks for next, or the client is answered.
func TestRecordsOfCallsAreWrittenLater(t *testing.T) {
	for refusals, heard := range map[int32]bool{1: false, 2: true} {
		town := callAheadThenAsk(t, refusals)
		if err := town.asked[0]; (err != nil) != heard || town.asked[1] != nil || town.i.Err() != nil {
			t.Errorf("refused %d times: the function hears %v, its client %v", refusals, town.asked, town.i.Err())
		}
		var calls int
		for _, r := range slices.Concat(town.written...) {
			if r.Action.Entity == "c" {
				calls++
			}
		}
		if calls != 2 {
			t.Errorf("refused %d times: of 2 calls %d have a record", refusals, calls)
		}
	}
}

// asking is a town where a function has called ahead, and then asked for what depends on the call's record.
type asking struct {
	*town
	asked []error
	i     *Invocation
}

// callAheadThenAsk has the record of that call refused so many times, and the function ask twice.
func callAheadThenAsk(t *testing.T, refusals int32) *asking {
	var w *waiting
	var a asking
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		call := w.call(run, w.actions["/ns/c"], 0)
		if w.first() {
			close(w.goOn)
			for range 2 {
				a.asked = append(a.asked, w.Hold(context.Background(), run.Activation, nil))
			}
		}
		return map[string]any{}, call.Err()
	})
	w.function("c", add("c", 1))
	var refused atomic.Int32
	w.Controller.Records = &choosy{Records: w.town, refused: func(r *forerun.Activation) error {
		if w.ahead.Load() && r.Action.Entity == "c" && refused.Add(1) <= refusals {
			return noRoom()
		}
		return nil
	}}
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	a.town = w.town
	a.i = w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	<-a.i.Done()
	return &a
}

// TestRecordsOfCallsBeforeTheAnswer: a speculative call has its record before the client is answered.
func TestRecordsOfCallsBeforeTheAnswer(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		w.call(run, w.actions["/ns/c"], 0)
		if w.first() {
			close(w.goOn)
		}
		return map[string]any{}, nil
	})
	w.function("c", add("c", 1))
	w.Controller.Records = &choosy{Records: w.town, refused: func(r *forerun.Activation) error {
		if r.Action.Entity == "c" {
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	}}
	w.twice()
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := 0
	for _, r := range slices.Concat(w.written...) {
		if r.Action.Entity == "c" {
			calls++
		}
	}
	if calls != 2 {
		t.Errorf("when the second invocation is answered there are records of %d calls", calls)
	}
}
