package worker

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/launcher"
	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/runtimes/node"
)

// Paths in a sandbox of a language with a launcher.
const (
	launcherProgram  = "/forerun/forerun"
	nodeFolder       = "/forerun/node"
	nodeModules      = "/node_modules" // where Node looks last, from every folder
	nodeModulesBuilt = "node/packages/node_modules"
)

// minNodeMajor is the oldest Node that the runtime works on.
const minNodeMajor = 18

// servedNode is the version that actions ask for, which a Node of another one serves if need be.
const servedNode = 20

// versions are what was found of a language: the first serves its default, and the version that actions ask for unless one
// is of just that.
type versions struct {
	name   string // of the language, in kinds
	served int
	exact  bool // one of the served version was found
	kinds  map[string]*language
}

func (v *versions) add(major int, l *language) {
	served, own := v.name+":"+strconv.Itoa(v.served), v.name+":"+strconv.Itoa(major)
	if v.kinds == nil {
		v.kinds = map[string]*language{v.name + ":default": l, served: l}
	}
	if v.kinds[own] == nil || major == v.served && !v.exact {
		v.kinds[own] = l
	}
	v.exact = v.exact || major == v.served
}

// newLaunched is a language whose processes the launcher starts.
func newLaunched(program string, command ...string) *language {
	return &language{
		argv:       append([]string{launcherProgram, launcher.Command}, command...),
		processEnv: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "LANG=C.UTF-8"},
		binds:      []sandbox.Bind{{Host: program, Inside: launcherProgram}},
		launched:   true,
	}
}

// newNative runs programs that bring everything with them.
func newNative(program string) *language {
	l := newLaunched(program, "native")
	l.standby = true
	return l
}

// discoverNode finds the machine's Nodes.
func discoverNode(ctx context.Context, s Sources) map[string]*language {
	names := s.Node
	if names == nil {
		names = []string{"/usr/bin/node", "/usr/local/bin/node", "node"}
	}
	found := versions{name: "nodejs", served: servedNode}
	seen := make(map[string]bool)
	for _, name := range names {
		path, err := resolve(name)
		if err != nil || seen[path] {
			continue
		}
		seen[path] = true
		major, err := nodeMajor(ctx, path)
		if err != nil || major < minNodeMajor {
			continue
		}
		l, err := newNode(s, path)
		if err != nil {
			continue
		}
		found.add(major, l)
	}
	return found.kinds
}

// resolve finds the file that a program's name stands for.
func resolve(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// nodeMajor asks a Node for its version, "v20.11.1".
func nodeMajor(ctx context.Context, path string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return 0, err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	return strconv.Atoi(major)
}

func newNode(s Sources, path string) (*language, error) {
	l := newLaunched(s.Program, "nodejs", path, nodeFolder+"/"+node.Entry)
	l.standby = true
	names, err := fs.Glob(node.Sources, "*")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := node.Sources.ReadFile(name)
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, sandbox.File{Path: nodeFolder + "/" + name, Data: text, Mode: 0o444})
	}
	l.bindProgram(path)
	l.bindFolder(filepath.Join(s.Runtimes, nodeModulesBuilt), nodeModules)
	return l, nil
}

// bindProgram shows a program where the sandbox does not have it anyway.
func (l *language) bindProgram(path string) {
	if !inBase(path) {
		l.binds = append(l.binds, sandbox.Bind{Host: path, Inside: path})
	}
}

// inBase reports whether every sandbox sees a path of the host.
func inBase(path string) bool {
	return strings.HasPrefix(path, "/usr/bin/") || strings.HasPrefix(path, "/usr/lib/")
}

// bindFolder shows a folder if there is one.
func (l *language) bindFolder(host, inside string) {
	if info, err := os.Stat(host); err == nil && info.IsDir() {
		l.binds = append(l.binds, sandbox.Bind{Host: host, Inside: inside})
	}
}
