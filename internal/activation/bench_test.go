package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/embedded"
)

// function is record with the annotations of a function that is a part of a sequence.
func function(n int) *forerun.Activation {
	a := record(n, "guest", "pkg/hello")
	a.Cause = "0123456789abcdef0123456789abcdef"
	a.Annotations = []forerun.KeyValue{
		{Key: "path", Value: json.RawMessage(`"guest/pkg/hello"`)},
		{Key: "waitTime", Value: json.RawMessage("3")},
		{Key: "kind", Value: json.RawMessage(`"native"`)},
		{Key: "timeout", Value: json.RawMessage("false")},
		{Key: "causedBy", Value: json.RawMessage(`"sequence"`)},
		{Key: "limits", Value: json.RawMessage(`{"concurrency":1,"logs":10,"memory":256,"timeout":60000}`)},
	}
	return a
}

// BenchmarkNotes makes the commands that keep one note.
func BenchmarkNotes(b *testing.B) {
	l, a := new(Log), function(1)
	b.ReportAllocs()
	for b.Loop() {
		l.Notes(a)
	}
}

// BenchmarkNotedStep is what the note of a function adds to its first write: a step with the note less one without, and the removal of the
// note with the record. The store has tables on disk, as it has after an hour.
func BenchmarkNotedStep(b *testing.B) {
	for _, noted := range []bool{false, true} {
		b.Run(fmt.Sprintf("noted %v", noted), func(b *testing.B) {
			store, err := embedded.Open(b.TempDir(), embedded.Options{Stored: embedded.Accounting{
				Owner: func(space, name []byte) ([]byte, state.Part) {
					tenant, part, _ := Owner(space, name)
					return tenant, part
				},
				Allowed: func(string) state.Allowance { return state.Allowance{Bytes: -1} },
			}})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			l, ctx := Open(store, false), context.Background()
			incr := state.Command{Space: "guest", Args: [][]byte{[]byte("INCR"), []byte("n")}}
			step := func(n int) {
				a := function(n)
				ops := []state.Command{incr}
				if noted {
					ops, a.Noted = append(ops, l.Notes(a)...), true
				}
				if _, _, err := store.Exec(ctx, nil, ops); err != nil {
					b.Fatal(err)
				}
				if err := l.Put(ctx, a); err != nil {
					b.Fatal(err)
				}
			}
			n := 0
			for ; n < 20_000; n++ {
				step(n)
			}
			b.ReportAllocs()
			for b.Loop() {
				n++
				step(n)
			}
		})
	}
}
