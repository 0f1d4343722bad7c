package controller

import (
	"encoding/json"
	"testing"
	"time"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
)

func annotate(a *forerun.Action, name, value string) {
	a.Annotations = append(a.Annotations, forerun.KeyValue{Key: name, Value: json.RawMessage(value)})
}

// TestCacheTTL: a result stands until its cache-ttl is over. With one, a function that reads from hosts has results, and so has its caller.
func TestCacheTTL(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			short, _ := town.counted("short", town.reading("k"))
			annotate(short, annotation.CacheTTL, `"1ms"`)
			long, _ := town.counted("long", town.reading("k"))
			annotate(long, annotation.CacheTTL, `"720h"`)
			mustBe(t, town.ask(short), forerun.CacheMiss, forerun.ReasonNoRow)
			time.Sleep(5 * time.Millisecond)
			mustBe(t, town.ask(short), forerun.CacheStale, forerun.ReasonTTLOver)
			mustBe(t, town.ask(long), forerun.CacheMiss, forerun.ReasonNoRow)
			mustBe(t, town.ask(long), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			town.write(t, "SET", "k", "new")
			mustBe(t, town.ask(long), forerun.CacheStale, forerun.ReasonChangedRecord)

			town.hosts.Store(true)
			town.ask(long, bypass)
			mustBe(t, town.ask(long), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			calls := func(callee *forerun.Action) *forerun.Action {
				caller, _ := town.counted("calls "+callee.Name.Entity, func(run *forerun.Run, _ map[string]any) (any, error) {
					i := town.Invoke(Request{Namespace: "ns", Subject: "ada", Action: callee, Input: json.RawMessage(`{}`), Cause: run.Activation, Blocking: true})
					<-i.Done()
					return map[string]any{}, nil
				})
				return caller
			}
			plain := town.function("plain", town.reading("k"))
			bare := calls(plain)
			town.ask(bare)
			mustBe(t, town.ask(bare), forerun.CacheMiss, forerun.ReasonReadFromHosts)
			annotate(bare, annotation.CacheTTL, `"1h"`)
			town.ask(bare, bypass)
			mustBe(t, town.ask(bare), forerun.CacheHit, forerun.ReasonReadsUnchanged)

			town.hosts.Store(false) // a caller's result stands no longer than its callee's
			for _, c := range []struct {
				callee *forerun.Action
				want   forerun.CacheOutcome
				why    forerun.ReasonCode
			}{{long, forerun.CacheHit, forerun.ReasonReadsUnchanged}, {short, forerun.CacheStale, forerun.ReasonTTLOver}} {
				caller := calls(c.callee)
				town.ask(caller)
				time.Sleep(5 * time.Millisecond)
				mustBe(t, town.ask(caller), c.want, c.why)
			}
		})
	}
}

// TestCacheKey: a function is given what counts and its own parameters, and nothing else, also without the cache. A result stands for all inputs
// that are the same in that.
func TestCacheKey(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			f, runs := town.counted("f", func(_ *forerun.Run, input map[string]any) (any, error) { return input, nil })
			annotate(f, annotation.CacheKey, `["city","__ow_headers.lang"]`)
			f.Parameters = []forerun.KeyValue{{Key: "bound", Value: json.RawMessage("1")}}
			ask := func(input string) *forerun.Activation {
				return town.ask(f, func(r *Request) { r.Input = json.RawMessage(input) })
			}
			mustBe(t, ask(`{"__ow_headers":{"cookie":"x","lang":"de"},"bound":2,"city":"Ulm","trace":1}`), forerun.CacheMiss, forerun.ReasonNoRow)
			hit := ask(`{"__ow_headers":{"lang":"de"},"city":"Ulm","trace":2}`)
			mustBe(t, hit, forerun.CacheHit, forerun.ReasonPure)
			if want := `{"__ow_headers":{"lang":"de"},"bound":1,"city":"Ulm"}`; string(hit.Result) != want {
				t.Errorf("it was given %s, not %s", hit.Result, want)
			}
			mustBe(t, ask(`{"__ow_headers":{"lang":"en"},"city":"Ulm"}`), forerun.CacheMiss, forerun.ReasonNoRow)
			mustBe(t, ask(`{"city":"Bonn"}`), forerun.CacheMiss, forerun.ReasonNoRow)
			town.Cache = false
			if record := ask(`{"city":"Ulm","trace":3}`); string(record.Result) != `{"bound":1,"city":"Ulm"}` || runs.Load() != 4 {
				t.Errorf("%s, after %d runs", record.Result, runs.Load())
			}
		})
	}
}
