package worker

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

func TestKinds(t *testing.T) {
	l := discover()
	if len(l.kinds) == 0 {
		t.Skip("this machine has no Python")
	}
	for _, kind := range []string{"python:3", "python:default"} {
		if err := l.Check(kind); err != nil {
			t.Error(err)
		}
	}
	err := l.Check("python:2")
	if forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), strings.Join(l.Kinds(), ", ")) {
		t.Errorf("%v", err)
	}
}

func TestNoLanguages(t *testing.T) {
	old := filepath.Join(t.TempDir(), "python3")
	script := "#!/bin/sh\necho '{\"executable\": \"/x\", \"prefix\": \"/usr\", \"minor\": 8}'\n"
	if err := os.WriteFile(old, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	l := Discover(t.Context(), Sources{Python: []string{old, "/nowhere/python3", "/bin/false", "/bin/echo"}})
	if err := l.Check("python:3"); forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), "install it") {
		t.Errorf("%v with the kinds %v", err, l.Kinds())
	}
}

func TestPackagesAreShown(t *testing.T) {
	if len(discover().kinds) == 0 {
		t.Skip("this machine has no Python")
	}
	runtimes := t.TempDir()
	packages := filepath.Join(runtimes, "python", "packages")
	if err := os.MkdirAll(packages, 0o700); err != nil {
		t.Fatal(err)
	}
	l := Discover(t.Context(), Sources{Runtimes: runtimes})
	want := sandbox.Bind{Host: packages, Inside: packagesFolder}
	if python := l.kinds["python:3"]; python == nil || !slices.Contains(python.binds, want) || !slices.Contains(l.Folders(), packages) {
		t.Errorf("%+v is not among the binds", want)
	}
}
