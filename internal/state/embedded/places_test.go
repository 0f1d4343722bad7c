package embedded

import (
	"runtime"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/places"
)

// TestLongCommandsNeedAPlace: commands that compute for long, or copy much, wait while all places are taken. Short ones, and transactions of
// the server, do not, of the same tenant neither.
func TestLongCommandsNeedAPlace(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	in := func(space string, args ...string) (state.Reply, error) {
		reply, _, err := s.Do(t.Context(), state.Command{Space: space, Args: words(args...)})
		return reply, err
	}
	for name, value := range map[string]string{"a": strings.Repeat("ab", 1000), "b": strings.Repeat("ba", 1000), "large": strings.Repeat("x", 4<<20)} {
		if _, err := in("ada", "SET", name, value); err != nil {
			t.Fatal(err)
		}
	}
	long := [][]string{
		{"LCS", "a", "b", "LEN"},
		{"BITCOUNT", "large"},
		{"BITPOS", "large", "1", "8", "-1", "BIT"},
		{"GETBIT", "large", "7"},
		{"BITOP", "NOT", "other", "large"},
	}
	want := make([]state.Reply, len(long))
	for i, args := range long {
		var err error
		if want[i], err = in("ada", args...); err != nil || want[i].Kind == state.Error {
			t.Fatal(args, want[i], err)
		}
	}
	s.places = places.New(1)
	for i, args := range long {
		before := s.places.Waited()
		holder := s.places.Turn()
		if err := holder.Work(t.Context(), "eve", 100*places.Step); err != nil {
			t.Fatal(err)
		}
		type end struct {
			reply state.Reply
			err   error
		}
		ended := make(chan end, 1)
		go func() {
			reply, err := in("ada", args...)
			ended <- end{reply, err}
		}()
		for s.places.Waited() == before && len(ended) == 0 {
			runtime.Gosched()
		}
		if s.places.Waited() == before {
			t.Fatalf("%v did not need a place", args)
		}
		for _, space := range []string{"ada", "bob"} {
			if _, err := in(space, "INCR", "n"); err != nil {
				t.Error(err)
			}
		}
		op := state.Command{Space: "records", Args: words("SET", "r", "v")}
		if _, err := s.Apply(t.Context(), state.Txn{Ops: []state.Command{op}}); err != nil {
			t.Error(err)
		}
		holder.Leave()
		if e := <-ended; e.err != nil || e.reply.Kind != want[i].Kind || e.reply.Int != want[i].Int || e.reply.Kind == state.Error {
			t.Errorf("%v answers %+v, %v; want %+v", args, e.reply, e.err, want[i])
		}
	}
	before, next := s.places.Waited(), s.places.Turn()
	if err := next.Work(t.Context(), "eve", 100*places.Step); err != nil || s.places.Waited() != before {
		t.Errorf("after all commands the place is not free: %v", err)
	}
	next.Leave()
	if seen, err := s.Versions(t.Context(), forerun.Key{Space: "bob", Name: "n"}); err != nil || seen[0].Version == 0 {
		t.Error(seen, err)
	}
}
