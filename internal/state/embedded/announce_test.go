package embedded

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
	"forerun.dev/forerun/internal/state/command"
)

// TestAnnounce: every change of a record is announced, while the store still holds what was before.
func TestAnnounce(t *testing.T) {
	now := time.Now()
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	defer s.Close()
	stored := func(name string) string {
		value, _, err := (reader{db: s.db}).Get(command.RecordKey(forerun.Key{Space: "s", Name: name}))
		if err != nil {
			t.Fatal(err)
		}
		return string(value)
	}
	announced := make(map[string]string) // what was stored then
	stop := s.Announce(func(k forerun.Key) { announced[k.Name] = stored(k.Name) })
	expect := func(what, names string) {
		t.Helper()
		var got []string
		for name, before := range announced {
			got = append(got, name)
			if before == stored(name) {
				t.Errorf("%s: %q is announced when it has changed already, or does not change", what, name)
			}
		}
		if slices.Sort(got); strings.Join(got, " ") != names {
			t.Errorf("%s: %q are announced, not %q", what, got, names)
		}
		clear(announced)
	}
	for _, c := range []struct{ line, changes string }{
		{"SET a 1", "a"},
		{"GET a", ""},
		{"MSET a 2 b 3", "a b"},
		{"HSET h f 1", "h"},
		{"HSET h g 1", "h"},
		{"EXPIRE a 1000", "a"},
		{"PERSIST a", "a"},
		{"RENAME a c", "a c"},
		{"RPUSH l 1", "l"},
		{"RPOP l", "l"},
		{"DEL b missing", "b"},
		{"SET e 1 PX 1000", "e"},
	} {
		do(t, s, c.line)
		expect(c.line, c.changes)
	}
	now = now.Add(time.Minute)
	s.sweep()
	expect("the removal of a record whose life has ended", "e")
	if _, err := s.Apply(t.Context(), state.Txn{Lazy: true, Ops: []state.Command{{Space: "s", Args: words("SET", "d", "1")}}}); err != nil {
		t.Fatal(err)
	}
	expect("a transaction", "d")
	do(t, s, "FLUSHDB")
	expect("FLUSHDB", "c d h")
	stop()
	do(t, s, "SET a 1")
	expect("after its end", "")
}

// TestStanding: records with a life are told from those that only writes change.
func TestStanding(t *testing.T) {
	now := time.Now()
	s := mustOpen(t, "store", Options{FS: vfs.NewMem(), Now: func() time.Time { return now }})
	defer s.Close()
	do(t, s, "SET a 1")
	do(t, s, "SET e 1 PX 1000")
	lasting := func(names ...string) bool {
		t.Helper()
		keys := make([]forerun.Key, len(names))
		for i, name := range names {
			keys[i] = forerun.Key{Space: "s", Name: name}
		}
		versions, lasting, err := s.Standing(t.Context(), keys...)
		if err != nil || len(versions) != len(names) {
			t.Fatal(versions, err)
		}
		return lasting
	}
	if !lasting("a", "missing") || lasting("a", "e") || lasting("e", "a") {
		t.Error("what has a life is lasting, or what has none is not")
	}
	now = now.Add(time.Minute)
	if lasting("a", "e") {
		t.Error("a record whose life has ended is lasting before it was removed: a clock that is set back shows it again")
	}
	if s.sweep(); !lasting("a", "e") {
		t.Error("it is not lasting when it was removed")
	}
}
