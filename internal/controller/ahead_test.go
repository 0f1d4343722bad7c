package controller

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

// newAheadTown is a town whose invocations run ahead, with a store for its functions.
func newAheadTown(t *testing.T) *town {
	store, err := embedded.Open("store", embedded.Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	town := newTown(t)
	town.Controller = New(Config{
		Worker: town, Actions: town, Records: town, State: store, Bridge: new(Bridge), Cache: true, Speculation: speculate.Settings{Mode: speculate.All, Depth: 4},
	})
	t.Cleanup(func() {
		if n := town.ahead.all.Load(); n != 0 {
			t.Errorf("%d functions are counted as ahead when nothing runs", n)
		}
		if n := town.buffered.all.Load(); n != 0 {
			t.Errorf("%d bytes are counted as buffered when nothing runs", n)
		}
		if ahead, buffer := town.ahead.tenants.Load(), town.buffered.tenants.Load(); ahead != 0 || buffer != 0 {
			t.Errorf("%d and %d tenants are counted that are ahead, and that buffer, when nothing runs", ahead, buffer)
		}
		if n := len(town.claims.of); n != 0 {
			t.Errorf("%d records are claimed when nothing runs", n)
		}
	})
	return town
}

// do has a function's activation execute a command, and returns the reply.
func (t *town) do(run *forerun.Run, command ...string) (string, error) {
	args := make([][]byte, len(command))
	for i, arg := range command {
		args[i] = []byte(arg)
	}
	reply, _, err := t.Bridge.Do(context.Background(), state.Asker{Activation: run.Activation}, state.Command{Space: "ns", Args: args})
	return string(reply.Text), err
}

// invokeAhead runs an action to its end and returns what it gave, and how far it ran ahead.
func (t *town) invokeAhead(a *forerun.Action, input string) (string, forerun.Tally) {
	i := t.Invoke(Request{Namespace: "ns", Subject: "ada", Action: a, Input: json.RawMessage(input), Blocking: true})
	<-i.Done()
	return string(i.Record().Result), *i.Tally()
}

func TestSequenceRunsAhead(t *testing.T) {
	town := newAheadTown(t)
	var second atomic.Bool
	lastBegan, tell := context.WithCancel(context.Background())
	wrote, tellWrote := context.WithCancel(context.Background())
	town.function("a", func(_ *forerun.Run, input map[string]any) (any, error) {
		if second.Load() {
			<-lastBegan.Done() // the test hangs if the others wait for this one
			<-wrote.Done()
		}
		return map[string]any{"n": input["n"]}, nil
	})
	var buffered atomic.Int64
	town.function("b", func(run *forerun.Run, input map[string]any) (any, error) {
		_, err := town.do(run, "INCR", "count")
		if second.Load() {
			buffered.Add(town.buffered.all.Load())
			tellWrote()
		}
		return map[string]any{"n": input["n"]}, err
	})
	town.function("c", func(run *forerun.Run, input map[string]any) (any, error) {
		if second.Load() {
			tell()
		}
		reply, err := town.do(run, "GET", "count")
		return map[string]any{"count": reply}, err
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b", "/ns/c"}})
	if got, tally := town.invokeAhead(seq, `{"n":1}`); got != `{"count":"1"}` || tally.Early != 0 {
		t.Fatalf("%s, %+v", got, tally)
	}
	second.Store(true)
	got, tally := town.invokeAhead(seq, `{"n":1}`)
	if got != `{"count":"2"}` || tally.Early < 2 || tally.Used != tally.Early-tally.Squashed { // c may have read too early
		t.Errorf("%s, %+v", got, tally)
	}
	if buffered.Load() == 0 {
		t.Error("what a function ahead writes is not counted as buffered")
	}
	records := town.written[1]
	if len(records) != 4 || strings.Join(records[1].Logs, ",") != "ran b" || len(records[3].Logs) != 3 {
		t.Errorf("the records are %+v", records)
	}
}

// TestNonSpeculative: an action that is annotated non-speculative is not launched before its turn, nor is a step of such a sequence.
func TestNonSpeculative(t *testing.T) {
	for name, annotated := range map[string]string{"a function": "b", "a sequence": "inner", "the whole": "seq"} {
		t.Run(name, func(t *testing.T) {
			town := newAheadTown(t)
			for _, name := range []string{"a", "b", "c"} {
				town.function(name, add(name, 1))
			}
			town.deploy("inner", forerun.Exec{Kind: "sequence", Components: []string{"/ns/b"}})
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/inner", "/ns/c"}})
			var early []int
			for i := range 3 {
				if i == 2 {
					town.actions["/ns/"+annotated].Annotations = []forerun.KeyValue{{Key: "non-speculative", Value: json.RawMessage("true")}}
				}
				_, tally := town.invokeAhead(seq, `{}`)
				early = append(early, tally.Early)
			}
			want := 1 // c
			if annotated == "seq" {
				want = 0
			}
			if early[1] != 2 || early[2] != want {
				t.Errorf("%v functions were launched ahead in turn", early)
			}
		})
	}
}

// TestSkippedForNothing: a slot that was skipped for a wrong guess is executed, and the skip is not counted.
func TestSkippedForNothing(t *testing.T) {
	town := newAheadTown(t)
	var n atomic.Int64
	began := make(chan struct{}, 2)
	town.function("a", func(*forerun.Run, map[string]any) (any, error) {
		if n.Load() == 2 {
			<-began
		}
		return map[string]any{"n": n.Load()}, nil
	})
	town.function("pure", add("p", 1)).Annotations = []forerun.KeyValue{{Key: "pure-function", Value: json.RawMessage("true")}}
	town.function("c", func(_ *forerun.Run, input map[string]any) (any, error) {
		if n.Load() == 2 {
			began <- struct{}{}
		}
		return input, nil
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/pure", "/ns/c"}})
	for _, step := range []struct {
		n       int64
		want    string
		skipped int
	}{{1, `{"n":1,"p":1}`, 0}, {1, `{"n":1,"p":1}`, 1}, {2, `{"n":2,"p":1}`, 0}} {
		n.Store(step.n)
		if got, tally := town.invokeAhead(seq, `{}`); got != step.want || tally.Skipped != step.skipped {
			t.Errorf("%s, %+v; want %s, %d skipped", got, tally, step.want, step.skipped)
		}
	}
}

func TestNothingRunsAheadWhileOthersWait(t *testing.T) {
	town := newAheadTown(t)
	var waiting atomic.Pointer[string]
	town.Load = func(namespace string) forerun.Load {
		who := waiting.Load()
		return forerun.Load{Waiting: who != nil && *who == namespace}
	}
	town.function("a", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"a": 1}, nil })
	town.function("b", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"b": 1}, nil })
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	town.invokeAhead(seq, `{}`)
	if _, tally := town.invokeAhead(seq, `{}`); tally.Early != 1 {
		t.Errorf("with nobody waiting: %+v", tally)
	}
	for who, early := range map[string]int{"ns": 0, "other": 1} {
		waiting.Store(&who)
		if _, tally := town.invokeAhead(seq, `{}`); tally.Early != early {
			t.Errorf("while those of %s wait: %+v", who, tally)
		}
	}
}

// TestRunsAheadOnceNobodyWaits: an invocation that began while others waited runs ahead from when its first function has its sandbox, if
// nobody does then.
func TestRunsAheadOnceNobodyWaits(t *testing.T) {
	town := newAheadTown(t)
	town.Load = func(string) forerun.Load { return forerun.Load{Waiting: town.unbegun.Load() == 0} }
	town.function("a", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"a": 1}, nil })
	town.function("b", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"b": 1}, nil })
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	town.invokeAhead(seq, `{}`)
	if _, tally := town.invokeAhead(seq, `{}`); tally.Early != 1 {
		t.Errorf("%+v", tally)
	}
}

// TestWhatComputesIsRunAheadOnIdleProcessors: only what waits is while they are busy.
func TestWhatComputesIsRunAheadOnIdleProcessors(t *testing.T) {
	for _, c := range []struct {
		cpu   time.Duration
		busy  float64
		early int
	}{{time.Hour, 0.4, 1}, {time.Hour, 0.55, 0}, {time.Nanosecond, 0.55, 1}} {
		town := newAheadTown(t)
		town.cpu = c.cpu
		town.Load = func(string) forerun.Load { return forerun.Load{Busy: c.busy} }
		town.function("a", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"a": 1}, nil })
		town.function("b", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"b": 1}, nil })
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
		town.invokeAhead(seq, `{}`)
		if _, tally := town.invokeAhead(seq, `{}`); tally.Early != c.early {
			t.Errorf("%v of processors that are %v busy: %+v", c.cpu, c.busy, tally)
		}
	}
}

// TestTransactionsOfHeads: a head's transaction is refused if another client wrote a record that the head watches, whenever that is noticed.
func TestTransactionsOfHeads(t *testing.T) {
	town := newAheadTown(t)
	key := forerun.Key{Space: "ns", Name: "k"}
	town.function("a", func(run *forerun.Run, _ map[string]any) (any, error) {
		expect, err := town.Bridge.Versions(t.Context(), state.Asker{Activation: run.Activation}, []forerun.Key{key})
		if err != nil {
			return nil, err
		}
		set := [][]byte{[]byte("SET"), []byte("k"), []byte("1")}
		if _, _, err := town.State.Do(t.Context(), state.Command{Space: "ns", Args: set}); err != nil {
			return nil, err
		}
		_, _, err = town.Bridge.Exec(t.Context(), state.Asker{Activation: run.Activation}, "ns", expect, [][][]byte{set})
		_, refused := errors.AsType[*state.ConflictError](err)
		return map[string]any{"refused": refused}, nil
	})
	town.function("b", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil })
	for _, name := range []string{"first", "second"} {
		seq := town.deploy(name, forerun.Exec{Kind: "sequence", Components: []string{"/ns/b", "/ns/a"}})
		if got, _ := town.invokeAhead(seq, `{}`); got != `{"refused":true}` {
			t.Errorf("%s", got)
		}
	}
}

// TestAskersWhoGoAway: a request of a head that did not wait for it, because its connection ended at the same moment, is over: who
// follows it does not wait for a write that nobody makes.
func TestAskersWhoGoAway(t *testing.T) {
	town := newAheadTown(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var second atomic.Bool
	asked, read := make(chan struct{}), make(chan struct{})
	town.function("writer", func(run *forerun.Run, _ map[string]any) (any, error) {
		for range 64 { // each is answered and given up at the same moment
			set := state.Command{Space: "ns", Args: [][]byte{[]byte("SET"), []byte("k"), []byte("1")}}
			if _, _, err := town.Bridge.Do(gone, state.Asker{Activation: run.Activation}, set); err != nil && !errors.Is(err, context.Canceled) {
				return nil, err
			}
		}
		if second.Load() {
			close(asked)
			<-read // the test hangs if the reader waits for this one
		}
		return map[string]any{"a": 1}, nil
	})
	town.function("reader", func(run *forerun.Run, _ map[string]any) (any, error) {
		if second.Load() {
			<-asked
		}
		_, err := town.do(run, "GET", "k")
		if second.Load() {
			close(read)
		}
		return map[string]any{"b": 1}, err
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/writer", "/ns/reader"}})
	town.invokeAhead(seq, `{}`)
	second.Store(true)
	if got, tally := town.invokeAhead(seq, `{}`); got != `{"b":1}` || tally.Used != 1 {
		t.Errorf("%s, %+v", got, tally)
	}
}

// TestCallsAheadAreNotAccepted: a call that may never have been leaves nothing behind a server that dies, however long it lasts, until
// it is its caller's turn.
func TestCallsAheadAreNotAccepted(t *testing.T) {
	town := newAheadTown(t)
	var second atomic.Bool
	called, first, callee := make(chan *Invocation), make(chan struct{}), make(chan struct{})
	town.function("a", func(*forerun.Run, map[string]any) (any, error) {
		if second.Load() {
			<-first
		}
		return map[string]any{}, nil
	})
	c := town.function("c", func(*forerun.Run, map[string]any) (any, error) {
		if second.Load() {
			<-callee
		}
		return map[string]any{}, nil
	})
	town.function("b", func(run *forerun.Run, _ map[string]any) (any, error) {
		i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: c, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
		if second.Load() {
			called <- i
		}
		<-i.Done()
		return map[string]any{}, nil
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	town.invokeAhead(seq, `{}`)
	second.Store(true)
	over := make(chan struct{})
	go func() {
		defer close(over)
		town.invokeAhead(seq, `{}`)
	}()
	i := <-called
	if !town.IsAhead(i.accepted.Cause) {
		t.Error("its caller is not ahead")
	}
	if i.note.Stop() {
		t.Error("it is to be accepted while its caller is ahead")
	}
	close(first)
	for end := time.Now().Add(2 * time.Minute); !i.note.Stop(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not to be accepted when it is its caller's turn")
		}
	}
	close(callee)
	<-over
}

// TestMadeWay: a function that is ahead and has to end, for whatever reason, runs again in its turn, and is counted for that reason.
func TestMadeWay(t *testing.T) {
	for _, kind := range []forerun.SquashKind{forerun.Overdue, forerun.MadeWay} {
		town := newAheadTown(t)
		seq := town.wanting(kind, func() time.Duration { return 0 })
		town.invokeAhead(seq, `{}`)
		if got, tally := town.invokeAhead(seq, `{}`); got != `{"b":1}` || tally.Squashed != 1 || tally.Kinds[kind] != 1 {
			t.Errorf("%s: %s, %+v", kind, got, tally)
		}
	}
}

// wanting deploys a sequence of two functions: the second one, which takes for a time, is asked to end whenever it is ahead, and the
// first one ends when it was.
func (t *town) wanting(kind forerun.SquashKind, takes func() time.Duration) *forerun.Action {
	asked := make(chan struct{}, 1)
	t.function("a", func(*forerun.Run, map[string]any) (any, error) {
		select { // it goes on if the other one is not ahead
		case <-asked:
		case <-time.After(200 * time.Millisecond):
		}
		return map[string]any{}, nil
	})
	b := t.function("b", func(run *forerun.Run, _ map[string]any) (any, error) {
		if run.Speculative {
			run.Events.Wanted(run.Activation, kind, forerun.Because(forerun.ReasonMadeWay))
			asked <- struct{}{}
		}
		time.Sleep(takes())
		return map[string]any{"b": 1}, nil
	})
	b.Limits.Timeout = 400
	return t.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
}

// TestLeftForItsTurn: a function that was speculative for half of its time limit twice in a row runs in its turn, until it is fast enough there.
func TestLeftForItsTurn(t *testing.T) {
	town := newAheadTown(t)
	var takes atomic.Int64 // of 400 ms; a squashed function looks, too
	seq := town.wanting(forerun.Overdue, func() time.Duration { return time.Duration(takes.Load()) })
	for i, step := range []struct {
		takes time.Duration
		early int
	}{{240, 0}, {240, 1}, {240, 1}, {240, 0}, {0, 0}, {240, 1}, {240, 1}, {240, 0}} {
		takes.Store(int64(step.takes * time.Millisecond))
		if _, tally := town.invokeAhead(seq, `{}`); tally.Early != step.early {
			t.Errorf("in invocation %d: %+v", i+1, tally)
		}
	}
	last := town.written[len(town.written)-1]
	if why := last[1].Timeline.InTurn; why.Code != forerun.ReasonLongBefore {
		t.Errorf("in turn: %q", why)
	}
}

// TestCallersAreLearntWhenTheyCount: that a function calls others is learnt from one that was committed, and from none that was squashed.
func TestCallersAreLearntWhenTheyCount(t *testing.T) {
	town := newAheadTown(t)
	var n atomic.Int64
	called := make(chan struct{}, 1)
	town.function("a", func(*forerun.Run, map[string]any) (any, error) {
		if n.Load() == 2 {
			<-called
		}
		return map[string]any{"n": n.Load()}, nil
	})
	c := town.function("c", add("c", 1))
	b := town.function("b", func(run *forerun.Run, input map[string]any) (any, error) {
		if n.Load() == 2 && input["n"] == 1.0 || n.Load() == 3 {
			i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: c, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
			if n.Load() == 2 {
				called <- struct{}{}
			}
			<-i.Done()
		}
		return input, nil
	})
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/a", "/ns/b"}})
	for i, want := range []bool{false, false, true} {
		n.Store(int64(i + 1))
		if _, tally := town.invokeAhead(seq, `{}`); i == 1 && tally.Squashed == 0 {
			t.Errorf("what called ahead was not squashed: %+v", tally)
		}
		if got := town.tables.tenant("ns").calls(town.digests.Deployed(b)); got != want {
			t.Errorf("after %d invocations it is known to call others: %v", i+1, got)
		}
	}
}

// TestCallersThatAreGivenUp: nor from one that was given up, which was no more than begun.
func TestCallersThatAreGivenUp(t *testing.T) {
	town := newAheadTown(t)
	callee := town.function("callee", add("c", 1))
	called := make(chan struct{})
	goOn := make(chan struct{})
	defer close(goOn)
	caller := town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
		<-town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true}).Done()
		close(called)
		<-goOn
		return map[string]any{}, nil
	})
	i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: caller, Input: json.RawMessage(`{}`), Blocking: true})
	<-called
	gone, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	town.Close(gone)
	if i.Record().Status != forerun.InternalError || town.tables.tenant("ns").calls(town.digests.Deployed(caller)) {
		t.Errorf("it ended with %s, and is known to call others", i.Record().Result)
	}
}

// TestOverdueWhenItEnds: a function that has ended by the time that it is said to be ahead for too long is not counted as long.
func TestOverdueWhenItEnds(t *testing.T) {
	var w *waiting
	ran := make(chan *forerun.Run, 1)
	w = newWaiting(t, func(run *forerun.Run) (any, error) {
		if w.first() {
			ran <- run
		}
		return map[string]any{}, nil
	})
	w.invokeAhead(w.sequence, `{}`)
	w.ahead.Store(true)
	i := w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.sequence, Input: json.RawMessage(`{}`), Blocking: true})
	run := <-ran
	w.until(run.Activation, func(e *execution) bool { return e.active[run.Activation].over })
	run.Events.Wanted(run.Activation, forerun.Overdue, forerun.Because(forerun.ReasonHalfLimit))
	tables := w.tables.tenant("ns")
	tables.mu.Lock()
	if h := tables.habits[w.digests.Deployed(run.Action)]; h != nil && h.long != 0 {
		t.Errorf("it was long %d times", h.long)
	}
	tables.mu.Unlock()
	close(w.goOn)
	if <-i.Done(); i.Tally().Used != 1 || i.Tally().Squashed != 0 {
		t.Errorf("%+v", i.Tally())
	}
}
