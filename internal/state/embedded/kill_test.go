package embedded

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state"
)

// victimFolder tells a test process that it is the one to be killed, and where to write.
const victimFolder = "FORERUN_TEST_VICTIM"

// bigValue is larger than a block of the log, and than the room of a pipe.
func bigValue() []byte { return bytes.Repeat([]byte("big"), 100_000) }

func lazySet(name string, value []byte) state.Txn {
	return state.Txn{Lazy: true, Ops: []state.Command{{Space: "s", Args: [][]byte{[]byte("SET"), []byte(name), value}}}}
}

// TestVictim is not a test but what TestKilledAfterApply runs in a process of its own.
func TestVictim(t *testing.T) {
	dir := os.Getenv(victimFolder)
	if dir == "" {
		t.Skip("it runs only in a process that is to be killed")
	}
	s := mustOpen(t, dir, Options{})
	for name, value := range map[string][]byte{"big": bigValue(), "small": []byte("x")} {
		if _, err := s.Apply(context.Background(), lazySet(name, value)); err != nil {
			t.Fatal(err)
		}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing comes after it
}

// TestKilledAfterApply kills a process as soon as its lazy transactions have returned, and finds their records.
func TestKilledAfterApply(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		dir := t.TempDir()
		cmd := exec.Command(self, "-test.run=^TestVictim$")
		cmd.Env = append(os.Environ(), victimFolder+"="+dir)
		err = cmd.Run()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the process was not killed: %v", err)
		}
		s := mustOpen(t, dir, Options{})
		records, err := s.Get(context.Background(), forerun.Key{Space: "s", Name: "big"}, forerun.Key{Space: "s", Name: "small"})
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(records[0].Data, bigValue()) || string(records[1].Data) != "x" {
			t.Errorf("after the kill there are %d and %d bytes", len(records[0].Data), len(records[1].Data))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFolderInUse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := mustOpen(t, dir, Options{})
	if _, err := Open(dir, Options{}); err == nil || forerun.KindOf(err) != forerun.Unavailable {
		t.Errorf("a second store on the folder: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if err := mustOpen(t, dir, Options{}).Close(); err != nil {
		t.Error(err)
	}
}

func TestDataFormats(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, "store", Options{FS: fs})
	if err := s.write(formatKey, dataFormat+1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := Open("store", Options{FS: fs}); err == nil || forerun.KindOf(err) != forerun.Unsupported {
			t.Errorf("data of a newer format: %v", err)
		}
	}
}

// TestNewerFilesAreRefused: Pebble itself would read these.
func TestNewerFilesAreRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, "store", Options{FS: fs})
	if err := s.db.RatchetFormatMajorVersion(pebbleFormat + 1); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("store", Options{FS: fs}); err == nil || forerun.KindOf(err) != forerun.Unsupported {
		t.Errorf("files of a newer format: %v", err)
	}
}

func TestDataOfOthers(t *testing.T) {
	fs := vfs.NewMem()
	s := mustOpen(t, "store", Options{FS: fs})
	if err := s.db.Delete(formatKey, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.db.Set([]byte("something"), []byte("else"), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open("store", Options{FS: fs}); err == nil || forerun.KindOf(err) != forerun.Invalid {
		t.Errorf("data without a format: %v", err)
	}
}

func TestFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); err == nil || forerun.KindOf(err) != forerun.Internal {
		t.Errorf("a store in a file: %v", err)
	}
}
