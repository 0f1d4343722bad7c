package worker

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/sandbox"
)

// Languages are the languages that this machine can run, by the kinds of actions.
type Languages struct{ kinds map[string]*language }

// language is how the runtime of one kind is started.
type language struct {
	argv       []string
	processEnv []string          // of the initializer
	env        map[string]string // besides, from the loading of the code on
	files      []sandbox.File
	binds      []sandbox.Bind
	standby    bool           // of a launched one: a second process may wait beside the first one; while it does, nothing of it runs
	launched   bool           // the initializer is internal/launcher, and a handler serves several activations, one after the other
	importing  *language      // for code that imports packages that take long to load: its initializer has loaded them; nil: none do
	imports    *regexp.Regexp // finds such code
}

// of is the language as an action needs it. An archive, and code that says where packages are, may bring others of the same names.
func (l *language) of(a *forerun.Action) *language {
	if l.importing == nil || a.Exec.Binary || strings.Contains(a.Exec.Code, "sys.path") {
		return l
	}
	if l.imports.MatchString(a.Exec.Code[:min(len(a.Exec.Code), importsWithin)]) {
		return l.importing
	}
	return l
}

// importsWithin is how many bytes at the beginning of some code are searched for what it imports.
const importsWithin = 64 << 10

// Sources say where to look for languages.
type Sources struct {
	Program  string   // path of the forerun binary, which launches the languages whose processes cannot be forked; empty: they are left out
	Runtimes string   // the folder beside it with what the build made for languages, or empty
	Python   []string // names or paths of interpreters, the preferred one first; nil: those of the machine
	Node     []string // the same
	Java     []string // the same; needs the runtime in Runtimes
}

// Discover finds the machine's interpreters. A machine without any is not an error: its kinds are unknown.
func Discover(ctx context.Context, s Sources) *Languages {
	var python, node map[string]*language
	l := &Languages{kinds: make(map[string]*language)}
	var looking sync.WaitGroup
	looking.Go(func() { python = discoverPythons(ctx, s) })
	if s.Program != "" {
		looking.Go(func() { node = discoverNode(ctx, s) })
		l.kinds["native"] = newNative(s.Program)
		maps.Copy(l.kinds, discoverJava(s))
	}
	looking.Wait()
	maps.Copy(l.kinds, python)
	maps.Copy(l.kinds, node)
	return l
}

// Absent lists the folders of the build that are not beside the binary, and says what functions lack without each.
func (l *Languages) Absent(s Sources) (lacks []string) {
	for _, part := range []struct{ kind, folder, lack string }{
		{"python:3", "python/packages", "Python functions import boto3, redis, requests and openwhisk only if they bring them"},
		{"nodejs:default", nodeModulesBuilt, "Node functions require @aws-sdk/client-s3, ioredis, openwhisk, redis and forerun only if they bring them"},
		{"", javaBuilt, "no Java function runs"},
	} {
		if part.kind != "" && l.kinds[part.kind] == nil {
			continue
		}
		folder := filepath.Join(s.Runtimes, part.folder)
		if _, err := os.Stat(folder); err != nil {
			lacks = append(lacks, folder+" is missing: "+part.lack)
		}
	}
	return lacks
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
	if missing := l.missing(kind); missing != "" {
		return nil, forerun.Errorf(forerun.Invalid, "kind", "Actions of the kind %q cannot be run: this machine has no %s; install it and start the server again.", kind, missing)
	}
	return nil, forerun.Errorf(forerun.Invalid, "kind", "The kind %q is not one that this server runs: use one of %s.", kind, strings.Join(l.Kinds(), ", "))
}

// missing names what a machine needs that runs no kind of this one's language at all; empty if that is not the reason.
func (l *Languages) missing(kind string) string {
	name, _, _ := strings.Cut(kind, ":")
	for known := range l.kinds {
		if strings.HasPrefix(known, name+":") {
			return ""
		}
	}
	switch name {
	case "python":
		return fmt.Sprintf("Python 3.%d or newer", minPythonMinor)
	case "nodejs":
		return fmt.Sprintf("Node %d or newer", minNodeMajor)
	case "java":
		return fmt.Sprintf("Java %d or newer, or was without a JDK when Forerun was built (make build)", minJavaMajor)
	}
	return ""
}
