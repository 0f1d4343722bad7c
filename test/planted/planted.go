// Package planted breaks code on purpose, so that a test shows that it would
// find such a bug. A bug is a patch of one file. It is laid over the source at
// compile time, so no file changes.
package planted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Bug is a change of the code that breaks a promise: From becomes To, at the only place of File that has it.
type Bug struct {
	Name     string
	File     string // below the folder that Plant and Build are given
	From, To string
}

// New makes a bug.
func New(name, file, from, to string) Bug { return Bug{name, file, from, to} }

// Plant returns the file with the bug.
func (b Bug) Plant(folder string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(folder, b.File))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(b.From)); n != 1 || b.From == b.To {
		return nil, fmt.Errorf("%s has %d places to plant it, not one: %s", b.File, n, b.From)
	}
	return bytes.Replace(text, []byte(b.From), []byte(b.To), 1), nil
}

// Build compiles the tests of the package in the current folder over the broken code, and returns the test program.
func (b Bug) Build(t *testing.T, folder string) string {
	t.Helper()
	at := t.TempDir()
	text, err := b.Plant(folder)
	if err != nil {
		t.Fatal(err)
	}
	source, err := filepath.Abs(filepath.Join(folder, b.File))
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(at, filepath.Base(b.File))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: broken}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{broken: text, filepath.Join(at, "overlay.json"): overlay} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	test := filepath.Join(at, "planted.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+filepath.Join(at, "overlay.json"), "-o", test, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return test
}

// String is the bug as a diff.
func (b Bug) String() string {
	var diff strings.Builder
	fmt.Fprintf(&diff, "%s: %s\n", b.File, b.Name)
	for _, side := range [][2]string{{"-", b.From}, {"+", b.To}} {
		for line := range strings.Lines(side[1]) {
			fmt.Fprintf(&diff, "%s%s\n", side[0], strings.TrimSuffix(line, "\n"))
		}
	}
	return diff.String()
}
