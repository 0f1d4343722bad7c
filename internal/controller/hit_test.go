package controller

import (
	"context"
	"fmt"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

// hasty is a store in which another client writes as soon as it has told versions.
type hasty struct {
	*embedded.Store
	write func()
}

func (h *hasty) Standing(ctx context.Context, keys ...forerun.Key) ([]state.Expect, bool, error) {
	now, lasting, err := h.Store.Standing(ctx, keys...)
	h.write()
	return now, lasting, err
}

// TestConfirmedMoment: a write right behind the look at the store counts, also for later invocations, which the marks tell of.
func TestConfirmedMoment(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	h := &hasty{Store: town.State.(*embedded.Store), write: func() {}}
	town.Controller = New(Config{Worker: town, Actions: town, Records: town, State: h, Bridge: new(Bridge), Cache: true, Speculation: speculate.NewSettings(speculate.Off)})
	f, _ := town.counted("f", town.reading("k"))
	town.ask(f)
	h.write = func() { town.write(t, "SET", "k", "new") }
	mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged) // as of the moment before
	h.write = func() {}
	stale := town.ask(f)
	mustBe(t, stale, forerun.CacheStale, forerun.ReasonChangedRecord)
	if string(stale.Result) != `{"is":"new"}` {
		t.Errorf("%s", stale.Result)
	}
}

// TestHitsLeaveTheStore: once the store has told the versions of a row, hits do not ask it again, until one of the records is written.
func TestHitsLeaveTheStore(t *testing.T) {
	town := newCacheTown(t, speculate.Off)
	looks := 0
	h := &hasty{Store: town.State.(*embedded.Store), write: func() { looks++ }}
	town.Controller = New(Config{Worker: town, Actions: town, Records: town, State: h, Bridge: new(Bridge), Cache: true, Speculation: speculate.NewSettings(speculate.Off)})
	f, _ := town.counted("f", town.reading("k"))
	for range 2 {
		town.write(t, "SET", "k", "new")
		looks = 0
		town.ask(f)
		before := looks // of the stale row
		for range 3 {
			mustBe(t, town.ask(f), forerun.CacheHit, forerun.ReasonReadsUnchanged)
			town.write(t, "SET", "other", "new")
		}
		if looks != before+1 {
			t.Errorf("three hits have asked the store %d times", looks-before)
		}
	}
}

// BenchmarkHit answers an invocation from a row that read some records.
func BenchmarkHit(b *testing.B) {
	for _, records := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			town := newCacheTown(b, speculate.Off)
			f, _ := town.counted("f", func(run *forerun.Run, _ map[string]any) (any, error) {
				for n := range records {
					if _, err := town.do(run, "GET", fmt.Sprint("k", n)); err != nil {
						return nil, err
					}
				}
				return map[string]any{}, nil
			})
			for n := range records {
				town.write(b, "SET", fmt.Sprint("k", n), "value")
			}
			town.ask(f)
			b.ReportAllocs()
			for b.Loop() {
				if record := town.ask(f); record.Cached.Outcome != forerun.CacheHit {
					b.Fatal(record.Cached)
				}
			}
		})
	}
}
