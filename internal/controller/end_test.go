package controller

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestEndNamespace ends what runs for one namespace, a sequence and a function that waits for another, and nothing else.
func TestEndNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		slow := town.function("slow", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(time.Hour)
			return map[string]any{}, nil
		})
		waiting := town.function("waiting", func(run *forerun.Run, _ map[string]any) (any, error) {
			<-town.Invoke(Request{Namespace: run.Namespace, Cause: run.Activation, Action: slow, Input: json.RawMessage(`{}`), Blocking: true}).Done()
			return map[string]any{}, nil
		})
		line := town.deploy("line", forerun.Exec{Kind: "sequence", Components: []string{"/ns/slow", "/ns/slow"}})
		var landed atomic.Int32
		begin := func(namespace string, a *forerun.Action) *Invocation {
			return town.Invoke(Request{Namespace: namespace, Action: a, Input: json.RawMessage(`{}`), Ended: func() { landed.Add(1) }})
		}
		gone := []*Invocation{begin("ada", slow), begin("ada", waiting), begin("ada", line)}
		kept := begin("bob", slow)
		time.Sleep(time.Second)
		town.EndNamespace(t.Context(), "ada", "The tenant was deleted.")
		for _, i := range gone {
			select {
			case <-i.Done():
				if r := i.Record(); r.Status != forerun.InternalError || string(r.Result) != `{"error":"The tenant was deleted."}` {
					t.Errorf("%s ended with %s", r.Action, r.Result)
				}
			default:
				t.Error("an invocation has not ended")
			}
		}
		if landed.Load() != 3 {
			t.Errorf("%d invocations were said to have ended, not 3", landed.Load())
		}
		<-kept.Done()
		if kept.Record().Status != forerun.Success {
			t.Errorf("another tenant's ended with %s", kept.Record().Result)
		}
		time.Sleep(time.Hour) // until the functions that were killed are gone
	})
}

func TestInvokeAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		town := newTown(t)
		ran := 0
		a := town.function("a", func(*forerun.Run, map[string]any) (any, error) {
			ran++
			return map[string]any{}, nil
		})
		r := Request{Namespace: "ns", Action: a, Input: json.RawMessage(`{}`)}
		no := errors.New("no")
		if i, err := town.InvokeAccepted(r, func(*forerun.Activation) error { return no }); i != nil || !errors.Is(err, no) {
			t.Errorf("what is not accepted: %v, %v", i, err)
		}
		var told *forerun.Activation
		i, err := town.InvokeAccepted(r, func(accepted *forerun.Activation) error {
			told = accepted
			return town.Accept(t.Context(), accepted)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := i.Accept(t.Context()); err != nil || told.ID != i.ID() || told.Action != a.Name {
			t.Errorf("accepted %+v, %v", told, err)
		}
		<-i.Done()
		synctest.Wait()
		if ran != 1 || len(town.accepted) != 0 {
			t.Errorf("it ran %d times, and %d are still accepted", ran, len(town.accepted))
		}
	})
}

// TestClockIsSet: records and their ids stay in order when somebody sets the machine's clock, and their durations are true.
func TestClockIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var off atomic.Int64
		town := newTown(t)
		town.Clock = clock.New(func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
		f := town.function("f", func(*forerun.Run, map[string]any) (any, error) {
			time.Sleep(time.Second)
			return map[string]any{}, nil
		})
		var last *forerun.Activation
		for _, jump := range []time.Duration{0, -time.Hour, 365 * 24 * time.Hour, -2 * 365 * 24 * time.Hour} {
			off.Add(int64(jump))
			r := town.invoke(f, `{}`)
			if took := r.End.Sub(r.Start); r.Duration != took || took.Round(10*time.Millisecond) != time.Second {
				t.Errorf("after %v one took %v, from beginning to end %v", jump, r.Duration, took)
			}
			if last != nil && (r.ID <= last.ID || r.Start.Before(last.End.Add(-time.Second/4)) || r.Start.Sub(last.Start) > 2*time.Second) {
				t.Errorf("after %v %s of %v follows %s of %v", jump, r.ID, r.Start, last.ID, last.Start)
			}
			last = r
		}
	})
}

// unread is a store that does not tell what is in it before it is told to.
type unread struct {
	state.Store
	asked, answer chan struct{}
}

func (u *unread) Versions(ctx context.Context, keys ...forerun.Key) ([]state.Expect, error) {
	close(u.asked)
	<-u.answer
	return u.Store.Versions(ctx, keys...)
}

// TestGivenUpBeforeAnythingRan: a speculative invocation that is given up ends with a record even if nothing of it has run in its turn. That
// holds while it begins a part of itself as an invocation, and while the controller looks whether its first function is to be executed.
func TestGivenUpBeforeAnythingRan(t *testing.T) {
	for name, prepare := range map[string]func(town *town, asked, answer chan struct{}) *forerun.Action{
		"it detaches": func(town *town, asked, answer chan struct{}) *forerun.Action {
			town.Admit = func(context.Context, string) (func(), error) {
				close(asked)
				<-answer
				return func() {}, nil
			}
			return town.apart()
		},
		"its first function is checked": func(town *town, asked, answer chan struct{}) *forerun.Action {
			inner := town.function("inner", town.reading("k"))
			outer := town.function("outer", func(run *forerun.Run, _ map[string]any) (any, error) {
				<-town.Invoke(Request{Namespace: "ns", Action: inner, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true}).Done()
				return map[string]any{}, nil
			})
			outer.Annotations = []forerun.KeyValue{{Key: "pure-function", Value: json.RawMessage("true")}}
			inner.Annotations = outer.Annotations
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/outer"}})
			town.invokeAhead(seq, `{}`)
			town.State = &unread{Store: town.State, asked: asked, answer: answer}
			return seq
		},
	} {
		t.Run(name, func(t *testing.T) {
			town, asked, answer, ended := newAheadTown(t), make(chan struct{}), make(chan struct{}), make(chan struct{})
			i := town.Invoke(Request{Namespace: "ns", Action: prepare(town, asked, answer), Input: json.RawMessage(`{}`)})
			<-asked
			go func() {
				defer close(ended)
				town.EndNamespace(t.Context(), "ns", "It was deleted.")
			}()
			select {
			case <-i.Done():
				if got := string(i.Record().Result); got != `{"error":"It was deleted."}` {
					t.Errorf("it ended with %s", got)
				}
			case <-time.After(2 * time.Minute):
				t.Error("it has not ended")
			}
			close(answer)
			<-ended
		})
	}
}

// TestEndNamespaceWaitsForWhatBegins: an invocation that is just being accepted, or of which somebody has entered who may begin it yet, begins
// then, and is ended like all others.
func TestEndNamespaceWaitsForWhatBegins(t *testing.T) {
	for name, begin := range map[string]func(c *Controller, r Request, later <-chan struct{}) *Invocation{
		"accepted": func(c *Controller, r Request, later <-chan struct{}) *Invocation {
			i, _ := c.InvokeAccepted(r, func(*forerun.Activation) error {
				<-later
				return nil
			})
			return i
		},
		"entered": func(c *Controller, r Request, later <-chan struct{}) *Invocation {
			defer c.Enter(r.Namespace)()
			<-later
			return c.Invoke(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { endsWhatBegins(t, begin) })
		})
	}
}

func endsWhatBegins(t *testing.T, begin func(*Controller, Request, <-chan struct{}) *Invocation) {
	town, later := newTown(t), make(chan struct{})
	slow := town.function("slow", func(*forerun.Run, map[string]any) (any, error) {
		time.Sleep(time.Hour)
		return map[string]any{}, nil
	})
	begun, ended := make(chan *Invocation, 1), make(chan struct{})
	go func() {
		begun <- begin(town.Controller, Request{Namespace: "ns", Action: slow, Input: json.RawMessage(`{}`)}, later)
	}()
	synctest.Wait()
	go func() {
		defer close(ended)
		town.EndNamespace(t.Context(), "ns", "The tenant was deleted.")
	}()
	synctest.Wait()
	select {
	case <-ended:
		t.Error("it has ended, and something is to begin")
	default:
	}
	close(later)
	i := <-begun
	<-ended
	select {
	case <-i.Done():
		if r := i.Record(); string(r.Result) != `{"error":"The tenant was deleted."}` {
			t.Errorf("it ended with %s", r.Result)
		}
	default:
		t.Error("it runs still")
	}
	time.Sleep(time.Hour) // until the function that was killed is gone
}

// TestEndNamespaceWaitsForTheStore: writes on their way to the store for a namespace come before the end of the namespace, whether or not the client
// has its answer: a promotion, of which some may be applied, and records.
func TestEndNamespaceWaitsForTheStore(t *testing.T) {
	w, i, store := newPromoting(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.EndNamespace(t.Context(), "ns", "It was deleted.")
	}()
	<-i.Done()
	select {
	case <-w.busy.over("ns"):
		t.Error("nothing is said to be on its way")
	case <-ended:
		t.Error("it has ended, and a promotion is on its way")
	default:
	}
	close(store.answer)
	<-ended
	if got := w.others(t, "GET k"); string(got.Text) != "2" {
		t.Errorf("it has ended when %q was counted", got.Text)
	}
}

func TestBusy(t *testing.T) {
	var b busy
	isOver := func(namespace string) bool {
		select {
		case <-b.over(namespace):
			return true
		default:
			return false
		}
	}
	b.begin("ada")
	b.begin("ada")
	over := b.over("ada")
	if b.end("ada"); isOver("ada") || isOver(everywhere) || !isOver("bob") {
		t.Error("one of two is on its way, and nothing for another")
	}
	b.end("ada")
	<-over
	if !isOver("ada") || !isOver(everywhere) || len(b.of) != 0 {
		t.Error("nothing is on its way")
	}
}
