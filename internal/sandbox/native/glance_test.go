package native

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFolderIsSeenToChange: a folder that was found empty is found otherwise after each kind of change, also when it was not read again
// because it had not changed.
func TestFolderIsSeenToChange(t *testing.T) {
	folder := t.TempDir()
	f, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	g := newGlance([]*os.File{nil, f})
	defer f.Close()
	s := &g.folders[0]
	file := filepath.Join(folder, "file")
	for name, change := range map[string]struct{ do, undo func() error }{
		"a file":  {func() error { return os.WriteFile(file, nil, 0o600) }, func() error { return os.Remove(file) }},
		"a mode":  {func() error { return os.Chmod(folder, 0o700) }, func() error { return unix.Chmod(folder, folderMode) }},
		"nothing": {func() error { return nil }, func() error { return nil }},
	} {
		if err := unix.Chmod(folder, folderMode); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(folder, &st); err != nil {
			t.Fatal(err)
		}
		if !g.empty(s, st.Ctim) || s.since != (unix.Timespec{}) { // while the kernel's clock stands, whatever time passes
			t.Errorf("it is not empty, or known for that before its ctime is past: %+v", *s)
		}
		now := coarseClock()
		for ; now.Nano() <= st.Ctim.Nano(); now = coarseClock() {
			time.Sleep(time.Millisecond)
		}
		for range 2 { // the second time it is known
			if !g.empty(s, now) || s.since == (unix.Timespec{}) {
				t.Errorf("it is not empty, or not known for that: %+v", *s)
			}
		}
		if err := change.do(); err != nil {
			t.Fatal(err)
		}
		if got := g.empty(s, coarseClock()); got != (name == "nothing") {
			t.Errorf("after %s it is empty: %v", name, got)
		}
		if err := change.undo(); err != nil {
			t.Fatal(err)
		}
	}
}
