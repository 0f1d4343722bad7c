package pkgdoc

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// TestEveryPackageHasAComment asks the Go tool for all packages of this module and of the benchmarks'.
func TestEveryPackageHasAComment(t *testing.T) {
	for _, module := range []string{"../..", "../../bench"} {
		for _, p := range packages(t, module) {
			if len(p.GoFiles) == 0 {
				continue // only tests
			}
			start := "Package " + p.Name + " "
			if p.Name == "main" {
				start = "Command "
			}
			if !strings.HasPrefix(p.Doc, start) {
				t.Errorf("%s: the package comment begins with %q, not with %q", p.ImportPath, p.Doc, start)
			}
		}
	}
}

type pkg struct {
	ImportPath, Name, Doc string
	GoFiles               []string
}

func packages(t *testing.T, module string) (all []pkg) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,GoFiles", "./...")
	cmd.Dir = module
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v", module, err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no packages", module)
	}
	return all
}
