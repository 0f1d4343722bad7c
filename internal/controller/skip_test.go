package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

// newCacheTown is a town with a cache, whose invocations speculate as far as a mode lets them.
func newCacheTown(t testing.TB, mode speculate.Mode) *town { return newCacheTownAt(t, mode, nil) }

// newCacheTownAt is newCacheTown with the clock that ends records' lives; nil: the machine's.
func newCacheTownAt(t testing.TB, mode speculate.Mode, now func() time.Time) *town {
	store, err := embedded.Open("store", embedded.Options{FS: vfs.NewMem(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	town := newTown(t)
	town.Controller = New(Config{
		Worker: town, Actions: town, Records: town, State: store, Bridge: new(Bridge), Cache: true, Speculation: speculate.NewSettings(mode),
	})
	return town
}

var stateCache = forerun.KeyValue{Key: "state_cache", Value: json.RawMessage("true")}

// counted is an annotated function of one's own, and how often it ran.
func (t *town) counted(name string, f func(*forerun.Run, map[string]any) (any, error)) (*forerun.Action, *atomic.Int64) {
	runs := new(atomic.Int64)
	a := t.function(name, func(r *forerun.Run, input map[string]any) (any, error) {
		runs.Add(1)
		return f(r, input)
	})
	a.Annotations = append(a.Annotations, stateCache)
	return a, runs
}

// reading is a function that gives what a record is.
func (t *town) reading(key string) func(*forerun.Run, map[string]any) (any, error) {
	return func(run *forerun.Run, _ map[string]any) (any, error) {
		reply, err := t.do(run, "GET", key)
		return map[string]any{"is": reply}, err
	}
}

// write has another client execute a command.
func (t *town) write(tb testing.TB, command ...string) {
	tb.Helper()
	args := make([][]byte, len(command))
	for i, arg := range command {
		args[i] = []byte(arg)
	}
	if _, _, err := t.State.Do(tb.Context(), state.Command{Space: "ns", Args: args}); err != nil {
		tb.Fatal(err)
	}
}

// ask invokes an action to its end and returns its record.
func (t *town) ask(a *forerun.Action, change ...func(*Request)) *forerun.Activation {
	r := Request{Namespace: "ns", Subject: "ada", Action: a, Changes: t.Changes(), Input: json.RawMessage(`{}`), Blocking: true}
	for _, c := range change {
		c(&r)
	}
	i := t.Invoke(r)
	<-i.Done()
	return i.Record()
}

func bypass(r *Request) { r.Bypass = true }

// mustBe holds a record to which way it went.
func mustBe(t *testing.T, record *forerun.Activation, outcome forerun.CacheOutcome, why forerun.ReasonCode) {
	t.Helper()
	if c := record.Cached; c == nil || c.Outcome != outcome || c.Why == nil || c.Why.Code != why {
		t.Errorf("%s: it went %+v, not %s: %s", record.Result, c, outcome, why)
	}
}

var everyMode = []speculate.Mode{speculate.Off, speculate.Branches, speculate.All}

// TestSkip: with speculation on and off, a function that reads is skipped until what it read is written, whoever writes it.
func TestSkip(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			f, runs := town.counted("f", town.reading("k"))
			first := town.ask(f)
			mustBe(t, first, forerun.CacheMiss, forerun.ReasonNoRow)
			hit := town.ask(f)
			mustBe(t, hit, forerun.CacheHit, forerun.ReasonReadsUnchanged)
			if cached := string(forerun.Lookup(hit.Annotations, "cached")); cached != fmt.Sprintf("%q", first.ID) || hit.ID == first.ID || hit.Logs != nil || !hit.Timeline.Skipped {
				t.Errorf("the record of a hit: %+v", hit)
			}
			if hit.Cached.Of != first.ID || hit.Cached.Records != 1 || hit.Cached.Checked[0].Record != "k" {
				t.Errorf("%+v", hit.Cached)
			}
			town.write(t, "SET", "k", "new")
			stale := town.ask(f)
			mustBe(t, stale, forerun.CacheStale, forerun.ReasonChangedRecord)
			if string(stale.Result) != `{"is":"new"}` || stale.Cached.Why.Record != "k" || runs.Load() != 2 {
				t.Errorf("%s, %+v, after %d runs", stale.Result, stale.Cached.Why, runs.Load())
			}
			mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			mustBe(t, town.ask(f, bypass), forerun.CacheBypass, forerun.ReasonBypass)
			town.write(t, "DEL", "k")
			mustBe(t, town.ask(f), forerun.CacheStale, forerun.ReasonChangedRecord)
			mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged) // an absent record is read, too
		})
	}
}

// TestRecordsThatEnd: a record whose life has ended has changed.
func TestRecordsThatEnd(t *testing.T) {
	for _, mode := range everyMode {
		var later atomic.Int64
		town := newCacheTownAt(t, mode, func() time.Time { return time.Now().Add(time.Duration(later.Load())) })
		f, _ := town.counted("f", town.reading("k"))
		town.write(t, "SET", "k", "old", "EX", "1000")
		town.ask(f)
		mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
		later.Store(int64(2000 * time.Second))
		if stale := town.ask(f); string(stale.Result) != `{"is":""}` {
			t.Errorf("%v: after the end of a record its reader gives %s", mode, stale.Result)
		}
	}
}

// TestUpdatedActions: after a deployment, with other content or the same, the action is executed again. So is an invocation that found the
// action before the deployment, if it is looked at later.
func TestUpdatedActions(t *testing.T) {
	for _, mode := range everyMode {
		town := newCacheTown(t, mode)
		f, _ := town.counted("f", town.reading("k"))
		town.ask(f)
		mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
		before := town.Changes()
		again := *f
		again.Updated = again.Updated.Add(time.Second)
		town.actions["/ns/f"] = &again
		town.changes.Add(1)
		mustBe(t, town.ask(f, func(r *Request) { r.Changes = before }), forerun.CacheStale, forerun.ReasonChangedCode)
		mustBe(t, town.ask(&again), forerun.CacheMiss, forerun.ReasonNoRow)
	}
}

// TestSkipInSequence: a step is skipped as a single function is, and the steps around it run.
func TestSkipInSequence(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			_, runs := town.counted("f", town.reading("k"))
			var others atomic.Int64
			town.function("g", func(_ *forerun.Run, input map[string]any) (any, error) {
				others.Add(1)
				return input, nil
			})
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/f", "/ns/g"}}, stateCache)
			for _, want := range []string{`{"is":""}`, `{"is":""}`} {
				record := town.ask(seq)
				mustBe(t, record, forerun.CacheBypass, forerun.ReasonWorkflow)
				if string(record.Result) != want || len(record.Logs) != 2 {
					t.Errorf("%s, of %v", record.Result, record.Logs)
				}
			}
			if runs.Load() != 1 {
				t.Errorf("the step ran %d times", runs.Load())
			}
			town.write(t, "SET", "k", "new")
			if record := town.ask(seq); string(record.Result) != `{"is":"new"}` || runs.Load() != 2 {
				t.Errorf("%s, after %d runs", record.Result, runs.Load())
			}
		})
	}
}

// TestEffectsAreNotSkipped: a function that was seen to have an effect is executed each time, whatever its annotations say (K2).
func TestEffectsAreNotSkipped(t *testing.T) {
	for _, mode := range everyMode {
		for _, name := range []string{"pure-function", "compute_cache", "state_cache"} {
			t.Run(mode.String()+" "+name, func(t *testing.T) {
				town := newCacheTown(t, mode)
				f := town.function("f", func(run *forerun.Run, _ map[string]any) (any, error) {
					_, err := town.do(run, "INCR", "count")
					return map[string]any{}, err
				})
				f.Annotations = []forerun.KeyValue{{Key: name, Value: json.RawMessage("true")}}
				seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/f"}})
				town.ask(f)
				mustBe(t, town.ask(f), forerun.CacheMiss, forerun.ReasonWrote)
				town.ask(seq)
				if reply, _, err := town.State.Do(t.Context(), state.Command{Space: "ns", Args: [][]byte{[]byte("GET"), []byte("count")}}); err != nil || string(reply.Text) != "3" {
					t.Errorf("of 3 increments %s are left, %v", reply.Text, err)
				}
			})
		}
	}
}

// TestReachIsNotSkipped: a function that was seen to reach the outside is executed each time, and so is one that asked the API, read
// something without a version, or did not wait for what it called.
func TestReachIsNotSkipped(t *testing.T) {
	for _, mode := range everyMode {
		town := newCacheTown(t, mode)
		quiet := func(*forerun.Run, map[string]any) (any, error) { return map[string]any{}, nil }
		town.function("callee", quiet)
		for why, f := range map[forerun.ReasonCode]func(*forerun.Run, map[string]any) (any, error){
			forerun.ReasonReached: quiet,
			forerun.ReasonAskedAPI: func(run *forerun.Run, _ map[string]any) (any, error) {
				return map[string]any{}, town.Hold(context.Background(), run.Activation, nil)
			},
			forerun.ReasonNoVersion: func(run *forerun.Run, _ map[string]any) (any, error) {
				_, err := town.do(run, "TTL", "k")
				return map[string]any{}, err
			},
			forerun.ReasonLooseCall: func(run *forerun.Run, _ map[string]any) (any, error) {
				town.Refused(run.Activation)
				return map[string]any{}, nil
			},
		} {
			a, runs := town.counted(string(why), f)
			town.reached.Store(why == forerun.ReasonReached)
			for range 3 {
				town.ask(a)
			}
			mustBe(t, town.ask(a), forerun.CacheMiss, why)
			if runs.Load() != 4 {
				t.Errorf("%s: it ran %d times of 4", why, runs.Load())
			}
			town.reached.Store(false)
		}
	}
}

// TestCalleesCount: a caller rests on what its callees read, write, and are.
func TestCalleesCount(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			var writes atomic.Bool
			callee := town.function("callee", func(run *forerun.Run, _ map[string]any) (any, error) {
				if writes.Load() {
					_, err := town.do(run, "INCR", "count")
					return map[string]any{}, err
				}
				return town.reading("k")(run, nil)
			})
			caller, runs := town.counted("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
				i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
				<-i.Done()
				var result map[string]any
				return result, json.Unmarshal(i.Record().Result, &result)
			})
			mustBe(t, town.ask(caller), forerun.CacheMiss, forerun.ReasonNoRow)
			mustBe(t, town.ask(caller), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			town.write(t, "SET", "k", "new")
			if record := town.ask(caller); string(record.Result) != `{"is":"new"}` {
				t.Errorf("what its callee read was written, and it gives %s", record.Result)
			}
			mustBe(t, town.ask(caller), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			updated := *callee
			updated.Version, updated.Updated = "0.0.2", updated.Updated.AddDate(0, 0, 1)
			town.actions["/ns/callee"] = &updated
			town.changes.Add(1)
			callee = &updated
			mustBe(t, town.ask(caller), forerun.CacheStale, forerun.ReasonChangedCode)
			before := runs.Load()
			writes.Store(true)
			town.ask(caller, bypass)
			mustBe(t, town.ask(caller), forerun.CacheMiss, forerun.ReasonWrote)
			if runs.Load() != before+2 {
				t.Errorf("a caller whose callee writes ran %d times of 2", runs.Load()-before)
			}
		})
	}
}

// TestMemoryOfCallees: a row of a caller stands for no execution if a callee without an annotation may have remembered its output. This holds
// also for a callee of a callee.
func TestMemoryOfCallees(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			calling := func(callee *forerun.Action) func(*forerun.Run, map[string]any) (any, error) {
				return func(run *forerun.Run, _ map[string]any) (any, error) {
					i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
					<-i.Done()
					return map[string]any{}, nil
				}
			}
			callee := town.function("callee", town.reading("k"))
			seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/callee"}})
			middle, _ := town.counted("middle", calling(seq))
			caller, _ := town.counted("caller", calling(middle))
			for _, promises := range []*forerun.Action{middle, caller} { // for their own processes
				annotate(promises, annotation.CacheVerify, "0")
			}
			town.ask(caller)
			mustBe(t, town.ask(caller), forerun.CacheHit, forerun.ReasonReadsUnchanged) // each ran in a process of its own
			town.kept.Store(true)
			town.ask(caller, bypass)
			record := town.ask(caller)
			mustBe(t, record, forerun.CacheMiss, forerun.ReasonRemembers)
			if why := record.Cached.Why.Rest().Text; why != "callee" {
				t.Errorf("it is said that %q remembers", why)
			}
			mustBe(t, town.ask(middle), forerun.CacheMiss, forerun.ReasonRemembers)
			promised := *callee
			promised.Annotations, promised.Version = []forerun.KeyValue{stateCache}, "0.0.2"
			town.actions["/ns/callee"] = &promised
			town.changes.Add(1)
			town.ask(caller, bypass)
			mustBe(t, town.ask(caller), forerun.CacheHit, forerun.ReasonReadsUnchanged)
		})
	}
}

// TestCacheOff: nothing is skipped nor learnt, and the record says so. A function without the annotation has no mark.
func TestCacheOff(t *testing.T) {
	town := newCacheTown(t, speculate.All)
	town.Controller.Cache = false
	f, runs := town.counted("f", town.reading("k"))
	for range 2 {
		mustBe(t, town.ask(f), forerun.CacheOff, forerun.ReasonCacheOff)
	}
	if runs.Load() != 2 {
		t.Errorf("it ran %d times of 2", runs.Load())
	}
	if record := town.ask(town.function("plain", add("n", 1))); record.Cached != nil {
		t.Errorf("without an annotation: %+v", record.Cached)
	}
}

// TestOthersRows: a tenant's rows stand for no other's executions (K3).
func TestOthersRows(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	f, _ := town.counted("f", add("n", 1))
	town.ask(f)
	mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonPure)
	mustBe(t, town.ask(f, func(r *Request) { r.Namespace = "other" }), forerun.CacheMiss, forerun.ReasonNoRow)
}

// TestErrorsAreNotKept: a function that fails is executed again.
func TestErrorsAreNotKept(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	f, _ := town.counted("f", func(*forerun.Run, map[string]any) (any, error) { return map[string]any{"error": "no"}, nil })
	for range 2 {
		mustBe(t, town.ask(f), forerun.CacheMiss, forerun.ReasonNoRow)
	}
}

// TestSkipWhateverBoundsSpeculation: the skip depends on nothing that bounds speculation (K5).
func TestSkipWhateverBoundsSpeculation(t *testing.T) {
	for what, bound := range map[string]func(*town, *Request){
		"the operator's switch": func(town *town, _ *Request) { town.LetAhead(false) },
		"the request":           func(_ *town, r *Request) { r.Speculation = new(speculate.NewSettings(speculate.Off)) },
		"the load": func(town *town, _ *Request) {
			town.Load = func(string) forerun.Load { return forerun.Load{Waiting: true, Busy: 1} }
		},
	} {
		town := newCacheTown(t, speculate.All)
		_, runs := town.counted("f", town.reading("k"))
		seq := town.deploy("seq", forerun.Exec{Kind: "sequence", Components: []string{"/ns/f", "/ns/f"}})
		for range 3 {
			town.ask(seq, func(r *Request) { bound(town, r) })
		}
		if runs.Load() != 2 { // on two inputs
			t.Errorf("with %s: it ran %d times", what, runs.Load())
		}
	}
}

// TestAnnotatedCalleesAreSkipped: annotated callees are skipped for every caller, and executed if the call asks for it.
func TestAnnotatedCalleesAreSkipped(t *testing.T) {
	for _, mode := range everyMode {
		town := newCacheTown(t, mode)
		callee, runs := town.counted("callee", town.reading("k"))
		var executes atomic.Bool
		caller := town.function("caller", func(run *forerun.Run, _ map[string]any) (any, error) {
			i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true, Bypass: executes.Load()})
			<-i.Done()
			return map[string]any{"cached": string(i.Record().Cached.Outcome)}, nil
		})
		for _, want := range []string{"miss", "hit", "hit", "bypass"} {
			executes.Store(want == "bypass")
			if record := town.ask(caller); string(record.Result) != fmt.Sprintf(`{"cached":%q}`, want) {
				t.Errorf("%s: %s, not %s", mode, record.Result, want)
			}
		}
		if runs.Load() != 2 {
			t.Errorf("%s: it ran %d times", mode, runs.Load())
		}
	}
}
