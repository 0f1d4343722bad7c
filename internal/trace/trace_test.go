package trace

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestRowsInSentences: a sentence names the row of a slot, whatever its number is, and a slot without a row by its name alone.
func TestRowsInSentences(t *testing.T) {
	inner := &forerun.Reason{Code: forerun.ReasonStaleRead, Slot: forerun.SlotName{Number: 11, Action: "a"}, Record: "k #12"}
	again := forerun.NewReason(forerun.ReasonRunsAgain, forerun.Detail{Of: inner})
	again.Slot = forerun.SlotName{Number: 9, Action: "lost"}
	traced := New([]Slot{
		{Name: "chain", ID: "0", Program: true, Line: Line{Queued: 1, Finished: 9}},
		{Name: "a", ID: "1", Depth: 1, Line: Line{Slot: 11, Queued: 1, Launched: 1, Finished: 4, Committed: 4}},
		{Name: "b", ID: "2", Depth: 1, Line: Line{Slot: 12, Queued: 4, Launched: 4, Finished: 9, Committed: 9, Reasons: Reasons{InTurn: again}}},
		{Name: "c", ID: "3", Depth: 1, Line: Line{Slot: 13, Queued: 4, Texts: Texts{Predicted: `a #11 gave "k #11", and lost #9`}}}, // of an older server
	}, 0)
	if got := traced.Slots[2].InTurn; got != `lost runs again: it had read "k #12" before a #2 wrote it` || !traced.Cites {
		t.Error(got)
	}
	if got := traced.Slots[3].Predicted; got != `a #2 gave "k #11", and lost` {
		t.Error(got)
	}
}

func TestCriticalPath(t *testing.T) {
	program := func(depth int, from, to int64) Slot {
		return Slot{ID: "p", Program: true, Depth: depth, Line: Line{Queued: from, Launched: from, Finished: to, Committed: to}}
	}
	inTurn := func(depth int, from, to int64) Slot {
		return Slot{ID: "f", Depth: depth, Line: Line{Queued: from, Launched: from, Promoted: from, Finished: to, Committed: to}}
	}
	early := func(depth int, from, turn, to int64) Slot {
		return Slot{ID: "e", Depth: depth, Line: Line{Queued: from, Launched: from, Promoted: turn, Finished: to, Committed: max(turn, to), Speculative: true}}
	}
	held := early(1, 100, 150, 160)
	held.Held = 40
	late := early(1, 100, 150, 180)
	late.Launched = 150
	squashed := early(1, 100, 0, 0)
	squashed.ID, squashed.Squashed = "", 199
	for name, c := range map[string]struct {
		slots []Slot
		want  []int64
	}{
		"one function":                     {[]Slot{inTurn(0, 100, 200)}, []int64{100}},
		"one after the other":              {[]Slot{program(0, 100, 200), inTurn(1, 110, 150), inTurn(1, 150, 190)}, []int64{20, 40, 40}},
		"the longest was speculative":      {[]Slot{program(0, 100, 200), inTurn(1, 100, 150), early(1, 100, 150, 200)}, []int64{0, 0, 100}},
		"a speculative one was hidden":     {[]Slot{program(0, 100, 200), inTurn(1, 100, 200), early(1, 100, 200, 150)}, []int64{0, 100, 0}},
		"one was held for its turn":        {[]Slot{program(0, 100, 160), inTurn(1, 100, 150), held}, []int64{0, 50, 10}},
		"one had no sandbox before":        {[]Slot{program(0, 100, 180), inTurn(1, 100, 150), late}, []int64{0, 50, 30}},
		"the squashed one is not on it":    {[]Slot{program(0, 100, 200), inTurn(1, 100, 200), squashed}, []int64{0, 100, 0}},
		"branches at the same time":        {[]Slot{program(0, 100, 200), inTurn(1, 100, 130), inTurn(1, 100, 180), inTurn(1, 180, 200)}, []int64{0, 0, 80, 20}},
		"a workflow in another":            {[]Slot{program(0, 100, 200), program(1, 100, 170), inTurn(2, 110, 160), inTurn(1, 170, 200)}, []int64{0, 20, 50, 30}},
		"a caller waits for what it calls": {[]Slot{inTurn(0, 100, 200), inTurn(1, 120, 180)}, []int64{40, 60}},
	} {
		traced := New(c.slots, 0)
		var got []int64
		for i := range traced.Slots {
			got = append(got, traced.Slots[i].Critical)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v; want %v", name, got, c.want)
		}
	}
}

// TestCriticalPathIsTheWall: whatever the moments are, each moment of the wall is on the path once.
func TestCriticalPathIsTheWall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var list []Slot
		for i := range 1 + r.IntN(8) {
			depth := 0
			if i > 0 {
				depth = 1 + r.IntN(list[i-1].Depth+1)
			}
			at := func() int64 { return int64(r.IntN(3)) * int64(r.IntN(100)) }
			list = append(list, Slot{ID: "x", Depth: depth, Program: r.IntN(3) == 0, Line: Line{
				Queued: at(), Launched: at(), Promoted: at(), Finished: at(), Committed: at(), Squashed: at(), Held: at(), Speculative: r.IntN(2) == 0,
			}})
			if i > 0 && r.IntN(4) == 0 {
				list[i].ID = ""
			}
		}
		traced, sum := New(list, 0), int64(0)
		for i := range traced.Slots {
			if sum += traced.Slots[i].Critical; traced.Slots[i].Critical < 0 {
				t.Fatalf("a negative part of %+v", traced)
			}
		}
		if sum != traced.Wall {
			t.Fatalf("the path takes %d of %+v", sum, traced)
		}
	}
}

// TestSaved: a saving is claimed if something was speculative, and the invocation took less than the estimate.
func TestSaved(t *testing.T) {
	for _, c := range []struct {
		speculative bool
		inOrder     int64
		want        int64
	}{{true, 150, 50}, {true, 90, 0}, {true, 0, 0}, {false, 150, 0}} {
		s := Slot{ID: "x", Line: Line{Queued: 1, Launched: 1, Finished: 101, Speculative: c.speculative}}
		if traced := New([]Slot{s}, c.inOrder); traced.Saved != c.want {
			t.Errorf("%+v: %d", c, traced.Saved)
		}
	}
}

// TestOf: the API's JSON of an activation has each reason as a sentence and as a code.
func TestOf(t *testing.T) {
	at := time.UnixMicro(5)
	why := &forerun.Reason{Code: forerun.ReasonKnownOutput, Slot: forerun.SlotName{Number: 0, Action: "a"}}
	got, err := json.Marshal(Of(&forerun.Activation{
		Calls: []forerun.ActivationID{"c"},
		Cached: &forerun.Cached{
			Outcome: forerun.CacheHit, Why: forerun.Because(forerun.ReasonReadsUnchanged), Of: "d",
			Checked: []forerun.Checked{{Record: "k", Version: 7}, {Record: "absent"}}, Records: 2, Checking: 3 * time.Microsecond,
		},
		Timeline: forerun.Timeline{Slot: 2, Queued: at, Speculative: true, Predicted: why, Held: time.Millisecond},
		Tally: &forerun.Tally{Early: 1, Squashed: 1, InOrder: time.Second, Slots: []forerun.SquashedSlot{{
			Action:   forerun.Name{Namespace: "ns", Entity: "b"},
			Timeline: forerun.Timeline{Slot: 3, Queued: at, Squashed: at, Kind: forerun.Updated, Cause: forerun.Because(forerun.ReasonUpdated)},
		}}},
	}))
	const want = `{"slot":2,"queued":5,"held":1000,"speculative":true,"predicted":"a #0 gave this on the same input before",` +
		`"reasons":{"predicted":{"code":"known_output","slot":{"number":0,"action":"a"}}},"calls":["c"],` +
		`"tally":{"early":1,"used":0,"squashed":1,"skipped":0,"depth":0,"inOrder":1000000,"slots":[{"action":"ns/b","slot":3,"queued":5,"squashed":5,` +
		`"speculative":false,"kind":"update","cause":"its action, or one that it called, was updated or deleted","reasons":{"cause":{"code":"updated"}}}]},` +
		`"cache":{"outcome":"hit","why":"what it read when it ran on this input is as it was","reason":{"code":"reads_unchanged"},"of":"d",` +
		`"records":[{"record":"k","version":7},{"record":"absent","version":0}],"checked":2,"checking":3}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestCacheNotes: a drawing says which way an annotated action went.
func TestCacheNotes(t *testing.T) {
	hit := Slot{State: Skipped, Line: Line{Skipped: true, Texts: Texts{Predicted: "why"}}, Cache: &Cache{Outcome: forerun.CacheHit, Of: "abc", Checked: 2, Took: 120}}
	if got := hit.note(); got != "skipped: why; cache hit on abc, 2 records checked in 120µs" {
		t.Error(got)
	}
	stale := Slot{Cache: &Cache{Outcome: forerun.CacheStale, Why: `"k" was written`}}
	if got := stale.note(); got != `cache stale: "k" was written` {
		t.Error(got)
	}
}
