package guard

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenIn: what is renamed meanwhile, wherever that is, does not keep a path with ".." from being found.
func TestOpenIn(t *testing.T) {
	root, other := t.TempDir(), filepath.Join(t.TempDir(), "a")
	if err := os.Mkdir(filepath.Join(root, "inner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	folder, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(folder)
	var renames sync.WaitGroup
	end := make(chan struct{})
	renames.Go(func() {
		for from, to := other, other+"b"; ; from, to = to, from {
			select {
			case <-end:
				return
			default:
				_ = os.Rename(from, to)
			}
		}
	})
	for range 500 {
		file, err := openIn(folder, "inner/../inner")
		if err != nil {
			t.Error(err)
			break
		}
		unix.Close(file)
	}
	close(end)
	renames.Wait()
}
