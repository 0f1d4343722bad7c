package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
)

// verdicts are what rehearsals have shown.
type verdicts struct{ agreed, differed, open uint64 }

// newVerifyTown is a cache town with free processors, so that hits are executed again.
func newVerifyTown(t *testing.T, mode speculate.Mode) *town {
	town := newCacheTown(t, mode)
	town.Load = func(string) forerun.Load { return forerun.Load{} }
	return town
}

// mustShow waits until as many rehearsals are over as are expected, and compares what they have shown.
func (t *town) mustShow(tb testing.TB, want verdicts) {
	tb.Helper()
	for {
		var got verdicts
		got.agreed, got.differed, got.open = t.Verifications()
		if sum := got.agreed + got.differed + got.open; sum >= want.agreed+want.differed+want.open && !t.verified.underWay.Load() {
			if got != want {
				tb.Errorf("rehearsals have shown %+v, not %+v", got, want)
			}
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// TestVerification: the first rows of an action are executed again behind a hit, of the others a share. Nothing of that is left.
func TestVerification(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newVerifyTown(t, mode)
			callee := town.function("callee", town.reading("k"))
			f, runs := town.counted("f", func(run *forerun.Run, input map[string]any) (any, error) {
				return map[string]any{"n": input["n"], "is": town.called(run, "callee").Result}, nil
			})
			_ = callee
			annotate(f, annotation.CacheVerify, "1e-9")
			input := func(n int) func(*Request) {
				return func(r *Request) { r.Input = json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)) }
			}
			records := 0
			for n := range 4 {
				town.ask(f, input(n))
				mustBe(t, town.ask(f, input(n)), forerun.CacheHit, forerun.ReasonReadsUnchanged)
				town.mustShow(t, verdicts{agreed: uint64(min(n+1, firstVerified))})
				records += 3
			}
			for len(town.calls()) > 0 { // the test hangs if a rehearsal does not end
				time.Sleep(time.Millisecond)
			}
			town.mu.Lock()
			defer town.mu.Unlock()
			written := 0
			for _, batch := range town.written {
				written += len(batch)
			}
			if runs.Load() != 4+firstVerified || written != records {
				t.Errorf("after %d executions there are %d records of %d", runs.Load(), written, records)
			}
			if uses := town.CacheUses(t.Context(), "ns"); uses[len(uses)-1].Verified != firstVerified {
				t.Errorf("%+v", uses[len(uses)-1])
			}
		})
	}
}

// calls are the invocations that have not ended.
func (t *town) calls() map[*execution]bool {
	return t.executions(func(*execution) bool { return true })
}

// TestBrokenPromises: an action whose execution behind a hit gives another output, or reads other records, is suspended.
func TestBrokenPromises(t *testing.T) {
	for name, c := range map[string]struct {
		f   func(town *town, n int64, run *forerun.Run) (any, error)
		why forerun.Reason
	}{
		"another output": {
			func(_ *town, n int64, _ *forerun.Run) (any, error) { return map[string]any{"a": 1, "b": n}, nil },
			forerun.Reason{Code: forerun.ReasonSuspended, Record: "b"},
		},
		"another record": {
			func(town *town, n int64, run *forerun.Run) (any, error) {
				if n > 1 {
					_, _ = town.do(run, "GET", "other")
				}
				return town.reading("k")(run, nil)
			},
			forerun.Reason{Code: forerun.ReasonSuspendedRead, Record: "other"},
		},
	} {
		for _, mode := range everyMode {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				town := newVerifyTown(t, mode)
				var n atomic.Int64
				f, _ := town.counted("f", func(run *forerun.Run, _ map[string]any) (any, error) { return c.f(town, n.Add(1), run) })
				town.ask(f)
				town.ask(f)
				town.mustShow(t, verdicts{differed: 1})
				record := town.ask(f)
				mustBe(t, record, forerun.CacheOff, c.why.Code)
				if why := record.Cached.Why; why == nil || why.Record != c.why.Record {
					t.Errorf("it is suspended because of %+v", why)
				}
			})
		}
	}
}

// TestOpenVerifications: an execution behind a hit shows nothing if it has an effect, asks for something that waits for its turn, or fails. Nor does
// it if a record that the result rests on was written meanwhile. The effect is not carried out.
func TestOpenVerifications(t *testing.T) {
	for name, again := range map[string]func(town *town, run *forerun.Run) error{
		"writes": func(town *town, run *forerun.Run) error {
			_, err := town.do(run, "INCR", "count")
			return err
		},
		"asks": func(town *town, run *forerun.Run) error {
			return town.Hold(t.Context(), run.Activation, nil)
		},
		"fails": func(*town, *forerun.Run) error { return fmt.Errorf("crashed") },
		"is overtaken": func(town *town, _ *forerun.Run) error {
			town.write(t, "SET", "k", "new")
			return nil
		},
	} {
		for _, mode := range everyMode {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				town := newVerifyTown(t, mode)
				var n atomic.Int64
				f, _ := town.counted("f", func(run *forerun.Run, input map[string]any) (any, error) {
					if n.Add(1) > 1 {
						if err := again(town, run); err != nil {
							return nil, err
						}
					}
					return town.reading("k")(run, input)
				})
				town.ask(f)
				town.ask(f)
				town.mustShow(t, verdicts{open: 1})
				if x, err := town.Explain(t.Context(), "ns", f, json.RawMessage(`{}`)); err != nil || x.Outcome == forerun.CacheOff {
					t.Errorf("%+v, %v", x, err)
				}
				if reply, _, err := town.State.Do(t.Context(), state.Command{Space: "ns", Args: [][]byte{[]byte("EXISTS"), []byte("count")}}); err != nil || reply.Int != 0 {
					t.Errorf("an effect is left: %+v, %v", reply, err)
				}
			})
		}
	}
}

// TestNoVerification: no hit is executed again on busy processors, nor if the action says so, nor if it may change in time.
func TestNoVerification(t *testing.T) {
	town := newVerifyTown(t, speculate.All)
	never, neverRuns := town.counted("never", town.reading("k"))
	annotate(never, annotation.CacheVerify, "0")
	lasting, lastingRuns := town.counted("lasting", town.reading("k"))
	annotate(lasting, annotation.CacheTTL, `"1h"`)
	annotate(lasting, annotation.CacheVerify, "1")
	for range 3 {
		town.ask(never)
		town.ask(lasting)
	}
	busy, busyRuns := town.counted("busy", town.reading("k"))
	annotate(busy, annotation.CacheVerify, "1")
	for _, load := range []forerun.Load{{Busy: 0.9}, {Waiting: true}} {
		town.Load = func(string) forerun.Load { return load }
		town.ask(busy)
		town.ask(busy)
	}
	if got := [3]int64{neverRuns.Load(), lastingRuns.Load(), busyRuns.Load()}; got != [3]int64{1, 1, 1} || town.verified.underWay.Load() {
		t.Errorf("they ran %v times", got)
	}
}

// TestCloseWaitsForNoRehearsal: Close gives up a rehearsal that hangs, and while it waits for an invocation no other begins.
func TestCloseWaitsForNoRehearsal(t *testing.T) {
	town := newVerifyTown(t, speculate.All)
	began, goOn := make(chan struct{}), make(chan struct{})
	var n atomic.Int64
	hangs, _ := town.counted("hangs", func(*forerun.Run, map[string]any) (any, error) {
		if n.Add(1) > 1 {
			close(began)
			<-goOn
		}
		return map[string]any{}, nil
	})
	hangs.Limits.Timeout = int(time.Hour.Milliseconds())
	slow, _ := town.counted("slow", func(*forerun.Run, map[string]any) (any, error) {
		<-goOn
		return map[string]any{}, nil
	})
	late, lateRuns := town.counted("late", town.reading("k"))
	town.ask(late)
	town.ask(hangs)
	town.ask(hangs)
	<-began
	patient := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: slow, Input: json.RawMessage(`{}`), Blocking: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		town.Close(ctx)
	}()
	for ctx.Err() == nil && (!town.closing.Load() || town.verified.underWay.Load()) {
		time.Sleep(time.Millisecond)
	}
	if town.verified.underWay.Load() {
		t.Error("the rehearsal goes on")
	}
	mustBe(t, town.ask(late), forerun.CacheHit, forerun.ReasonReadsUnchanged)
	if town.verified.underWay.Load() || lateRuns.Load() != 1 {
		t.Error("another rehearsal has begun")
	}
	close(goOn)
	<-closed
	if status := patient.Record().Status; ctx.Err() != nil || status != forerun.Success {
		t.Errorf("what was under way ended with %s, %v", status, ctx.Err())
	}
}

// TestKeptProcesses: a result of a process that had served others stands once a new process has given the same. If that reads what the other had
// remembered, the action is suspended.
func TestKeptProcesses(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode) // it does not tell that the processors are free
			town.kept.Store(true)
			good, runs := town.counted("good", town.reading("k"))
			town.ask(good)
			mustBe(t, town.ask(good), forerun.CacheMiss, forerun.ReasonUnverified)
			town.mustShow(t, verdicts{agreed: 1})
			mustBe(t, town.ask(good), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			if runs.Load() != 3 {
				t.Errorf("it ran %d times", runs.Load())
			}
			promised, _ := town.counted("promised", town.reading("k"))
			annotate(promised, annotation.CacheVerify, "0")
			town.ask(promised)
			mustBe(t, town.ask(promised), forerun.CacheHit, forerun.ReasonReadsUnchanged)

			bad, _ := town.counted("bad", func(run *forerun.Run, input map[string]any) (any, error) {
				if !run.Fresh {
					return map[string]any{"is": ""}, nil
				}
				return town.reading("k")(run, input)
			})
			town.ask(bad)
			town.ask(bad)
			town.mustShow(t, verdicts{agreed: 1, differed: 1})
			mustBe(t, town.ask(bad), forerun.CacheOff, forerun.ReasonSuspendedRead)

			open, openRuns := town.counted("open", func(run *forerun.Run, input map[string]any) (any, error) {
				if run.Fresh {
					return nil, fmt.Errorf("crashed")
				}
				return town.reading("k")(run, input)
			})
			town.ask(open)
			town.ask(open)
			town.mustShow(t, verdicts{agreed: 1, differed: 1, open: 1})
			mustBe(t, town.ask(open), forerun.CacheMiss, forerun.ReasonUnverifiable)
			if town.verified.underWay.Load() || openRuns.Load() != 4 {
				t.Errorf("after a rehearsal that has shown nothing there is another: it ran %d times", openRuns.Load())
			}
		})
	}
}

// TestKeptProcessesRememberCallees: a result that a process remembers of a callee ends as the callee's does, and with the callee's code.
func TestKeptProcessesRememberCallees(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			town.kept.Store(true)
			callee, _ := town.counted("callee", func(run *forerun.Run, _ map[string]any) (any, error) {
				return map[string]any{"version": run.Action.Version}, nil
			})
			annotate(callee, annotation.CacheTTL, `"1h"`)
			remembered := json.RawMessage(fmt.Sprintf(`{"version":%q}`, callee.Version))
			f, _ := town.counted("f", func(run *forerun.Run, _ map[string]any) (any, error) {
				if !run.Fresh {
					return map[string]any{"is": remembered}, nil
				}
				return map[string]any{"is": town.called(run, "callee").Result}, nil
			})
			town.ask(f)
			town.ask(f)
			town.mustShow(t, verdicts{agreed: 1})
			hit := town.ask(f)
			mustBe(t, hit, forerun.CacheHit, forerun.ReasonPure)
			x, err := town.Explain(t.Context(), "ns", f, json.RawMessage(`{}`))
			if err != nil || x.Row.Until.IsZero() || x.Row.Since.IsZero() || len(x.Row.Callees) != 1 || hit.Cached.Age == 0 {
				t.Errorf("the row is %+v, %v", x.Row, err)
			}
			another := *callee
			another.Version, another.Exec.Code = "0.0.2", "another"
			town.actions["/ns/callee"] = &another
			town.changes.Add(1)
			if record := town.ask(f); record.Cached.Outcome == forerun.CacheHit {
				t.Errorf("after the callee was deployed it is %+v", record.Cached)
			}
		})
	}
}

// TestKeptProcessesAnswerTheWeb: the headers of a web action's answer count for a process that had served others, too.
func TestKeptProcessesAnswerTheWeb(t *testing.T) {
	for header, c := range map[string]struct {
		value string
		shown verdicts
		why   forerun.ReasonCode
	}{
		"Set-Cookie":    {"session=ada", verdicts{}, forerun.ReasonSetsCookie},
		"Cache-Control": {"private", verdicts{}, forerun.ReasonNoStore},
		"Vary":          {"*", verdicts{}, forerun.ReasonVaries},
		"cache-control": {"max-age=0", verdicts{agreed: 1}, forerun.ReasonTTLOver},
	} {
		for _, verify := range []string{"0.01", "0"} {
			t.Run(header+" "+verify, func(t *testing.T) {
				town := newCacheTown(t, speculate.Off)
				town.kept.Store(true)
				f, _ := town.counted("f", func(*forerun.Run, map[string]any) (any, error) {
					return map[string]any{"headers": map[string]any{header: c.value}}, nil
				})
				annotate(f, "web-export", "true")
				annotate(f, annotation.CacheVerify, verify)
				town.ask(f)
				town.ask(f)
				shown := c.shown
				if verify == "0" {
					shown = verdicts{}
				}
				town.mustShow(t, shown)
				if record := town.ask(f); record.Cached.Outcome == forerun.CacheHit || record.Cached.Why.Code != c.why {
					t.Errorf("it went %s: %s", record.Cached.Outcome, record.Cached.Why.Code)
				}
			})
		}
	}
}

// TestDisturbedVerification: a rehearsal that made way for others is made again when the input comes again.
func TestDisturbedVerification(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	town.kept.Store(true)
	var rehearsals atomic.Int64
	f, _ := town.counted("f", func(run *forerun.Run, input map[string]any) (any, error) {
		if run.Fresh && rehearsals.Add(1) == 1 {
			run.Events.Wanted(run.Activation, forerun.MadeWay, forerun.Because(forerun.ReasonMadeWay))
		}
		return town.reading("k")(run, input)
	})
	town.ask(f)
	town.ask(f)
	town.mustShow(t, verdicts{open: 1})
	mustBe(t, town.ask(f), forerun.CacheMiss, forerun.ReasonUnverified)
	town.mustShow(t, verdicts{agreed: 1, open: 1})
	mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
}

// TestHopelessVerification: where the code needs a promotion, which a rehearsal never gets, it is not rehearsed again.
func TestHopelessVerification(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	town.kept.Store(true)
	f, runs := town.counted("f", func(run *forerun.Run, input map[string]any) (any, error) {
		if run.Rehearsed {
			run.Events.Wanted(run.Activation, forerun.Failed, forerun.Because(forerun.ReasonSharesMemory))
		}
		return town.reading("k")(run, input)
	})
	town.ask(f)
	town.ask(f)
	town.mustShow(t, verdicts{open: 1})
	if _, rests := town.tables.tenant("ns").samples.rests(town.home(f), time.Now().Add(time.Hour)); !rests {
		t.Error("it is rehearsed again within an hour")
	}
	for range 2 { // from the row that was compared, and from the next one
		record := town.ask(f)
		mustBe(t, record, forerun.CacheMiss, forerun.ReasonUnverifiable)
		if of := record.Cached.Why.Rest().Of; of == nil || of.Code != forerun.ReasonSharesMemory {
			t.Errorf("it does not tell why: %v", record.Cached.Why)
		}
	}
	town.mustShow(t, verdicts{open: 1})
	if runs.Load() != 5 {
		t.Errorf("it ran %d times", runs.Load())
	}
}

// TestWorkflowCallerIsNotRehearsed: the result of a workflow reaches its caller in its turn only. So a rehearsal of the caller shows nothing, and the
// reason tells that.
func TestWorkflowCallerIsNotRehearsed(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	town.kept.Store(true)
	town.function("step", town.reading("k"))
	seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/step"}})
	caller, _ := town.counted("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
		i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: seq, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
		<-i.Done()
		return map[string]any{}, nil
	})
	annotate(town.actions["/ns/step"], "state_cache", "true") // else its memory is the reason
	annotate(town.actions["/ns/step"], annotation.CacheVerify, "0")
	town.ask(caller)
	town.ask(caller)
	town.mustShow(t, verdicts{open: 1})
	record := town.ask(caller)
	mustBe(t, record, forerun.CacheMiss, forerun.ReasonUnverifiable)
	if of := record.Cached.Why.Rest().Of; of == nil || of.Code != forerun.ReasonCallsWorkflow {
		t.Errorf("it does not tell why: %v", record.Cached.Why)
	}
}
