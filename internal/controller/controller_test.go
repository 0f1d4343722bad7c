package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// town is a world for a controller: actions whose functions are Go functions, run by a worker that takes a millisecond
// for each, and the records that were written.
type town struct {
	*Controller
	functions map[string]func(run *forerun.Run, input map[string]any) (any, error)
	actions   map[string]*forerun.Action
	cpu       time.Duration // that each function is said to take
	late      bool          // what is asked for ahead has no sandbox before its turn
	unbegun   atomic.Int64  // runs that have not begun

	mu       sync.Mutex // guards the rest
	written  [][]*forerun.Activation
	squashed map[forerun.ActivationID]bool
	accepted map[forerun.ActivationID]*forerun.Activation
	noted    map[forerun.ActivationID]*forerun.Activation
	accepts  int // all that there have been
	putError error
	slowly   atomic.Bool // records are written
	changes  atomic.Uint64
	unheard  sync.Map    // activations that end without waiting for what they sent ahead
	reached  atomic.Bool // functions are said to reach the outside
	hosts    atomic.Bool // functions are said to read from hosts of read-hosts
	kept     atomic.Bool // processes of functions are said to have served others before
	awaited  sync.Map    // activations, and by whom
	promoted []forerun.ActivationID
}

func newTown(tb testing.TB) *town {
	t := &town{
		functions: make(map[string]func(*forerun.Run, map[string]any) (any, error)),
		actions:   make(map[string]*forerun.Action),
		squashed:  make(map[forerun.ActivationID]bool),
		accepted:  make(map[forerun.ActivationID]*forerun.Activation),
		noted:     make(map[forerun.ActivationID]*forerun.Activation),
	}
	t.Controller = New(Config{Worker: t, Actions: t, Records: t})
	tb.Cleanup(func() { t.Close(context.Background()) })
	return t
}

// reach is how far functions are said to reach.
func (t *town) reach() forerun.Reach {
	if t.reached.Load() {
		return forerun.Outside
	}
	if t.hosts.Load() {
		return forerun.ReadHosts
	}
	return forerun.Inside
}

func (t *town) function(name string, f func(run *forerun.Run, input map[string]any) (any, error)) *forerun.Action {
	t.functions[name] = f
	return t.deploy(name, forerun.Exec{Kind: "go:test"})
}

func (t *town) deploy(name string, exec forerun.Exec, annotations ...forerun.KeyValue) *forerun.Action {
	a := &forerun.Action{Name: forerun.Name{Namespace: "ns", Entity: name}, Version: "0.0.1", Exec: exec, Annotations: annotations, Limits: forerun.DefaultLimits()}
	t.actions[a.Name.String()] = a
	return a
}

// Resolve implements Actions.
func (t *town) Resolve(_ context.Context, name forerun.Name, _ string) (*forerun.Action, error) {
	if a := t.actions[name.String()]; a != nil {
		return a, nil
	}
	return nil, forerun.Errorf(forerun.NotFound, "", "no %s", name)
}

// Changes implements Actions.
func (t *town) Changes() uint64 { return t.changes.Load() }

// Put implements Records.
func (t *town) Put(_ context.Context, records ...*forerun.Activation) error {
	if t.slowly.Load() {
		time.Sleep(20 * time.Millisecond)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = append(t.written, records)
	for _, a := range records {
		if a.Noted {
			delete(t.noted, a.ID)
		}
	}
	return t.putError
}

// Accept implements Records.
func (t *town) Accept(_ context.Context, a *forerun.Activation) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accepted[a.ID] = a
	t.accepts++
	return nil
}

func (t *town) isAccepted(id forerun.ActivationID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.accepted[id] != nil
}

// Forget implements Records.
func (t *town) Forget(_ context.Context, a *forerun.Activation) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.accepted, a.ID)
	return nil
}

// Note implements Records.
func (t *town) Note(_ context.Context, list ...*forerun.Activation) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range list {
		t.noted[a.ID] = a
	}
	return nil
}

// Notes implements Records: each command names the activation.
func (t *town) Notes(list ...*forerun.Activation) (ops []state.Command) {
	_ = t.Note(context.Background(), list...)
	for _, a := range list {
		ops = append(ops, state.Command{Space: "activations", Args: [][]byte{[]byte("SET"), []byte(a.ID), []byte("noted")}})
	}
	return ops
}

// Run implements forerun.Worker.
func (t *town) Run(r *forerun.Run) {
	t.unbegun.Add(1)
	go func() {
		for t.late && r.Speculative && !t.isDue(r.Activation) {
			time.Sleep(time.Millisecond)
		}
		start := time.Now()
		r.Events.Started(r.Activation, start, 0)
		t.unbegun.Add(-1)
		time.Sleep(time.Millisecond)
		for !t.late && t.unbegun.Load() > 0 { // what is launched together has begun before any of it ends
			time.Sleep(time.Millisecond)
		}
		var input map[string]any
		_ = json.Unmarshal(r.Input, &input)
		output, err := t.functions[r.Action.Name.Entity](r, input)
		_, unheard := t.unheard.Load(r.Activation)
		end := forerun.RunEnd{Reach: t.reach(), Remembers: t.kept.Load() && !r.Fresh, At: time.Now(), CPU: t.cpu, Unheard: unheard, Logs: []string{"ran " + r.Action.Name.Entity}}
		end.Result, _ = json.Marshal(output)
		if err != nil {
			failure := forerun.Failure(forerun.DeveloperError, err.Error())
			end.Status, end.Result = failure.Status, failure.Value
		} else if strings.HasPrefix(string(end.Result), `{"error"`) {
			end.Status = forerun.ApplicationError
		}
		t.mu.Lock()
		gone := t.squashed[r.Activation]
		t.mu.Unlock()
		if !gone {
			r.Events.Ended(r.Activation, end)
		}
	}()
}

// isDue reports whether the turn of an activation has come, or it was squashed.
func (t *town) isDue(id forerun.ActivationID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.squashed[id] || slices.Contains(t.promoted, id)
}

// Await implements forerun.Worker.
func (t *town) Await(id, caller forerun.ActivationID) { t.awaited.Store(id, caller) }

// Promote implements forerun.Worker.
func (t *town) Promote(id forerun.ActivationID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.promoted = append(t.promoted, id)
}

// Squash implements forerun.Worker.
func (t *town) Squash(id forerun.ActivationID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.squashed[id] = true
}

// invoke runs an action to its end.
func (t *town) invoke(a *forerun.Action, input string) *forerun.Activation {
	i := t.Invoke(Request{Namespace: "ns", Subject: "ada", Action: a, Input: json.RawMessage(input), Blocking: true})
	<-i.Done()
	return i.Record()
}

func add(key string, value any) func(*forerun.Run, map[string]any) (any, error) {
	return func(_ *forerun.Run, input map[string]any) (any, error) {
		input[key] = value
		return input, nil
	}
}

func annotated(a *forerun.Activation, key string) string {
	return string(forerun.Lookup(a.Annotations, key))
}

func TestFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		hello := town.function("hello", add("greeting", "hi"))
		hello.Parameters = []forerun.KeyValue{{Key: "place", Value: json.RawMessage(`"earth"`)}}
		record := town.invoke(hello, `{"name":"ada"}`)
		if got := string(record.Result); got != `{"greeting":"hi","name":"ada","place":"earth"}` {
			t.Errorf("the result is %s", got)
		}
		if record.Status != forerun.Success || record.Duration != time.Millisecond || record.Cause != "" || record.Logs[0] != "ran hello" {
			t.Errorf("the record is %+v", record)
		}
		if annotated(record, "kind") != `"go:test"` || annotated(record, "path") != `"ns/hello"` || annotated(record, "waitTime") != "0" {
			t.Errorf("the annotations are %s", record.Annotations)
		}
		if len(town.written) != 1 || town.written[0][0] != record {
			t.Errorf("written: %v", town.written)
		}
	})
}

func TestSequenceIsOneBatchOfTiedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("a", add("a", 1))
		town.function("b", add("b", 2))
		inner := town.deploy("inner", forerun.Exec{Kind: "sequence", Components: []string{"/_/a", "/ns/b"}})
		inner.Parameters = []forerun.KeyValue{{Key: "_actions", Value: json.RawMessage(`["/ns/a","/ns/b"]`)}}
		outer := town.deploy("outer", forerun.Exec{Kind: "sequence", Components: []string{inner.Name.String(), "/ns/a"}})
		record := town.invoke(outer, `{}`)
		if string(record.Result) != `{"a":1,"b":2}` || record.Duration != 3*time.Millisecond {
			t.Errorf("the record is %+v", record)
		}
		if len(town.written) != 1 || len(town.written[0]) != 5 {
			t.Fatalf("written: %v", town.written)
		}
		byID := make(map[string]*forerun.Activation)
		for _, r := range town.written[0] {
			byID[string(r.ID)] = r
		}
		var names []string
		for _, id := range record.Logs {
			names = append(names, byID[id].Action.Entity)
			if byID[id].Cause != record.ID {
				t.Errorf("%s is caused by %q", byID[id].Action, byID[id].Cause)
			}
		}
		if fmt.Sprint(names) != "[inner a]" || annotated(record, "topmost") != "true" || annotated(byID[record.Logs[0]], "topmost") != "false" {
			t.Errorf("the components are %v, the annotations %s", names, record.Annotations)
		}
	})
}

func TestComposition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("test", func(_ *forerun.Run, input map[string]any) (any, error) {
			return map[string]any{"value": input["n"].(float64) > 1}, nil
		})
		town.function("yes", add("yes", true))
		town.function("no", add("no", true))
		document := `{"type":"if","test":{"type":"action","name":"/_/test"},"consequent":{"type":"action","name":"/_/yes"},"alternate":{"type":"action","name":"/_/no"}}`
		choose := town.deploy("choose", forerun.Exec{Kind: "nodejs:default"}, forerun.KeyValue{Key: "conductor", Value: json.RawMessage(document)})
		for input, want := range map[string]string{`{"n":2}`: `{"n":2,"yes":true}`, `{"n":1}`: `{"n":1,"no":true}`} {
			record := town.invoke(choose, input)
			if string(record.Result) != want || annotated(record, "conductor") != "true" || len(record.Logs) != 2 {
				t.Errorf("%s gave %s, %v", input, record.Result, record.Logs)
			}
		}
	})
}

func TestErrorsEndASequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("refuse", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"error": "no"}, nil })
		town.function("crash", func(*forerun.Run, map[string]any) (any, error) { return nil, fmt.Errorf("crashed") })
		town.function("never", func(*forerun.Run, map[string]any) (any, error) {
			t.Error("ran behind an error")
			return nil, nil
		})
		for component, want := range map[string]string{
			"refuse":  `application error {"error":"no"}`,
			"crash":   `action developer error {"error":"crashed"}`,
			"missing": `action developer error {"error":"The action /ns/missing, which /ns/seq runs, does not exist."}`,
		} {
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/" + component, "/ns/never"}})
			record := town.invoke(seq, `{}`)
			if got := fmt.Sprintf("%s %s", record.Status, record.Result); got != want {
				t.Errorf("%s: %s; want %s", component, got, want)
			}
		}
	})
}

func TestASequenceThatContainsItselfEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/seq"}})
		record := town.invoke(seq, `{}`)
		if record.Status != forerun.DeveloperError || !strings.Contains(string(record.Result), "does one contain itself?") {
			t.Errorf("%s %s", record.Status, record.Result)
		}
	})
}

func TestCallIsTiedToItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		double := town.function("double", func(_ *forerun.Run, input map[string]any) (any, error) {
			return map[string]any{"n": 2 * input["n"].(float64)}, nil
		})
		twice := town.deploy("twice", forerun.Exec{Kind: "sequence", Components: []string{"/ns/double", "/ns/double"}})
		var callee *Invocation
		var stale string
		caller := town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
			s, ok, err := town.Speaker(run.Token, run.Activation)
			if !ok || err != nil || s.Namespace != "ns" || s.Subject != "ada" || s.Activation != run.Activation || s.Rights != forerun.MayInvoke {
				t.Errorf("the token speaks for %+v, %v, %v", s, ok, err)
			}
			if _, ok, err := town.Speaker(run.Token, ""); ok || forerun.KindOf(err) != forerun.Unauthorized {
				t.Errorf("the token is accepted from outside the sandbox: %v", err)
			}
			if _, ok, err := town.Speaker(run.Token+"x", run.Activation); ok || err != nil {
				t.Errorf("a wrong token passed: %v", err)
			}
			stale = run.Token
			callee = town.Invoke(Request{Namespace: s.Namespace, Subject: s.Subject, Action: twice, Input: json.RawMessage(`{"n":5}`), Cause: s.Activation, Blocking: true})
			<-callee.Done()
			return map[string]any{"got": callee.Record().Result}, nil
		})
		record := town.invoke(caller, `{}`)
		if string(record.Result) != `{"got":{"n":20}}` || callee.Record().Cause != record.ID {
			t.Errorf("%s; the callee's cause is %q", record.Result, callee.Record().Cause)
		}
		if len(town.written) != 2 || len(town.written[0]) != 3 {
			t.Errorf("the callee's records must be there when the caller goes on: %v", town.written)
		}
		if _, ok, _ := town.Speaker(stale, record.ID); ok {
			t.Error("the token outlives its activation")
		}
		late := town.Invoke(Request{Namespace: "ns", Action: double, Input: json.RawMessage(`{"n":1}`), Cause: record.ID, Blocking: true})
		<-late.Done()
		if late.Err() == nil || len(town.written) != 2 {
			t.Errorf("a call that arrives when its caller is over is carried out: %v", late.Err())
		}
	})
}

func TestAFunctionThatCallsItselfEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		depth := 0
		var recur *forerun.Action
		recur = town.function("recur", func(run *forerun.Run, _ map[string]any) (any, error) {
			depth++
			i := town.Invoke(Request{Namespace: "ns", Action: recur, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
			<-i.Done()
			return map[string]any{"below": i.Record().Result}, nil
		})
		record := town.invoke(recur, `{}`)
		if depth != maxCalls+1 || !strings.Contains(string(record.Result), "does one call itself?") {
			t.Errorf("ran %d deep: %.200s", depth, record.Result)
		}
	})
}

func TestCallerEndsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		slow := town.function("slow", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(time.Second)
			return map[string]any{}, nil
		})
		var callee *Invocation
		caller := town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
			callee = town.Invoke(Request{Namespace: "ns", Action: slow, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
			return map[string]any{}, nil
		})
		town.invoke(caller, `{}`)
		<-callee.Done()
		if callee.Record().Status != forerun.Success {
			t.Errorf("the callee ended with %s", callee.Record().Status)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.function("slow", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(time.Minute)
			return map[string]any{}, nil
		})
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/slow"}})
		request := Request{Namespace: "ns", Action: seq, Input: json.RawMessage(`{}`)}
		hasty := town.Invoke(request)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		town.Close(ctx)
		record := hasty.Record()
		if record.Status != forerun.InternalError || record.Timeline.Squashed.IsZero() || !strings.Contains(string(record.Result), "shut down") {
			t.Errorf("a hasty close left the record %s %s", record.Status, record.Result)
		}
		if len(town.squashed) != 1 || len(town.running) != 0 || len(town.tokens.holders) != 0 {
			t.Errorf("left: squashed %v, running %v, tokens %v", town.squashed, town.running, town.tokens.holders)
		}
		time.Sleep(time.Minute) // lets the squashed function's goroutine end
	})
}

// TestClosePatiently waits for what is under way, behind which nothing begins.
func TestClosePatiently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town, ran := newTown(t), 0
		slow := town.function("slow", func(*forerun.Run, map[string]any) (any, error) {
			ran++
			time.Sleep(time.Minute)
			return map[string]any{}, nil
		})
		request := Request{Namespace: "ns", Action: slow, Input: json.RawMessage(`{}`)}
		patient := town.Invoke(request)
		town.Close(t.Context())
		if patient.Record().Status != forerun.Success {
			t.Errorf("it ended with %s", patient.Record().Status)
		}
		late := town.Invoke(request)
		<-late.Done()
		if late.Err() == nil || late.Err().Error() != errClosed().Error() || ran != 1 {
			t.Errorf("what came after that: %v, %d ran", late.Err(), ran)
		}
		if err := late.Accept(t.Context()); forerun.KindOf(err) != forerun.Unavailable {
			t.Errorf("its client is told its id: %v", err)
		}
		if _, err := town.InvokeAccepted(request, func(*forerun.Activation) error { return errors.New("it was kept") }); forerun.KindOf(err) != forerun.Unavailable {
			t.Errorf("what is to be accepted after that: %v", err)
		}
	})
}

func TestAcceptedInvocationIsKeptUntilItsRecordIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		f := town.function("f", add("x", 1))
		i := town.Invoke(Request{Namespace: "ns", Action: f, Input: json.RawMessage(`{}`)})
		err := i.Accept(t.Context())
		town.mu.Lock()
		if err != nil || town.accepted[i.ID()].Action != f.Name {
			t.Errorf("accepted: %v, %v", town.accepted, err)
		}
		town.mu.Unlock()
		<-i.Done()
		synctest.Wait()
		if len(town.accepted) != 0 {
			t.Errorf("still accepted when its record is there: %v", town.accepted)
		}
		if err := i.Accept(t.Context()); err != nil || len(town.accepted) != 0 {
			t.Errorf("accepted after its end: %v, %v", town.accepted, err)
		}
		Interrupted(i.accepted)
		if i.accepted.Status != forerun.InternalError || annotated(i.accepted, "path") != `"ns/f"` {
			t.Errorf("an interrupted one ends as %+v", i.accepted)
		}
	})
}

// TestUndoneInvocationIsNotKept, not for a moment: a server that died then would end it with a record.
func TestUndoneInvocationIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		i := town.newInvocation(Request{Namespace: "ns", Action: town.function("f", add("x", 1)), Cause: "1", Blocking: true})
		told := make(chan error)
		go func() { told <- i.Accept(t.Context()) }()
		synctest.Wait()
		i.undo(errOver())
		if err := <-told; forerun.KindOf(err) != forerun.Forbidden || town.accepts > 0 {
			t.Errorf("it was kept %d times, and who waits for that is told %v", town.accepts, err)
		}
	})
}

// amnesiac are records that forget nothing before they are let.
type amnesiac struct {
	Records
	let chan struct{}
}

func (a *amnesiac) Forget(ctx context.Context, kept *forerun.Activation) error {
	<-a.let
	return a.Records.Forget(ctx, kept)
}

// TestForgettingIsWaitedForAtTheEnd, and by nobody else: there may be no room on the disk, and who ends an invocation may have an execution's lock.
func TestForgettingIsWaitedForAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		records := &amnesiac{town, make(chan struct{})}
		town.Controller.Records = records
		i := town.newInvocation(Request{Namespace: "ns", Action: town.function("f", add("x", 1))})
		if err := i.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
		var ended, closed atomic.Bool
		go func() {
			i.end(i.accepted, errOver())
			ended.Store(true)
			town.Close(t.Context())
			closed.Store(true)
		}()
		synctest.Wait()
		if !ended.Load() || closed.Load() {
			t.Errorf("who ends it waits: %v; the server's end does: %v", !ended.Load(), !closed.Load())
		}
		close(records.let)
		synctest.Wait()
		if !closed.Load() || town.isAccepted(i.ID()) {
			t.Errorf("the server has ended: %v; it is still accepted: %v", closed.Load(), town.isAccepted(i.ID()))
		}
	})
}

// TestLongInvocationIsKept although nobody was told its id.
func TestLongInvocationIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		i := town.Invoke(Request{Namespace: "ns", Blocking: true, Input: json.RawMessage(`{}`), Action: town.function("slow", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(2 * noted)
			return map[string]any{}, nil
		})})
		kept := func() bool {
			synctest.Wait()
			town.mu.Lock()
			defer town.mu.Unlock()
			return town.accepted[i.ID()] != nil
		}
		time.Sleep(noted - time.Millisecond)
		if kept() {
			t.Error("a short one is kept")
		}
		time.Sleep(2 * time.Millisecond)
		if !kept() {
			t.Error("a long one is not")
		}
		<-i.Done()
		if kept() {
			t.Error("it is kept beside its record")
		}
	})
}

func TestRecordsThatCannotBeWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		town.putError = fmt.Errorf("disk full")
		i := town.Invoke(Request{Namespace: "ns", Action: town.function("f", add("x", 1)), Input: json.RawMessage(`{}`)})
		if err := i.Accept(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-i.Done()
		synctest.Wait()
		if i.Err() == nil {
			t.Error("nobody hears that the record is not written")
		}
		if !town.isAccepted(i.ID()) {
			t.Error("the next server does not hear of it, either")
		}
	})
}
