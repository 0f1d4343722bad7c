package native

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestWipeEnds: one that goes on filling the folder keeps nobody waiting for it.
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
