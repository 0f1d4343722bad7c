package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
)

// crowd is how many executions wait in the tests.
const crowd = 100

// queue is a town with a function whose first execution waits for a word, while others arrive.
type queue struct {
	*town
	f     *forerun.Action
	began chan *forerun.Run // the first has
	goOn  chan struct{}
	runs  func() int64
}

// newQueue makes a queue at a function that does something once it may go on, and then reads a record.
func newQueue(t *testing.T, mode speculate.Mode, does func(*town, *forerun.Run) (any, error)) *queue {
	q := &queue{town: newCacheTown(t, mode), began: make(chan *forerun.Run, 1), goOn: make(chan struct{})}
	var later atomic.Bool
	f, runs := q.counted("f", func(run *forerun.Run, _ map[string]any) (any, error) {
		if !later.Swap(true) {
			q.began <- run
			<-q.goOn
		}
		if does != nil {
			if result, err := does(q.town, run); result != nil || err != nil {
				return result, err
			}
		}
		return q.reading("k")(run, nil)
	})
	q.f, q.runs = f, runs.Load
	return q
}

// arrive begins the first execution and, once its function runs, a crowd of equal ones. It returns when these wait.
func (q *queue) arrive(a *forerun.Action) (first *Invocation, others []*Invocation) {
	r := Request{Namespace: "ns", Subject: "ada", Action: a, Input: json.RawMessage(`{}`), Blocking: true}
	first = q.Invoke(r)
	<-q.began
	for range crowd {
		others = append(others, q.Invoke(r))
	}
	q.waiting(crowd)
	return first, others
}

// waiting returns once so many executions wait.
func (q *queue) waiting(n int64) {
	for q.Waiting() != n {
		time.Sleep(time.Millisecond)
	}
}

// outcomes counts how executions went.
func outcomes(list []*Invocation) map[forerun.CacheOutcome]int {
	n := make(map[forerun.CacheOutcome]int)
	for _, i := range list {
		<-i.Done()
		if c := i.Record().Cached; c != nil {
			n[c.Outcome]++
		}
	}
	return n
}

// TestEqualExecutionsWait: in every mode equal executions wait for the first, and its row stands for each: of an action, a step of a
// sequence, and a callee. Each has an id and a record of its own.
func TestEqualExecutionsWait(t *testing.T) {
	for _, mode := range everyMode {
		for what, around := range map[string]func(*queue) *forerun.Action{
			"an action": func(q *queue) *forerun.Action { return q.f },
			"a step":    func(q *queue) *forerun.Action { return q.second() },
			"a callee":  func(q *queue) *forerun.Action { return q.caller() },
		} {
			t.Run(fmt.Sprint(mode, " ", what), func(t *testing.T) {
				t.Parallel()
				q := newQueue(t, mode, nil)
				first, others := q.arrive(around(q))
				close(q.goOn)
				outcomes(append(others, first))
				q.waiting(0)
				if n := q.runs(); n != 1 {
					t.Errorf("the function ran %d times", n)
				}
				ids := map[forerun.ActivationID]bool{first.ID(): true}
				for _, i := range others {
					if ids[i.ID()] || i.Record().ID != i.ID() || string(i.Record().Result) != string(first.Record().Result) {
						t.Fatalf("%+v", i.Record())
					}
					ids[i.ID()] = true
				}
			})
		}
	}
}

// caller is a function without an annotation that calls the queue's.
func (q *queue) caller() *forerun.Action {
	return q.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) { return q.called(run, "f").Result, nil })
}

// second is a sequence in which the queue's function is the second step.
func (q *queue) second() *forerun.Action {
	q.function("before", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil })
	return q.deploy("second", forerun.Exec{Kind: "sequence", Components: []string{"/ns/before", "/ns/f"}})
}

// TestWaitersLookForThemselves: a record that is written after the first has read it has every waiter execute, at once.
func TestWaitersLookForThemselves(t *testing.T) {
	for _, mode := range everyMode {
		q := newQueue(t, mode, nil)
		read, written := make(chan struct{}), make(chan struct{})
		var later atomic.Bool
		before := q.functions["f"]
		q.functions["f"] = func(run *forerun.Run, input map[string]any) (any, error) {
			result, err := before(run, input)
			if !later.Swap(true) {
				close(read)
				<-written
			}
			return result, err
		}
		first, others := q.arrive(q.f)
		close(q.goOn)
		<-read
		q.write(t, "SET", "k", "new")
		close(written)
		if n := outcomes(others); n[forerun.CacheHit] > 0 && q.runs() == 1 {
			t.Errorf("%v: %v", mode, n)
		}
		<-first.Done()
		for _, i := range others {
			if string(i.Record().Result) != `{"is":"new"}` {
				t.Fatalf("%v: a waiter was told %s", mode, i.Record().Result)
			}
		}
	}
}

// TestFirstsOfNoUse: a first execution that fails, writes or reaches the outside has all others execute, and none waits for another one of
// that action then.
func TestFirstsOfNoUse(t *testing.T) {
	for what, does := range map[string]func(*town, *forerun.Run) (any, error){
		"fails":   func(*town, *forerun.Run) (any, error) { return map[string]any{"error": "no"}, nil },
		"crashes": func(*town, *forerun.Run) (any, error) { return nil, forerun.Errorf(forerun.Internal, "", "crash") },
		"writes": func(town *town, run *forerun.Run) (any, error) {
			_, err := town.do(run, "INCR", "count")
			return nil, err
		},
		"reaches": func(town *town, _ *forerun.Run) (any, error) { town.reached.Store(true); return nil, nil },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t, speculate.Off, does)
			first, others := q.arrive(q.f)
			close(q.goOn)
			outcomes(append(others, first))
			if n := q.runs(); n != crowd+1 {
				t.Errorf("it ran %d times", n)
			}
			var more []*Invocation
			for range 3 {
				more = append(more, q.Invoke(Request{Namespace: "ns", Subject: "ada", Action: q.f, Input: json.RawMessage(`{"n":1}`), Blocking: true}))
			}
			if outcomes(more); q.runs() != crowd+4 {
				t.Errorf("then it ran %d times for 3", q.runs()-crowd-1)
			}
			if n := q.Waiting(); n != 0 {
				t.Errorf("%d wait", n)
			}
		})
	}
}

// TestFirstThatWrites: others do not wait for the end of a first execution that has written.
func TestFirstThatWrites(t *testing.T) {
	end := make(chan struct{})
	var later atomic.Bool
	q := newQueue(t, speculate.Off, func(town *town, run *forerun.Run) (any, error) {
		first := !later.Swap(true) // before it writes: the others may begin then, and be sooner here
		_, err := town.do(run, "INCR", "count")
		if first {
			<-end
		}
		return nil, err
	})
	first, others := q.arrive(q.f)
	close(q.goOn)
	outcomes(others)
	select {
	case <-first.Done():
		t.Error("the first has ended")
	default:
	}
	close(end)
	<-first.Done()
}

// TestNoneWaitsForItself: functions that call themselves, or each other, on the same input do not wait for each other for ever.
func TestNoneWaitsForItself(t *testing.T) {
	for _, mode := range everyMode {
		town := newCacheTown(t, mode)
		began := make(chan string, 2)
		calls := func(name, other string) func(*forerun.Run, map[string]any) (any, error) {
			var later atomic.Bool
			return func(run *forerun.Run, _ map[string]any) (any, error) {
				if !later.Swap(true) {
					began <- name
					for len(began) < 2 {
						time.Sleep(time.Millisecond)
					}
					town.called(run, other)
				}
				return map[string]any{}, nil
			}
		}
		var list []*Invocation
		for name, other := range map[string]string{"f": "g", "g": "f"} {
			a, _ := town.counted(name, calls(name, other))
			list = append(list, town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: a, Input: json.RawMessage(`{}`), Blocking: true}))
		}
		outcomes(list)
	}
}

// TestGoneWhileOthersWait: a crowd that waits ends with its tenant, and with the server, each with a record.
func TestGoneWhileOthersWait(t *testing.T) {
	for what, end := range map[string]func(*queue){
		"the tenant": func(q *queue) { q.EndNamespace(t.Context(), "ns", "gone") },
		"the server": func(q *queue) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel() // it waits for nothing
			q.Close(ctx)
		},
	} {
		t.Run(what, func(t *testing.T) {
			q := newQueue(t, speculate.Off, nil)
			first, others := q.arrive(q.f)
			end(q)
			for _, i := range append(others, first) {
				<-i.Done()
				if r := i.Record(); r.ID != i.ID() || r.Status != forerun.InternalError && i == first { // others may have been executed before
					t.Errorf("%+v", r)
				}
			}
			if n := q.Waiting(); n != 0 {
				t.Errorf("%d wait", n)
			}
			close(q.goOn)
		})
	}
}

// TestUpdatedWhileOthersWait: invocations are answered if the code that they wait for is updated or deleted. Later ones find the new code.
func TestUpdatedWhileOthersWait(t *testing.T) {
	q := newQueue(t, speculate.Off, nil)
	first, others := q.arrive(q.f)
	q.update("f")
	later := q.Invoke(Request{Namespace: "ns", Subject: "ada", Action: q.actions["/ns/f"], Input: json.RawMessage(`{}`), Blocking: true})
	<-later.Done()
	if c := later.Record().Cached; c.Outcome != forerun.CacheMiss || q.Waiting() != crowd {
		t.Errorf("%+v, while %d wait", c, q.Waiting())
	}
	close(q.goOn)
	outcomes(append(others, first))
}

// TestWaitersHaveLimits: a waiter is executed once it has waited for as long as its action may take, and one whose client has left goes on
// waiting.
func TestWaitersHaveLimits(t *testing.T) {
	q := newQueue(t, speculate.Off, nil)
	q.f.Limits.Timeout = 50
	r := Request{Namespace: "ns", Subject: "ada", Action: q.f, Input: json.RawMessage(`{}`), Blocking: true}
	first := q.Invoke(r)
	<-q.began
	var others []*Invocation
	for range 3 {
		i := q.Invoke(r)
		i.Leave()
		others = append(others, i)
	}
	outcomes(others)
	if n := q.runs(); n < 2 {
		t.Errorf("it ran %d times", n)
	}
	close(q.goOn)
	<-first.Done()
}
