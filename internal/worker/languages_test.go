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
	if l.kinds["python:3"] == nil {
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
	if discover().kinds["python:3"] == nil {
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

func TestCodeThatImportsRedis(t *testing.T) {
	sources := Sources{Runtimes: t.TempDir()}
	packages := filepath.Join(sources.Runtimes, "python", "packages")
	if l := newPython(probed{}, sources); l.importing != nil {
		t.Error("a package is imported that is not there")
	}
	if err := os.MkdirAll(filepath.Join(packages, "redis"), 0o700); err != nil {
		t.Fatal(err)
	}
	l := newPython(probed{}, sources)
	for code, want := range map[string]bool{
		"import redis":                                             true,
		"import os\n\nimport json, redis as r":                     true,
		"from redis.client import Redis":                           true,
		"def main(a):\n\timport redis":                             true,
		"import redistribute":                                      false,
		"import os # and redis":                                    false,
		"def main(a): return {'redis': 'no'}":                      false,
		"import sys\nsys.path.insert(0, '/tmp/own')\nimport redis": false,
	} {
		a := &forerun.Action{Exec: forerun.Exec{Code: code}}
		if got := l.of(a) == l.importing; got != want {
			t.Errorf("%q: %v", code, got)
		}
		if a.Exec.Binary = true; l.of(a) != l {
			t.Error("an archive may bring its own")
		}
	}
}

// fakeNode is a program that says that it is a Node of some version.
func fakeNode(t *testing.T, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+version+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhichNodeRunsWhat(t *testing.T) {
	old, first, second := fakeNode(t, "v17.9.1"), fakeNode(t, "v22.1.0"), fakeNode(t, "v20.20.2")
	for _, c := range []struct {
		found []string
		runs  map[string]string
	}{
		{[]string{old, "/nowhere/node", "/bin/false"}, map[string]string{}},
		{[]string{old, first}, map[string]string{"nodejs:default": first, "nodejs:20": first, "nodejs:22": first}},
		{[]string{first, second}, map[string]string{"nodejs:default": first, "nodejs:20": second, "nodejs:22": first}},
	} {
		l := Discover(t.Context(), Sources{Program: "/bin/true", Python: []string{}, Node: c.found, Java: []string{}})
		for kind, program := range c.runs {
			if found := l.kinds[kind]; found == nil || !slices.Contains(found.argv, program) || !slices.Contains(l.Folders(), program) {
				t.Errorf("of %v, %s is not run by %s but by %+v", c.found, kind, program, found)
			}
		}
		if len(l.kinds) != len(c.runs)+1 { // native
			t.Errorf("%v runs %v", c.found, l.Kinds())
		}
	}
}

func TestWhichJavaRunsWhat(t *testing.T) {
	runtimes := t.TempDir()
	home := func(version string) string {
		home := t.TempDir()
		for name, text := range map[string]string{"bin/java": "", "release": "IMPLEMENTOR=\"X\"\nJAVA_VERSION=\"" + version + "\"\n"} {
			path := filepath.Join(home, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		return home
	}
	old, first, second := home("11.0.2"), home("21"), home("17.0.15")
	sources := Sources{Program: "/bin/true", Runtimes: runtimes, Python: []string{}, Node: []string{}}
	for _, h := range []string{old, first, second} {
		sources.Java = append(sources.Java, h+"/bin/java")
	}
	if l := Discover(t.Context(), sources); l.Check("java:17") == nil {
		t.Error("java:17 is run without its runtime")
	}
	for _, jar := range javaJars {
		folder := filepath.Join(runtimes, javaBuilt)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, jar), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l := Discover(t.Context(), sources)
	for kind, home := range map[string]string{"java:default": first, "java:21": first, "java:17": second} {
		if found := l.kinds[kind]; found == nil || !slices.Contains(found.argv, home+"/bin/java") || !slices.Contains(l.Folders(), home) {
			t.Errorf("%s is not run by %s but by %+v", kind, home, found)
		}
	}
	if l.Check("java:11") == nil {
		t.Error("a Java that is too old is run")
	}
}
