package service

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

func TestFolderHasOneServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "data")
	first, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	_, err = openFolder(path)
	if forerun.KindOf(err) != forerun.Exists || !strings.Contains(err.Error(), fmt.Sprintf("process %d)", os.Getpid())) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second server: %v", err)
	}
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second, err := openFolder(path)
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	if err := second.close(); err != nil {
		t.Error(err)
	}
}

// TestLockOfOneThatWasKilled: who has just been killed is there for a moment more, and has the lock so long.
func TestLockOfOneThatWasKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	killed, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, lockName), fmt.Appendln(nil, dead.Process.Pid), 0o600); err != nil {
		t.Fatal(err)
	}
	last := exec.Command("cat") // has the lock until it ends
	last.ExtraFiles = []*os.File{killed.lock}
	end, err := last.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	if err := killed.close(); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(2*lockWait, func() { _ = end.Close() })
	next, err := openFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.close(), last.Wait()); err != nil {
		t.Error(err)
	}
}

func TestFolderOfOthersIsRefused(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openFolder(path); forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), "thesis.txt") {
		t.Errorf("%v", err)
	}
	if _, err := openFolder(filepath.Join(path, "thesis.txt")); forerun.KindOf(err) != forerun.Invalid {
		t.Errorf("a file: %v", err)
	}
}

func TestOwnerChangesInsideAlone(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	parent := t.TempDir()
	outside := filepath.Join(parent, "outside")
	f, err := openFolder(filepath.Join(parent, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	for name, make := range map[string]func(string) error{
		outside:                                func(p string) error { return os.WriteFile(p, nil, 0o600) },
		filepath.Join(f.path, "store", "deep"): func(p string) error { return os.MkdirAll(p, 0o700) },
		filepath.Join(f.path, "link"):          func(p string) error { return os.Symlink(outside, p) },
	} {
		if err := make(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.giveTo(12345); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]uint32{"data": 12345, "data/lock": 12345, "data/store/deep": 12345, "data/link": 12345, "outside": 0} {
		info, err := os.Lstat(filepath.Join(parent, path))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			t.Errorf("%s belongs to %d", path, got)
		}
	}
}

func TestProps(t *testing.T) {
	t.Chdir(t.TempDir())
	if uuid, key := readAuth(propsName); uuid != "" || key != "" {
		t.Errorf("of nothing: %q %q", uuid, key)
	}
	for range 2 {
		if err := writeProps(propsName, "http://127.0.0.1:3233", "u-u:k:k"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(propsName)
	if err != nil || string(text) != "APIHOST=http://127.0.0.1:3233\nAUTH=u-u:k:k\n" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(propsName); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if uuid, key := readAuth(propsName); uuid != "u-u" || key != "k:k" {
		t.Errorf("read %q %q", uuid, key)
	}
}
