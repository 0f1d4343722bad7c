package embedded

import (
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// TestAdd: an addition leaves what commands would, counts for its tenant though that may store nothing, and is there after a failure of the
// machine, unless it is lazy.
func TestAdd(t *testing.T) {
	fs := vfs.NewCrashableMem()
	options := Options{FS: fs, Stored: accounting(state.Allowance{Bytes: 0})}
	s := mustOpen(t, "store", options)
	const space = "ada/records"
	note := state.Command{Space: space, Fresh: true, Args: words("SET", "note", "x")}
	if _, err := s.Apply(t.Context(), state.Txn{Ops: []state.Command{note}, Owed: true}); err != nil {
		t.Fatal(err)
	}
	for _, a := range []state.Addition{
		{Space: space, Records: []state.Added{{Name: []byte("a"), Data: []byte("first")}, {Name: []byte("b"), Data: bigValue()}}, Lazy: true},
		{Space: space, Records: []state.Added{{Name: []byte("c")}}, Gone: [][]byte{[]byte("none")}},
	} {
		if err := s.Add(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	exact(t, s, "added")
	s = mustOpen(t, "store", Options{FS: fs.CrashClone(vfs.CrashCloneCfg{}), Stored: options.Stored})
	defer closed(t, s)
	want := map[string]string{"note": "x", "a": "first", "b": string(bigValue()), "c": ""}
	var last forerun.Version
	for entry, err := range s.Scan(t.Context(), state.Range{Space: space}) {
		if err != nil {
			t.Fatal(err)
		}
		if data, ok := want[entry.Name]; !ok || data != string(entry.Data) || entry.Version == 0 {
			t.Errorf("%q of version %d is %.20q, want %.20q", entry.Name, entry.Version, entry.Data, data)
		}
		delete(want, entry.Name)
		last = max(last, entry.Version)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if err := s.Add(t.Context(), state.Addition{Space: space, Records: []state.Added{{Name: []byte("d")}}, Gone: words("note", "c")}); err != nil {
		t.Fatal(err)
	}
	found, err := s.Get(t.Context(), forerun.Key{Space: space, Name: "d"}, forerun.Key{Space: space, Name: "note"}, forerun.Key{Space: space, Name: "c"})
	if versions := []bool{found[0].Version > last, found[1].Version == 0, found[2].Version == 0}; err != nil || slices.Contains(versions, false) {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestAddsOfSpaces: a space with a zero byte in its name has its own records.
func TestAddsOfSpaces(t *testing.T) {
	s := mustOpen(t, "store", Options{FS: vfs.NewMem()})
	defer closed(t, s)
	for _, space := range []string{"s", "s\x00", "\x00\x00s"} {
		if err := s.Add(t.Context(), state.Addition{Space: space, Records: []state.Added{{Name: []byte("n\x00"), Data: []byte(space)}}, Lazy: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, space := range []string{"s", "s\x00", "\x00\x00s"} {
		found, err := s.Get(t.Context(), forerun.Key{Space: space, Name: "n\x00"})
		if err != nil || string(found[0].Data) != space {
			t.Errorf("%q: %+v, %v", space, found, err)
		}
	}
}
