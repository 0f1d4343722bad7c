package service

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/backup"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/state/embedded"
)

// taken is a backup of a new store.
func taken(t *testing.T) []byte {
	t.Helper()
	store, err := embedded.Open(filepath.Join(t.TempDir(), "store"), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var b bytes.Buffer
	if err := backup.Write(&b, backup.Header{}, store.Pairs(t.Context())); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRestore(t *testing.T) {
	whole := taken(t)
	for name, test := range map[string]struct {
		file    []byte
		holds   string // a file in the folder
		refused string // what the error says; empty: none
	}{
		"into a new folder":    {file: whole},
		"of half a file":       {file: whole[:len(whole)-20], refused: "ends too early"},
		"of something else":    {file: []byte("PK"), refused: "not a backup"},
		"over something":       {file: whole, holds: "letter.txt", refused: "letter.txt"},
		"over a server's data": {file: whole, holds: lockName, refused: "not empty"},
	} {
		t.Run(name, func(t *testing.T) {
			file, data := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
			if err := os.WriteFile(file, test.file, 0o600); err != nil {
				t.Fatal(err)
			}
			if test.holds != "" {
				if err := os.Mkdir(data, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(data, test.holds), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Restore(file, data)
			if test.refused == "" {
				if err != nil || s.Pairs == 0 {
					t.Fatalf("%+v, %v", s, err)
				}
				if err := checkOurs(data); err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("%v; want it to say %q", err, test.refused)
			}
			left, err := os.ReadDir(data)
			if err != nil || len(left) > 1 || len(left) == 1 && left[0].Name() != test.holds {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
	if _, err := Restore(filepath.Join(t.TempDir(), "none"), t.TempDir()); forerun.KindOf(err) != forerun.Invalid || err == nil {
		t.Errorf("of no file: %v", err)
	}
}
