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
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/runtimes"
)

// Paths in a sandbox of Python.
const (
	runtimeFolder  = "/forerun/python"
	packagesFolder = "/forerun/packages"
)

// probeLimit is how long an interpreter may take to say what it is.
const probeLimit = 10 * time.Second

// minPythonMinor is the oldest Python 3 that the runtime works on.
const minPythonMinor = 9

//go:embed probe.py
var pythonProbe string

// discoverPythons finds the configured interpreters, or else those of the machine.
func discoverPythons(ctx context.Context, s Sources) map[string]*language {
	if s.Python != nil {
		return probePythons(ctx, s.Python, s)
	}
	if found := probePythons(ctx, installedPythons(), s); len(found) > 0 {
		return found
	}
	return probePythons(ctx, []string{"python3"}, s) // which may be a script that looks for one, and takes its time
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

// probePythons looks at interpreters, all at a time; where two can run a kind the one named first does.
func probePythons(ctx context.Context, names []string, s Sources) map[string]*language {
	found := make([]map[string]*language, len(names))
	var probing sync.WaitGroup
	for i, name := range names {
		probing.Go(func() {
			python, minor, err := probePython(ctx, name, s)
			if err != nil {
				return
			}
			found[i] = map[string]*language{"python:3": python, "python:default": python, "python:3." + strconv.Itoa(minor): python}
		})
	}
	probing.Wait()
	all := make(map[string]*language)
	for _, kinds := range slices.Backward(found) {
		maps.Copy(all, kinds)
	}
	return all
}

// probed is what probe.py says of an interpreter.
type probed struct {
	Executable string            `json:"executable"`
	Prefix     string            `json:"prefix"`
	Minor      int               `json:"minor"`
	Modules    map[string][]byte `json:"modules"` // the runtime, compiled, by file name
}

// probePython asks an interpreter what it is, and has it compile the runtime.
func probePython(ctx context.Context, name string, s Sources) (*language, int, error) {
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
	return newPython(p, s), p.Minor, nil
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

// startImporting is start with the package loaded that takes most of a cold start, a tenth of a second, and with the
// modules that its first command imports.
const startImporting = `import sys
sys.path.insert(0, "` + packagesFolder + `")
try:
    import encodings.idna, redis # the first is what every connection looks a host up with
except Exception: # it is too new for this Python, say: the code will see
    pass
del sys.path[0]
` + start

var importsRedis = regexp.MustCompile(`(?m)^[ \t]*(import|from)[ \t][^#\n]*\bredis\b`)

func newPython(p probed, s Sources) *language {
	packages := filepath.Join(s.Runtimes, "python", "packages")
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
	if s.Program != "" { // it extracts archives
		l.binds = append(l.binds, sandbox.Bind{Host: s.Program, Inside: launcherProgram})
	}
	l.bindFolder(packages, packagesFolder)
	if _, err := os.Stat(filepath.Join(packages, "redis")); err == nil {
		importing := *l
		importing.argv = append(slices.Clone(l.argv[:len(l.argv)-1]), startImporting)
		l.importing, l.imports = &importing, importsRedis
	}
	return l
}
