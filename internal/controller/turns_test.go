package controller

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"forerun.dev/forerun/internal/clock"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/trace"
)

// last is the record of an action that was written last.
func (t *town) last(name string) *forerun.Activation {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range slices.Backward(slices.Concat(t.written...)) {
		if r.Action.Entity == name {
			return r
		}
	}
	return nil
}

// TestDurationsOfCallers: nor counts what a function called ahead of its turn waited for that, if that is what kept the caller: what it called
// asked for something, or might not begin, or could not be called while another call was under way. The record says how long the last two took.
func TestDurationsOfCallers(t *testing.T) {
	for name, c := range map[string]struct {
		asks  bool // c asks for something that waits for its turn
		alone bool // c does not run ahead
		calls []string
		held  string // of the caller, why
	}{
		"what it called asked":        {asks: true, calls: []string{"c"}},
		"what it called asked behind": {asks: true, calls: []string{"around"}},
		"what it called began late":   {alone: true, calls: []string{"c"}, held: "what it called waits for its turn"},
		"it called another":           {alone: true, calls: []string{"c", "d"}, held: "waits for its turn"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var w *waiting
				call := func(run *forerun.Run, names []string) (any, error) {
					var calls []*Invocation
					for _, name := range names {
						calls = append(calls, w.Invoke(Request{Namespace: "ns", Subject: "ada", Action: w.actions["/ns/"+name], Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true}))
					}
					for _, call := range calls {
						<-call.Done()
					}
					return map[string]any{}, nil
				}
				w = newWaiting(t, func(run *forerun.Run) (any, error) { return call(run, c.calls) })
				w.function("around", func(run *forerun.Run, _ map[string]any) (any, error) { return call(run, []string{"c"}) })
				w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
					if !c.asks {
						return map[string]any{}, nil
					}
					return map[string]any{}, w.Hold(context.Background(), run.Activation, nil)
				})
				w.function("d", add("d", 1))
				if c.alone {
					w.actions["/ns/c"].Annotations = []forerun.KeyValue{{Key: "non-speculative", Value: json.RawMessage("true")}}
				}
				time.AfterFunc(time.Second, func() { close(w.goOn) })
				w.twice()
				synctest.Wait()
				b := w.last("b")
				if !b.Timeline.Speculative || b.End.Sub(b.Start) < time.Second/2 || b.Duration > 100*time.Millisecond {
					t.Errorf("from its beginning to its end it was %v, and took %v", b.End.Sub(b.Start), b.Duration)
				}
				if seq := w.last("seq"); seq.Duration > 1100*time.Millisecond {
					t.Errorf("the sequence took %v", seq.Duration)
				}
				if held := b.Timeline.Held > time.Second/2; held != (c.held != "") || !strings.Contains(trace.Sentence(b.Timeline.Stalled), c.held) {
					t.Errorf("it was held for %v: %v", b.Timeline.Held, b.Timeline.Stalled)
				}
				if around := w.last("around"); around != nil && around.Duration > 100*time.Millisecond {
					t.Errorf("what it called took %v", around.Duration)
				}
			})
		})
	}
}

// TestDurationsOfCallersInTurn: the wait of an expected call before its caller asked for it does not shorten the caller's duration.
func TestDurationsOfCallersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *waiting
		w = newWaiting(t, func(run *forerun.Run) (any, error) {
			if w.ahead.Load() {
				<-w.goOn
				if err := w.Hold(context.Background(), run.Activation, nil); err != nil {
					return nil, err
				}
				time.Sleep(time.Second)
			}
			w.call(run, w.actions["/ns/c"], 0)
			return map[string]any{}, nil
		})
		w.function("c", func(run *forerun.Run, _ map[string]any) (any, error) {
			return map[string]any{}, w.Hold(context.Background(), run.Activation, nil)
		})
		time.AfterFunc(time.Second, func() { close(w.goOn) })
		w.twice()
		synctest.Wait()
		if b := w.last("b"); b.Duration < 1900*time.Millisecond {
			t.Errorf("it took %v", b.Duration)
		}
	})
}

// TestAnsweredAheadIsDated: a client that is answered before the record hears of the times that the record has, whatever the machine's clock says.
func TestAnsweredAheadIsDated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *waiting
		var told *forerun.Activation
		w = newWaiting(t, func(run *forerun.Run) (any, error) {
			called := w.call(run, w.actions["/ns/c"], 0)
			if w.first() {
				told = called.Record()
				close(w.goOn)
			}
			return map[string]any{}, nil
		})
		w.Clock = clock.New(func() time.Time { return time.Now().Add(-time.Hour) })
		w.function("c", add("c", 1))
		w.twice()
		synctest.Wait()
		written := w.last("c")
		if told.ID != written.ID || told.Start.Sub(written.Start).Abs() > time.Second || told.End.Sub(written.End).Abs() > time.Second {
			t.Errorf("%s began at %v, and %s is told to have begun at %v", written.ID, written.Start, told.ID, told.Start)
		}
	})
}
