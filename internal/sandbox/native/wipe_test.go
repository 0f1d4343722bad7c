package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWipeEnds: a process that goes on filling the folder does not delay the wipe's caller.
func TestWipeEnds(t *testing.T) {
	folder := t.TempDir()
	dir, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	late := errors.New("late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(late)
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := wipe(ctx, int(dir.Fd())); !errors.Is(err, late) {
		t.Errorf("after its time: %v", err)
	}
	if err := wipe(t.Context(), int(dir.Fd())); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestWipeOfWhatMoves: a process that stays may rename and remove files as they are removed.
func TestWipeOfWhatMoves(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	w := wiper{top: int(dir.Fd()), at: int(dir.Fd())}
	for name, err := range map[string]error{
		"removed":                             w.remove([]string{"gone"}),
		"a folder that was removed":           w.down("gone"),
		"a folder, in whose place a file is":  w.down("file"),
		"removed, and others are there still": w.remove([]string{"gone", "file"}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
