package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestLongNamesAreErasedFewAtATime: those of a thousand records may be longer than there is memory for.
func TestLongNamesAreErasedFewAtATime(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	for i := range 5 {
		do(t, s, fmt.Sprint("SET ", i, strings.Repeat("x", eraseSize*2/5), " 1"))
	}
	if names, err := s.someNames(t.Context(), "s", ""); err != nil || len(names) != 3 {
		t.Errorf("%d names, %v", len(names), err)
	}
	if err := s.EraseSpace(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if names, err := s.someNames(t.Context(), "s", ""); err != nil || len(names) != 0 {
		t.Errorf("%d names are left, %v", len(names), err)
	}
}

func TestEraseSpace(t *testing.T) {
	now := time.UnixMilli(1000)
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	defer s.Close()
	do := func(space string, args ...string) {
		t.Helper()
		c := state.Command{Space: space}
		for _, arg := range args {
			c.Args = append(c.Args, []byte(arg))
		}
		if reply, _, err := s.Do(t.Context(), c); err != nil || reply.Kind == state.Error {
			t.Fatalf("%v: %s %v", args, reply.Text, err)
		}
	}
	for i := range eraseBatch + 10 {
		do("a", "SET", fmt.Sprint("expired", i), "1", "PX", "5")
	}
	now = now.Add(time.Second)
	for i := range 2*eraseBatch + 1 {
		do("a", "SET", fmt.Sprint("string", i), "1")
	}
	do("a", "HSET", "hash", "f", "v")
	do("a", "RPUSH", "list", "1", "2")
	do("a", "SADD", "set", "1")
	do("b", "SET", "k", "kept")
	if err := s.EraseSpace(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for _, k := range []forerun.Key{{Space: "a", Name: "string0"}, {Space: "a", Name: "string2000"}, {Space: "a", Name: "hash"}, {Space: "a", Name: "list"}, {Space: "a", Name: "set"}} {
		if r, err := s.Get(t.Context(), k); err != nil || r[0].Version != 0 {
			t.Errorf("%v is still there: %v", k, err)
		}
	}
	if r, err := s.Get(t.Context(), forerun.Key{Space: "b", Name: "k"}); err != nil || string(r[0].Data) != "kept" {
		t.Errorf("another space has lost its record: %v", err)
	}
	do("a", "RPUSH", "hash", "1") // no element of the old one is left to be found
}
