package worker

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/runtimes"
)

// Where a sandbox has what its runtime needs.
const (
	runtimeFolder  = "/forerun/python"
	packagesFolder = "/forerun/packages"
	codeFolder     = "/action"
)

// probeLimit is how long an interpreter may take to say what it is.
const probeLimit = 10 * time.Second

// minPythonMinor is the oldest Python 3 that the runtime works on.
const minPythonMinor = 9

//go:embed probe.py
var pythonProbe string

// Languages are the languages that this machine can run, by the kinds of actions.
type Languages struct{ kinds map[string]*language }

// language is how the runtime of one kind is started.
type language struct {
	argv       []string
	processEnv []string          // of the initializer
	env        map[string]string // besides, from the loading of the code on
	files      []sandbox.File
	binds      []sandbox.Bind
}

// Sources say where to look for languages.
type Sources struct {
	Python   []string // names or paths of interpreters, the preferred one first; nil: what the machine has
	Packages string   // folder of Python packages for all actions, or empty
}

// Discover looks at the machine's interpreters. It is no error if there are none: then no kind is known.
func Discover(ctx context.Context, s Sources) *Languages {
	l := &Languages{kinds: make(map[string]*language)}
	if s.Python != nil {
		l.probeAll(ctx, s.Python, s.Packages)
		return l
	}
	if l.probeAll(ctx, installedPythons(), s.Packages); len(l.kinds) == 0 {
		l.probeAll(ctx, []string{"python3"}, s.Packages) // which may be a script that looks for one, and takes its time
	}
	return l
}

// installedPythons are the interpreters where distributions put them, the default one first, each once.
func installedPythons() []string {
	var names []string
	for _, pattern := range []string{"python3", "python3.[0-9]", "python3.[0-9][0-9]"} {
		for _, folder := range []string{"/usr/bin/", "/usr/local/bin/"} {
			found, _ := filepath.Glob(folder + pattern) // the pattern is well-formed
			names = append(names, found...)
		}
	}
	seen := make(map[string]bool)
	return slices.DeleteFunc(names, func(name string) bool {
		real, err := filepath.EvalSymlinks(name)
		defer func() { seen[real] = true }()
		return err != nil || seen[real]
	})
}

// probeAll looks at interpreters, all at a time; where two can run a kind the one named first does.
func (l *Languages) probeAll(ctx context.Context, names []string, packages string) {
	found := make([]map[string]*language, len(names))
	var probing sync.WaitGroup
	for i, name := range names {
		probing.Go(func() {
			python, minor, err := probePython(ctx, name, packages)
			if err != nil {
				return
			}
			found[i] = map[string]*language{"python:3": python, "python:default": python, "python:3." + strconv.Itoa(minor): python}
		})
	}
	probing.Wait()
	for _, kinds := range slices.Backward(found) {
		maps.Copy(l.kinds, kinds)
	}
}

// Kinds are the kinds of actions that can be run, sorted.
func (l *Languages) Kinds() []string {
	return slices.Sorted(maps.Keys(l.kinds))
}

// Folders are the host's folders that sandboxes will bind.
func (l *Languages) Folders() []string {
	folders := make(map[string]bool)
	for _, found := range l.kinds {
		for _, b := range found.binds {
			folders[b.Host] = true
		}
	}
	return slices.Sorted(maps.Keys(folders))
}

// Check reports whether actions of a kind can be run. The error is forerun.Invalid and names the kinds that can.
func (l *Languages) Check(kind string) error {
	_, err := l.language(kind)
	return err
}

func (l *Languages) language(kind string) (*language, error) {
	if found := l.kinds[kind]; found != nil {
		return found, nil
	}
	if len(l.kinds) == 0 {
		return nil, forerun.Errorf(forerun.Invalid, "kind", "Actions of the kind %q cannot be run: this machine has no Python 3.%d or newer; install one and start the server again.", kind, minPythonMinor)
	}
	return nil, forerun.Errorf(forerun.Invalid, "kind", "The kind %q is not one that this server runs: use one of %s.", kind, strings.Join(l.Kinds(), ", "))
}

// probed is what probe.py says of an interpreter.
type probed struct {
	Executable string            `json:"executable"`
	Prefix     string            `json:"prefix"`
	Minor      int               `json:"minor"`
	Modules    map[string][]byte `json:"modules"` // the runtime, compiled, by file name
}

// probePython asks an interpreter what it is, and has it compile the runtime.
func probePython(ctx context.Context, name, packages string) (*language, int, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, 0, err
	}
	sources, err := pythonSources()
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-I", "-S", "-B", "-c", pythonProbe)
	cmd.Stdin = bytes.NewReader(sources)
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, err
	}
	var p probed
	if err := json.Unmarshal(out, &p); err != nil {
		return nil, 0, err
	}
	if p.Minor < minPythonMinor {
		return nil, 0, forerun.Errorf(forerun.Unsupported, path, "This is Python 3.%d; 3.%d or newer is needed.", p.Minor, minPythonMinor)
	}
	return newPython(p, packages), p.Minor, nil
}

// pythonSources is the runtime's source as the probe reads it: an object of file names and texts.
func pythonSources() ([]byte, error) {
	files := make(map[string]string)
	err := fs.WalkDir(runtimes.Python(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(runtimes.Python(), path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(files)
}

// start is the initializer's program: it leaves no trace of itself on the path.
const start = `import sys
sys.path.insert(0, "` + runtimeFolder + `")
from forerun_runtime.initializer import main
del sys.path[0]
main()`

func newPython(p probed, packages string) *language {
	l := &language{
		argv: []string{p.Executable, "-I", "-S", "-B", "-c", start},
		processEnv: []string{
			"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8",
			"OPENBLAS_NUM_THREADS=1", // threads of an initializer do not survive the fork of a handler
		},
	}
	for name, code := range p.Modules {
		l.files = append(l.files, sandbox.File{Path: runtimeFolder + "/forerun_runtime/" + name, Data: code, Mode: 0o444})
	}
	if p.Prefix != "/usr" {
		l.binds = append(l.binds, sandbox.Bind{Host: p.Prefix, Inside: p.Prefix})
	}
	if info, err := os.Stat(packages); err == nil && info.IsDir() {
		l.binds = append(l.binds, sandbox.Bind{Host: packages, Inside: packagesFolder})
	}
	return l
}
