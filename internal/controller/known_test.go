package controller

import (
	"encoding/json"
	"testing"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/forerun"
)

// TestExplain: an explanation says what the next invocation does, and executes nothing.
func TestExplain(t *testing.T) {
	for _, mode := range everyMode {
		t.Run(mode.String(), func(t *testing.T) {
			town := newCacheTown(t, mode)
			f, runs := town.counted("f", town.reading("k"))
			annotate(f, annotation.CacheKey, `["city"]`)
			lies, _ := town.counted("lies", func(run *forerun.Run, _ map[string]any) (any, error) {
				_, err := town.do(run, "INCR", "count")
				return map[string]any{}, err
			})
			annotate(lies, annotation.CacheKey, `["city"]`)
			plain := town.function("plain", town.reading("k"))
			check := func(a *forerun.Action) Explanation {
				t.Helper()
				before := runs.Load()
				x, err := town.Explain(t.Context(), "ns", a, json.RawMessage(`{"city":"Ulm","id":1}`))
				if err != nil {
					t.Fatal(err)
				}
				if runs.Load() != before {
					t.Error("it was executed")
				}
				record := town.ask(a, func(r *Request) { r.Input = json.RawMessage(`{"city":"Ulm","id":2}`) })
				if c := record.Cached; c != nil && (c.Outcome != x.Outcome || c.Why.Code != x.Why.Code) {
					t.Errorf("%s: explained as %s, %s; it went %s, %s", a.Name, x.Outcome, x.Why, c.Outcome, c.Why)
				}
				return x
			}
			check(f)
			if x := check(f); x.Outcome != forerun.CacheHit || x.Row == nil {
				t.Errorf("a hit: %+v", x)
			}
			town.write(t, "SET", "k", "new")
			if x := check(f); x.Outcome != forerun.CacheStale || len(x.Changed) != 1 || x.Changed[0].Record != "k" || x.Changed[0].Read != 0 || x.Changed[0].Now == 0 {
				t.Errorf("after a write: %+v", x)
			}
			check(lies)
			if x := check(lies); x.Outcome != forerun.CacheMiss || x.Why.Code != forerun.ReasonWrote {
				t.Errorf("of a liar: %+v", x)
			}
			if x := check(plain); x.Outcome != forerun.CacheOff || x.Why.Code != forerun.ReasonNotAnnotated {
				t.Errorf("without an annotation: %+v", x)
			}
			town.LetCache(false)
			if x := check(f); x.Outcome != forerun.CacheOff || x.Why.Code != forerun.ReasonCacheSwitch {
				t.Errorf("switched off: %+v", x)
			}
			town.LetCache(true)
			check(f)
		})
	}
}

// TestPurge: only invocations whose results were dropped are executed. To purge nothing is not an error.
func TestPurge(t *testing.T) {
	town := newCacheTown(t, everyMode[0])
	f, _ := town.counted("f", town.reading("k"))
	g, _ := town.counted("g", town.reading("l"))
	ulm := func(r *Request) { r.Input = json.RawMessage(`{"city":"Ulm"}`) }
	for name, c := range map[string]struct {
		purge        Purge
		n            int
		f, fOfUlm, g bool // are known afterwards
	}{
		"all":            {Purge{}, 3, false, false, false},
		"action":         {Purge{Action: f}, 2, false, false, true},
		"input":          {Purge{Action: f, Input: json.RawMessage(`{"city":"Ulm"}`)}, 1, true, false, true},
		"unknown input":  {Purge{Action: f, Input: json.RawMessage(`{"city":"Bonn"}`)}, 0, true, true, true},
		"record":         {Purge{Record: "l"}, 1, true, true, false},
		"other's record": {Purge{Action: f, Record: "l"}, 0, true, true, true},
		"unknown record": {Purge{Record: "x"}, 0, true, true, true},
	} {
		if _, err := town.PurgeRows(t.Context(), "ns", Purge{}); err != nil {
			t.Fatal(err)
		}
		town.ask(f)
		town.ask(f, ulm)
		town.ask(g)
		if n, err := town.PurgeRows(t.Context(), "other", Purge{}); n != 0 || err != nil {
			t.Errorf("another's rows: %d, %v", n, err)
		}
		if n, err := town.PurgeRows(t.Context(), "ns", c.purge); n != c.n || err != nil {
			t.Errorf("%s: %d rows, %v, not %d", name, n, err, c.n)
		}
		known := func(a *forerun.Action, change ...func(*Request)) bool {
			return town.ask(a, change...).Cached.Outcome == forerun.CacheHit
		}
		if known(f) != c.f || known(f, ulm) != c.fOfUlm || known(g) != c.g {
			t.Errorf("%s: the wrong rows are left", name)
		}
	}
	uses := town.CacheUses(t.Context(), "ns")
	if len(uses) != 2 || uses[0].Action != "/ns/f" || uses[0].Outcomes[forerun.CacheHit] != 9 || uses[0].Rows != 2 || uses[0].Bytes == 0 {
		t.Errorf("%+v", uses[0])
	}
	town.write(t, "SET", "k", "new")
	if uses := town.CacheUses(t.Context(), "ns"); uses[0].Stale != uses[0].Bytes || uses[1].Stale != 0 {
		t.Errorf("%d of %d bytes are stale, and %d", uses[0].Stale, uses[0].Bytes, uses[1].Stale)
	}
	if others := town.CacheUses(t.Context(), "other"); len(others) != 0 {
		t.Errorf("another tenant sees %+v", others)
	}
}

// TestCacheUsesAreBounded counts more actions than are kept one by one.
func TestCacheUsesAreBounded(t *testing.T) {
	var uses cacheUses
	for n := range maxUses + 50 {
		uses.count(string(rune('a'+n%26))+string(rune(0x100+n)), &forerun.Cached{Outcome: forerun.CacheHit, Saved: 1})
	}
	all := uses.copied()
	if len(all) != maxUses+1 || all[""].Outcomes[forerun.CacheHit] != 50 || all[""].Saved != 50 {
		t.Errorf("%d actions, %+v", len(all), all[""])
	}
}
