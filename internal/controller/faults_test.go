package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

// TestBoundsOfResults: inputs that differ in their bytes have results of their own, as long as they are. An output or reads beyond the bounds have
// none, and the answer says so.
func TestBoundsOfResults(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	given := func(input string) func(*Request) { return func(r *Request) { r.Input = json.RawMessage(input) } }
	f, runs := town.counted("f", func(_ *forerun.Run, input map[string]any) (any, error) { return map[string]any{"n": len(input)}, nil })
	inputs := []string{`{"n":1}`, `{"n":1.0}`, `{"n":"` + strings.Repeat("x", 6<<20) + `"}`}
	for _, input := range inputs {
		mustBe(t, town.ask(f, given(input)), forerun.CacheMiss, forerun.ReasonNoRow)
		mustBe(t, town.ask(f, given(input)), forerun.CacheHit, forerun.ReasonPure)
	}
	if runs.Load() != int64(len(inputs)) {
		t.Errorf("of %d inputs it ran %d times", len(inputs), runs.Load())
	}
	for _, kept := range town.KeptRows(t.Context(), "ns", "/ns/f") {
		if kept.Bytes > maxShownInput {
			t.Errorf("a long input is kept with its result, of %d bytes", kept.Bytes)
		}
	}
	large, _ := town.counted("large", func(*forerun.Run, map[string]any) (any, error) {
		return map[string]any{"text": strings.Repeat("x", 1<<20)}, nil
	})
	for range 2 {
		mustBe(t, town.ask(large), forerun.CacheMiss, forerun.ReasonNoRow)
	}
	many, _ := town.counted("many", func(run *forerun.Run, input map[string]any) (any, error) {
		for n := range int(input["records"].(float64)) {
			if _, err := town.do(run, "GET", fmt.Sprint("k", n)); err != nil {
				return nil, err
			}
		}
		return map[string]any{}, nil
	})
	const most = `{"records":1000}`
	town.ask(many, given(most))
	for range 2 { // asked of the store, and of the marks
		mustBe(t, town.ask(many, given(most)), forerun.CacheHit, forerun.ReasonReadsUnchanged)
	}
	const tooMany = `{"records":1001}`
	town.ask(many, given(tooMany))
	mustBe(t, town.ask(many, given(tooMany)), forerun.CacheMiss, forerun.ReasonManyReads)
}

// refusing is a store that tells no versions.
type refusing struct{ *embedded.Store }

func (refusing) Standing(context.Context, ...forerun.Key) ([]state.Expect, bool, error) {
	return nil, false, errors.New("it is closing")
}

// TestStoreThatRefuses: no answer is given that the store has not confirmed.
func TestStoreThatRefuses(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	town.Controller = New(Config{
		Worker: town, Actions: town, Records: town, State: refusing{town.State.(*embedded.Store)}, Bridge: new(Bridge), Cache: true, Speculation: speculate.NewSettings(speculate.Off),
	})
	f, runs := town.counted("f", town.reading("k"))
	for range 3 {
		if record := town.ask(f); record.Cached.Outcome == forerun.CacheHit {
			t.Errorf("it went %+v", record.Cached)
		}
	}
	if runs.Load() != 3 {
		t.Errorf("it ran %d times of 3", runs.Load())
	}
}
