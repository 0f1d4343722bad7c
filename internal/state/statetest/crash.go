package statetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// Crashable opens an empty store, and returns with it what makes the machine fail: the same store, opened again with
// what was on disk then.
type Crashable func(t *testing.T, rng *rand.Rand) (store state.Store, crash func() state.Store)

// wrote is a write that a store was asked for.
type wrote struct {
	name, value string // "": deleted
	version     forerun.Version
}

// RunCrashes writes at random, lets the machine fail, and looks at what is left: all that was durable, a state that was
// there at some moment, and no version for a second time.
func RunCrashes(t *testing.T, open Crashable) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, seed))
			store, crash := open(t, rng)
			var h history
			for round := range 3 {
				h.writeAtRandom(t, store, rng)
				reopened := crash()
				if err := store.Close(); err != nil {
					t.Fatal(err)
				}
				store = reopened
				h.log = survivors(t, store, h.log, h.durable)
				if t.Failed() {
					t.Fatalf("in round %d", round)
				}
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// history is what a store has been asked for, as far as it has survived.
type history struct {
	log     []wrote
	durable forerun.Version // up to which all is on disk
	handed  forerun.Version // the last that was handed out, survived or not
}

// writeAtRandom sets and deletes, in all ways that there are.
func (h *history) writeAtRandom(t *testing.T, store state.Store, rng *rand.Rand) {
	ctx := context.Background()
	kinds := 10 << (4 * rng.IntN(2)) // of ways to write; in every other round the disk is rarely waited for
	for n := range 100 + rng.IntN(200) {
		w := wrote{name: fmt.Sprintf("k%d", rng.IntN(8)), value: fmt.Sprintf("v%d-%0*d", n, rng.IntN(2000), 0)}
		c := command(space, "SET "+w.name+" "+w.value)
		if rng.IntN(5) == 0 {
			w.value, c = "", command(space, "GETDEL "+w.name)
		}
		var err error
		kind := rng.IntN(kinds)
		if kind < 3 {
			w.version, err = store.Apply(ctx, state.Txn{Lazy: kind > 0, Ops: []state.Command{c}})
		} else {
			_, w.version, err = store.Do(ctx, c)
		}
		if err == nil && kind == 9 {
			err = store.Durable(ctx, w.version)
		}
		if err != nil {
			t.Fatal(err)
		}
		if w.version <= h.handed {
			if w.value != "" {
				t.Fatalf("version %d comes back: %d was handed out before", w.version, h.handed)
			}
			continue // a deletion of nothing
		}
		h.handed = w.version
		h.log = append(h.log, w)
		if kind == 0 || kind == 9 {
			h.durable = w.version
		}
	}
}

// survivors checks a store after a crash, and returns the writes that are left of the log. The store must be as it was
// after one of them, which is not older than the last durable one.
func survivors(t *testing.T, store state.Store, log []wrote, durable forerun.Version) []wrote {
	found := make(map[string]state.Record)
	for n := range 8 {
		records, err := store.Get(context.Background(), key(fmt.Sprintf("k%d", n)))
		if err != nil {
			t.Fatal(err)
		}
		found[fmt.Sprintf("k%d", n)] = records[0]
	}
	for end := len(log); end >= 0 && (end == len(log) || log[end].version > durable); end-- {
		if matches(found, log[:end]) {
			return log[:end]
		}
	}
	t.Errorf("what is left was there at no moment since version %d: %d writes, %+v", durable, len(log), found)
	return nil
}

// matches says whether the records are those after the writes.
func matches(found map[string]state.Record, log []wrote) bool {
	want := make(map[string]wrote)
	for _, w := range log {
		want[w.name] = w
	}
	for name, r := range found {
		w := want[name]
		if w.value == "" && r.Version != 0 || w.value != "" && (r.Version != w.version || string(r.Data) != w.value) {
			return false
		}
	}
	return true
}
