package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/backup"
)

// TestBackupCommand leaves no file that is not a whole backup, and replaces none.
func TestBackupCommand(t *testing.T) {
	var b bytes.Buffer
	err := backup.Write(&b, backup.Header{}, func(yield func(backup.Pair, error) bool) { yield(backup.Pair{Key: []byte("a")}, nil) })
	if err != nil {
		t.Fatal(err)
	}
	whole := b.String()
	for name, c := range map[string]struct {
		answer answer
		holds  bool // the file is there
		code   int
		stderr string // a part
	}{
		"whole":        {answer{status: 200, body: whole}, false, 0, "1 records, 1 bytes"},
		"cut":          {answer{status: 200, body: whole[:len(whole)-9]}, false, 1, "ends too early"},
		"not ours":     {answer{status: 200, body: "<html>"}, false, 1, "not a backup of Forerun"},
		"refused":      {answer{status: 401, body: `{"error":"This is the operator's.","code":"t"}`}, false, 4, "This is the operator's."},
		"over another": {answer{status: 200, body: whole}, true, 2, "there already"},
	} {
		t.Run(name, func(t *testing.T) {
			_, key := operatorWorld(t, map[string]answer{"GET backup": c.answer})
			folder := t.TempDir()
			file := filepath.Join(folder, "b")
			if c.holds {
				if err := os.WriteFile(file, []byte("older"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := runIn(t, map[string]string{"FORERUN_OPERATOR": key}, "", "", "backup", file)
			if got.code != c.code || !strings.Contains(got.stderr, c.stderr) {
				t.Errorf("%+v", got)
			}
			want := map[bool]string{true: whole}[c.code == 0]
			if c.holds {
				want = "older"
			}
			if text, _ := os.ReadFile(file); string(text) != want {
				t.Errorf("the file holds %q", text)
			}
			if left, _ := os.ReadDir(folder); len(left) > 1 || len(left) == 1 && left[0].Name() != "b" {
				t.Errorf("left %v", left)
			}
		})
	}
}

// TestBackupIsTheOwnersAlone: what others have put where a backup might be written on its way gets nothing of it.
func TestBackupIsTheOwnersAlone(t *testing.T) {
	var b bytes.Buffer
	if err := backup.Write(&b, backup.Header{}, func(func(backup.Pair, error) bool) {}); err != nil {
		t.Fatal(err)
	}
	_, key := operatorWorld(t, map[string]answer{"GET backup": {status: 200, body: b.String()}})
	file := filepath.Join(t.TempDir(), "b")
	others, err := os.Create(file + ".part")
	if err != nil {
		t.Fatal(err)
	}
	defer others.Close()
	if err := others.Chmod(0o666); err != nil {
		t.Fatal(err)
	}
	if got := runIn(t, map[string]string{"FORERUN_OPERATOR": key}, "", "", "backup", file); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if info, err := others.Stat(); err != nil || info.Size() > 0 {
		t.Errorf("others have %d bytes of it, %v", info.Size(), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}
