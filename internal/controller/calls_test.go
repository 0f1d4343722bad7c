package controller

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// waiting is a sequence whose second function, b, runs ahead of its first once that is known: the first waits until the test lets it
// go on.
type waiting struct {
	*town
	sequence *forerun.Action
	ahead    atomic.Bool   // the first waits
	ran      atomic.Bool   // b has, while that does
	goOn     chan struct{} // closed, lets it
}

func newWaiting(t *testing.T, b func(run *forerun.Run) (any, error)) *waiting {
	w := &waiting{town: newAheadTown(t), goOn: make(chan struct{})}
	w.function("a", func(*forerun.Run, map[string]any) (any, error) {
		if w.ahead.Load() {
			<-w.goOn
		}
		return map[string]any{}, nil
	})
	w.function("b", func(run *forerun.Run, _ map[string]any) (any, error) { return b(run) })
	w.sequence = w.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	return w
}

// twice invokes the sequence, so that it is known, and once more with b ahead; it returns what that gave.
func (w *waiting) twice() (string, forerun.Tally) {
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	return w.invokeAhead(w.sequence, `{}`)
}

// first reports whether b runs for the first time while the first function waits, or is about to.
func (w *waiting) first() bool { return w.ahead.Load() && w.ran.CompareAndSwap(false, true) }

// call has an activation call an action.
func (w *waiting) call(run *forerun.Run, a *forerun.Action, changes uint64) *Invocation {
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: a, Changes: changes, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
	<-i.Done()
	return i
}

// TestRecordsOfCallsComeFirst: the record of a speculative call is written before the caller may ask for it.
func TestRecordsOfCallsComeFirst(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		i := w.call(run, w.actions["/ns/c"], 0)
		if w.ahead.Load() {
			w.slowly.Store(true)
			close(w.goOn)
		}
		err := w.Hold(context.Background(), run.Activation, nil)
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, records := range w.written {
			for _, r := range records {
				if r.ID == i.ID() {
					return map[string]any{"written": true}, err
				}
			}
		}
		return map[string]any{"written": false}, err
	})
	w.function("c", add("c", 1))
	if got, tally := w.twice(); got != `{"written":true}` || tally.Used != 2 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// A function that does not wait any more for what it called ahead is executed again in its turn.
func TestLeave(t *testing.T) {
	var w *waiting
	var runs atomic.Int32
	called := make(chan struct{})
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if runs.Add(1) == 2 {
			i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.actions["/ns/c"], Input: json.RawMessage(`{"ahead":true}`), Cause: run.Activation, Blocking: true})
			i.Leave()
			close(called)
			close(w.goOn)
			return map[string]any{"wrong": true}, nil
		}
		return map[string]any{"right": w.call(run, w.actions["/ns/c"], w.Changes()).Record().Result}, nil
	})
	w.function("c", func(_ *forerun.Run, input map[string]any) (any, error) {
		if input["ahead"] != nil {
			<-called
		}
		return input, nil
	})
	if got, tally := w.twice(); got != `{"right":{}}` || tally.Squashed == 0 || runs.Load() != 3 {
		t.Errorf("%s, %+v, %d runs", got, tally, runs.Load())
	}
}

// An action that was found for a call just before it was updated is found again.
func TestCallOfWhatChanges(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		found, changes := w.actions["/ns/c"], w.Changes()
		if w.first() {
			w.actions["/ns/c"] = &forerun.Action{Name: found.Name, Version: "0.0.2", Exec: forerun.Exec{Kind: "go:test", Code: "2"}, Limits: found.Limits}
			w.changes.Add(1)
			if _, err := w.do(run, "GET", "k"); err != nil { // its execution hears of the change
				return nil, err
			}
			defer close(w.goOn)
		}
		return map[string]any{"c": w.call(run, found, changes).Record().Result}, nil
	})
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		return map[string]any{"version": run.Action.Version}, nil
	})
	if got, tally := w.twice(); got != `{"c":{"version":"0.0.2"}}` || tally.Squashed == 0 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// TestActionThatIsReadAgain: the registry forgets an action for which it has no room, and reads it again: that is no update.
func TestActionThatIsReadAgain(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if w.first() {
			for _, name := range []string{"/ns/b", "/ns/c"} {
				again := *w.actions[name]
				w.actions[name] = &again
			}
			w.changes.Add(1) // another action was updated
			if _, err := w.do(run, "GET", "k"); err != nil {
				return nil, err
			}
			defer close(w.goOn)
		}
		return map[string]any{"c": w.call(run, w.actions["/ns/c"], w.Changes()).Record().Result}, nil
	})
	w.function("c", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil })
	if got, tally := w.twice(); got != `{"c":{}}` || tally.Used != 2 || tally.Squashed != 0 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// full is a store that has no room for a while.
type full struct {
	state.Store
	is atomic.Bool
}

func (f *full) Exec(ctx context.Context, expect []state.Expect, commands []state.Command) ([]state.Reply, forerun.Version, error) {
	if f.is.Load() {
		return nil, 0, forerun.Errorf(forerun.Full, "state", "no room")
	}
	return f.Store.Exec(ctx, expect, commands)
}

func (f *full) Observe(ctx context.Context, expect []state.Expect, commands []state.Command) (state.Observed, error) {
	if f.is.Load() {
		return state.Observed{}, forerun.Errorf(forerun.Full, "state", "no room")
	}
	return f.Store.Observe(ctx, expect, commands)
}

// TestNoRoom: a function hears in its turn that the store has no room for its write.
func TestNoRoom(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		_, err := w.do(run, "SET", "k", "v")
		if w.first() {
			close(w.goOn)
		}
		return map[string]any{"refused": forerun.KindOf(err) == forerun.Full && err != nil}, nil
	})
	store := &full{Store: w.State}
	w.State = store
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	store.is.Store(true)
	if got, tally := w.invokeAhead(w.sequence, `{}`); got != `{"refused":true}` || tally.Squashed != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// late is a store whose log has no room for what was applied.
type late struct {
	state.Store
	is atomic.Bool
}

func (l *late) Durable(ctx context.Context, v forerun.Version) error {
	if l.is.CompareAndSwap(true, false) {
		return forerun.Errorf(forerun.Full, "state", "no room")
	}
	return l.Store.Durable(ctx, v)
}

// TestNoRoomForTheLog: a write that was applied but may not be on disk is not repeated. The invocation is given up.
func TestNoRoomForTheLog(t *testing.T) {
	var w *waiting
	var runs atomic.Int32
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		runs.Add(1)
		_, err := w.do(run, "INCR", "k")
		if w.first() {
			close(w.goOn)
		}
		return map[string]any{}, err
	})
	store := &late{Store: w.State}
	w.State = store
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	store.is.Store(true)
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	<-i.Done()
	if got := i.Record(); got.Status != forerun.InternalError || runs.Load() != 2 {
		t.Errorf("%v, %s, %d runs", got.Status, got.Result, runs.Load())
	}
	reply, _, err := w.State.Do(t.Context(), state.Command{Space: "ns", Args: [][]byte{[]byte("GET"), []byte("k")}})
	if err != nil || string(reply.Text) != "2" {
		t.Errorf("it was counted %q times, %v", reply.Text, err)
	}
}

// stuck is a store that does not answer before it is told to.
type stuck struct {
	state.Store
	asked, answer chan struct{}
}

func (s *stuck) Exec(ctx context.Context, expect []state.Expect, commands []state.Command) ([]state.Reply, forerun.Version, error) {
	close(s.asked)
	<-s.answer
	return s.Store.Exec(ctx, expect, commands)
}

// newPromoting is a town in which the store has just been asked to promote what a function has counted ahead.
func newPromoting(t *testing.T) (w *waiting, i *Invocation, store *stuck) {
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		_, err := w.do(run, "INCR", "k")
		if w.first() {
			close(w.goOn)
		}
		return map[string]any{}, err
	})
	w.invokeAhead(w.sequence, `{}`)
	store = &stuck{Store: w.State, asked: make(chan struct{}), answer: make(chan struct{})}
	w.State = store
	w.ahead.Store(true)
	i = w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	<-store.asked
	return w, i, store
}

// TestGivenUpInAPromotion: a slot that is being promoted when its invocation is given up has a record, because its writes may stay.
func TestGivenUpInAPromotion(t *testing.T) {
	w, i, store := newPromoting(t)
	gone, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	go w.Close(gone)
	<-i.Done()
	close(store.answer)
	w.mu.Lock()
	defer w.mu.Unlock()
	if last := w.written[len(w.written)-1]; !slices.ContainsFunc(last, func(r *forerun.Activation) bool {
		return r.Action.Entity == "b" && r.Status == forerun.InternalError
	}) {
		t.Errorf("b has no record: %v", last)
	}
}

// A program without a function has one, too, if what is behind it is being promoted: without speculation that comes after it.
func TestGivenUpInAPromotionPastAProgram(t *testing.T) {
	over := make(chan forerun.ActivationID, 2)
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		_, err := w.do(run, "INCR", "k")
		over <- run.Activation
		return map[string]any{}, err
	})
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		over <- run.Activation
		return map[string]any{}, nil
	})
	w.deploy("empty", forerun.Exec{Kind: "sequence"})
	w.deploy("around", forerun.Exec{Kind: "sequence", Components: []string{"/ns/empty"}})
	seq := w.deploy("past", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b", "/ns/empty", "/ns/around", "/ns/c", "/ns/empty"}})
	w.invokeAhead(seq, `{}`)
	<-over
	<-over
	store := &stuck{Store: w.State, asked: make(chan struct{}), answer: make(chan struct{})}
	w.State = store
	w.ahead.Store(true)
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: seq, Input: json.RawMessage(`{}`), Blocking: true})
	for range 2 {
		id := <-over
		w.until(id, func(e *execution) bool { return e.active[id].over })
	}
	close(w.goOn)
	<-store.asked
	gone, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	go w.Close(gone)
	<-i.Done()
	close(store.answer)
	w.mu.Lock()
	defer w.mu.Unlock()
	have := make(map[string]int)
	for _, r := range w.written[len(w.written)-1] {
		have[r.Action.Entity]++
	}
	if want := map[string]int{"a": 1, "b": 1, "empty": 2, "around": 1, "c": 1, "past": 1}; !maps.Equal(have, want) {
		t.Errorf("there are records of %v, not of %v", have, want)
	}
}

// TestGivenUpInAPromotionWithACallee: a callee that returned to a slot in promotion has a record as well, because its writes are promoted, too.
func TestGivenUpInAPromotionWithACallee(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		w.call(run, w.actions["/ns/c"], w.Changes())
		if w.first() {
			close(w.goOn)
		}
		return map[string]any{}, nil
	})
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		_, err := w.do(run, "INCR", "k")
		return map[string]any{}, err
	})
	w.invokeAhead(w.sequence, `{}`)
	store := &late{Store: w.State}
	w.State = store
	w.ahead.Store(true)
	store.is.Store(true)
	w.invokeAhead(w.sequence, `{}`)
	w.Close(t.Context())
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range slices.Concat(w.written...) {
		if r.Action.Entity == "c" {
			n++
		}
	}
	if n != 2 {
		t.Errorf("c has %d records of 2 executions that count", n)
	}
}

// TestCalleesAreLetGoFirst: data that functions sent speculatively goes out as in a run in order: a callee's before its caller's.
func TestCalleesAreLetGoFirst(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		for _, name := range []string{"/ns/c", "/ns/d"} {
			w.call(run, w.actions[name], w.Changes())
		}
		if w.first() {
			close(w.goOn)
		}
		return map[string]any{}, nil
	})
	w.function("d", func(run *forerun.Run, _ map[string]any) (any, error) {
		_, err := w.do(run, "INCR", "k")
		return map[string]any{}, err
	})
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		w.call(run, w.actions["/ns/d"], w.Changes())
		return map[string]any{}, nil
	})
	w.twice()
	w.Close(t.Context())
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make(map[forerun.ActivationID]string)
	for _, r := range slices.Concat(w.written...) {
		names[r.ID] = r.Action.Entity
	}
	got := ""
	for _, id := range w.promoted {
		got += names[id]
	}
	if got != "dcdb" {
		t.Errorf("they are let go in the order %q", got)
	}
}

// TestGivenUpBeforeACall: a slot of an expected call, which no caller waits for yet, ends when its invocation is given up.
func TestGivenUpBeforeACall(t *testing.T) {
	var w *waiting
	expected := make(chan struct{})
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if w.ahead.Load() {
			<-w.goOn
		}
		return map[string]any{"c": w.call(run, w.actions["/ns/c"], w.Changes()).Record().Result}, nil
	})
	w.function("c", func(*forerun.Run, map[string]any) (any, error) {
		if w.ahead.Load() {
			close(expected)
		}
		return map[string]any{}, nil
	})
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	<-expected
	w.EndNamespace(t.Context(), "ns", "It was deleted.")
	<-i.Done()
	if got := string(i.Record().Result); got != `{"error":"It was deleted."}` {
		t.Errorf("it ended with %s", got)
	}
	close(w.goOn)
}

// TestAskedAfterTheEnd: requests of a function that has ended are refused, also before its turn, since nothing would answer them.
func TestAskedAfterTheEnd(t *testing.T) {
	var w *waiting
	ended := make(chan forerun.ActivationID, 1)
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if w.first() {
			ended <- run.Activation
		}
		return map[string]any{}, nil
	})
	c := w.function("c", add("c", 1))
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	id := <-ended
	w.until(id, func(e *execution) bool { return e.active[id].over })
	undone := false
	called := w.Invoke(Request{
		Namespace: "ns", Action: c, Input: json.RawMessage(`{}`), Cause: id, Blocking: true, Undone: func() { undone = true },
	})
	held := make(chan error, 1)
	go func() { held <- w.Hold(context.Background(), id, nil) }()
	expectRefused(t, held)
	close(w.goOn)
	<-i.Done()
	select {
	case <-called.Done():
		if called.Err() == nil || !undone {
			t.Errorf("its call: %v, undone: %v", called.Err(), undone)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("its call never ends")
	}
}

// until returns once something holds for the execution of an activation.
func (t *town) until(id forerun.ActivationID, holds func(e *execution) bool) {
	e := t.executionOf(id)
	for does := false; !does; time.Sleep(time.Millisecond) {
		e.mu.Lock()
		does = holds(e)
		e.mu.Unlock()
	}
}

// TestAskedBeforeAFailure: requests of a function that fails while it is promoted are refused, so that no connection waits for them.
func TestAskedBeforeAFailure(t *testing.T) {
	var w *waiting
	held, ahead, fail := make(chan error, 1), make(chan forerun.ActivationID, 1), make(chan struct{})
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		_, err := w.do(run, "INCR", "k")
		if w.first() {
			ahead <- run.Activation
			<-fail
			err = errors.New("failed")
		}
		return map[string]any{}, err
	})
	w.invokeAhead(w.sequence, `{}`)
	store := &stuck{Store: w.State, asked: make(chan struct{}), answer: make(chan struct{})}
	w.State = store
	w.ahead.Store(true)
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	id := <-ahead
	close(w.goOn)
	<-store.asked
	go func() { held <- w.Hold(context.Background(), id, nil) }()
	w.until(id, func(e *execution) bool { return len(e.operations) == 1 })
	close(fail)
	w.until(id, func(e *execution) bool { return e.active[id].over })
	close(store.answer)
	<-i.Done()
	expectRefused(t, held)
}

// expectRefused waits for the answer to what a function that is over had asked for.
func expectRefused(t *testing.T, held <-chan error) {
	t.Helper()
	select {
	case err := <-held:
		if forerun.KindOf(err) != forerun.Forbidden {
			t.Errorf("what it asked for was answered: %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("what it asked for waits")
	}
}

// A pure function is not executed on what it was executed on before, whoever asks for it, while what it calls is what it was.
func TestPureFunctionsThatCall(t *testing.T) {
	w := newWaiting(t, nil)
	pure := forerun.KeyValue{Key: "pure-function", Value: json.RawMessage("true")}
	var runs atomic.Int32
	w.function("inner", func(_ *forerun.Run, input map[string]any) (any, error) {
		runs.Add(1)
		return input, nil
	}).Annotations = []forerun.KeyValue{pure}
	outer := w.function("outer", func(run *forerun.Run, _ map[string]any) (any, error) {
		runs.Add(1)
		return map[string]any{"inner": w.call(run, w.actions["/ns/inner"], w.Changes()).Record().Result}, nil
	})
	outer.Annotations = []forerun.KeyValue{pure}
	for i, want := range []struct{ runs, skipped int }{
		{2, 0}, {2, 1}, {2, 1}, // it is executed once
		{4, 0}, {4, 1}, // and once more when what it calls is another
	} {
		if i == 3 {
			inner := *w.actions["/ns/inner"]
			inner.Exec.Code = "another"
			w.actions["/ns/inner"] = &inner
			w.changes.Add(1)
		}
		got, tally := w.invokeAhead(outer, `{}`)
		if got != `{"inner":{}}` || int(runs.Load()) != want.runs || tally.Skipped != want.skipped {
			t.Errorf("%d: %s, %d executions, %+v; want %+v", i, got, runs.Load(), tally, want)
		}
	}
}

// A call whose id is known to its client is not what runs ahead already, which has another.
func TestCallsWithIDs(t *testing.T) {
	var w *waiting
	var called atomic.Pointer[Invocation]
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if !w.ahead.Load() { // it is to be expected
			w.call(run, w.actions["/ns/c"], w.Changes())
			return map[string]any{}, nil
		}
		close(w.goOn)
		if err := w.Hold(context.Background(), run.Activation, nil); err != nil {
			return nil, err
		}
		i, err := w.InvokeAccepted(Request{
			Namespace: "ns", Subject: "ada", Action: w.actions["/ns/c"], Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true,
		}, func(a *forerun.Activation) error { return w.Accept(context.Background(), a) })
		if err == nil {
			<-i.Done()
			called.Store(i)
		}
		return map[string]any{}, err
	})
	w.function("c", add("c", 1))
	_, tally := w.twice()
	i := called.Load()
	if record := i.Record(); record.ID != i.accepted.ID || i.ID() != record.ID {
		t.Errorf("the client was told %s, and the record is that of %s", i.accepted.ID, record.ID)
	}
	if tally.Kinds[forerun.WrongCall] == 0 {
		t.Errorf("what b was expected to call did not run ahead: %+v", tally)
	}
}

// TestShortCallsKeepTheirIDs: a caller that waits for a short time only is told the id of an activation that is to have a record. It is not told
// the id of a speculative one that has to run again. An action that is called so is not speculative the next time.
func TestShortCallsKeepTheirIDs(t *testing.T) {
	var w *waiting
	var told, is atomic.Pointer[forerun.ActivationID]
	read := make(chan struct{})
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		first := w.first()
		if first {
			<-read
			close(w.goOn)
		}
		if err := w.Hold(context.Background(), run.Activation, nil); err != nil {
			return nil, err
		}
		if first {
			w.others(t, "SET k v")
		}
		i := w.Invoke(Request{
			Namespace: "ns", Subject: "ada", Action: w.actions["/ns/c"], Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true, Short: first,
		})
		id := i.ID()
		told.Store(&id)
		<-i.Done()
		is.Store(&i.Record().ID)
		return map[string]any{}, nil
	})
	var reads atomic.Int32
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		_, err := w.do(run, "GET", "k")
		if reads.Add(1) == 2 {
			close(read)
		}
		return map[string]any{}, err
	})
	if got, tally := w.twice(); got != `{}` || tally.Kinds[forerun.WrongCall] != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
	if *told.Load() != *is.Load() {
		t.Errorf("the caller was told %s, and the record is that of %s", *told.Load(), *is.Load())
	}
	if _, tally := w.invokeAhead(w.sequence, `{}`); tally.Early != 1 {
		t.Errorf("the next time %+v", tally)
	}
}

// TestCallsThroughBindings: a call through a package's binding is expected through the binding.
func TestCallsThroughBindings(t *testing.T) {
	var w *waiting
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		i := w.call(run, w.actions["/ns/bound/c"], w.Changes())
		return map[string]any{"binding": forerun.Lookup(i.Record().Annotations, "binding"), "n": i.Record().Result}, nil
	})
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		if w.ahead.Load() {
			defer close(w.goOn)
		}
		return map[string]any{"package": run.Action.Name.Package}, nil
	})
	for _, from := range []string{"p", "q"} {
		bound := *w.actions["/ns/c"]
		bound.Name.Package, bound.Binding = from, "ns/bound"
		w.actions["/ns/bound/c"] = &bound
		w.changes.Add(1)
		w.ahead.Store(false)
		w.goOn = make(chan struct{})
		got, tally := w.twice()
		if want := `{"binding":"ns/bound","n":{"package":"` + from + `"}}`; got != want || tally.Used != 2 || tally.Squashed != 0 {
			t.Errorf("%s, %+v; want %s", got, tally, want)
		}
	}
}

// A function that has ended while something that it sent ahead waits still, for which it did not wait, is executed again in its turn.
func TestUnheard(t *testing.T) {
	var w *waiting
	var runs atomic.Int32
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if n := runs.Add(1); n == 2 {
			w.unheard.Store(run.Activation, true)
			go func() {
				for w.executionOf(run.Activation) != nil { // it has not ended ahead yet
					time.Sleep(time.Millisecond)
				}
				close(w.goOn)
			}()
		}
		return map[string]any{"run": runs.Load()}, nil
	})
	if got, tally := w.twice(); got != `{"run":3}` || tally.Squashed != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
}

func TestHeldFor(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	s := &slot{record: new(forerun.Activation)}
	for i, d := range []struct{ from, to, want int }{
		{10, 20, 10},
		{11, 21, 11},
		{12, 20, 11}, // at the same time
		{5, 21, 16},  // as well, since before that
		{30, 31, 17},
		{0, 60, 60}, // while all of them were
		{15, 15, 60},
	} {
		if s.heldFor(span{at(d.from), at(d.to)}); s.record.Timeline.Held != time.Duration(d.want)*time.Second {
			t.Errorf("%d: %v; want %d seconds", i, s.record.Timeline.Held, d.want)
		}
	}
}

// TestCallsOfWhatRunsAreTold: the worker hears who waits for it, too, when a function calls what runs already, as that was expected: of what
// has not ended of a sequence, here.
func TestCallsOfWhatRunsAreTold(t *testing.T) {
	var w *waiting
	runs, ended, called := make(chan *forerun.Run, 1), make(chan forerun.ActivationID, 1), make(chan struct{})
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		call := Request{Namespace: "ns", Subject: "ada", Action: w.actions["/ns/c"], Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true}
		if !w.first() {
			<-w.Invoke(call).Done()
			return map[string]any{}, nil
		}
		over, running := <-ended, <-runs
		w.until(over, func(e *execution) bool { return e.active[over].over })
		if running.Caller != "" {
			t.Errorf("%s waits for what is not called yet", running.Caller)
		}
		i := w.Invoke(call)
		if by, _ := w.awaited.Load(running.Activation); by != run.Activation {
			t.Errorf("%v waits for what %s has called", by, run.Activation)
		}
		if by, told := w.awaited.Load(over); told {
			t.Errorf("%v waits for what has ended", by)
		}
		close(called)
		close(w.goOn)
		<-i.Done()
		return map[string]any{}, nil
	})
	w.function("d", func(run *forerun.Run, _ map[string]any) (any, error) {
		if w.ahead.Load() {
			ended <- run.Activation
		}
		return map[string]any{}, nil
	})
	w.function("e", func(run *forerun.Run, _ map[string]any) (any, error) {
		if w.ahead.Load() {
			runs <- run
			<-called
		}
		return map[string]any{}, nil
	})
	w.deploy("c", forerun.Exec{Kind: "sequence", Components: []string{"/ns/d", "/ns/e"}})
	if got, tally := w.twice(); got != `{}` || tally.Used != 3 || tally.Squashed != 0 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// TestRunsNameTheirCaller: the worker hears who waits for a run.
func TestRunsNameTheirCaller(t *testing.T) {
	town := newAheadTown(t)
	var outer, caller forerun.ActivationID
	inner := town.function("inner", func(run *forerun.Run, _ map[string]any) (any, error) {
		caller = run.Caller
		return map[string]any{}, nil
	})
	a := town.function("outer", func(run *forerun.Run, _ map[string]any) (any, error) {
		if run.Caller != "" {
			t.Errorf("%s waits for what a client called", run.Caller)
		}
		outer = run.Activation
		i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: inner, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
		<-i.Done()
		return map[string]any{}, i.Err()
	})
	town.invoke(a, `{}`)
	if caller == "" || caller != outer {
		t.Errorf("%q waits for what %q called", caller, outer)
	}
}

// TestToldIDsAreFinal: a caller that is told the id of its speculative call in its turn is told the id of the activation that has a record: not
// while the store is still to say whether what that did ahead counts.
func TestToldIDsAreFinal(t *testing.T) {
	var w *waiting
	var reads atomic.Int32
	called, accepted := make(chan *Invocation, 1), make(chan struct{})
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.actions["/ns/c"], Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
		if w.ahead.Load() {
			called <- i
		}
		<-i.Done()
		return map[string]any{}, nil
	})
	w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
		_, err := w.do(run, "GET", "k")
		if reads.Add(1) > 1 {
			if run.Speculative {
				close(w.goOn)
			}
			<-accepted
		}
		return map[string]any{}, err
	})
	w.invokeAhead(w.sequence, `{}`)
	store := &stuck{Store: w.State, asked: make(chan struct{}), answer: make(chan struct{})}
	w.State = store
	w.ahead.Store(true)
	over := make(chan struct{})
	go func() {
		defer close(over)
		w.invokeAhead(w.sequence, `{}`)
	}()
	i := <-called
	<-store.asked
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := i.Accept(gone); err == nil || w.IsAhead(i.accepted.Cause) {
		t.Errorf("it may be told its id already: %v", err)
	}
	w.others(t, "SET k theirs")
	close(store.answer)
	if err := i.Accept(t.Context()); err != nil {
		t.Error(err)
	}
	told := i.ID()
	close(accepted)
	<-over
	if is := i.Record().ID; told != is || reads.Load() != 3 {
		t.Errorf("the caller was told %s, and the record is that of %s, after %d runs", told, is, reads.Load())
	}
}
