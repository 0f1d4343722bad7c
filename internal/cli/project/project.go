// Package project reads a project file, forerun.yaml, or a folder of functions,
// and says what is to be deployed: a list of entities with the bodies of the
// requests that make them.
//
// It promises that the same files give the same bodies, and that an error names
// the place in the file. It reads files only; what is deployed already, and
// sending anything, is its caller's.
package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"forerun.dev/forerun/docs"
	"forerun.dev/forerun/internal/textfile"
)

// FileName is the project file's usual name.
const FileName = "forerun.yaml"

// maxProblems bounds how many problems one error tells.
const maxProblems = 10

// Project is a project file, read and valid, or what a folder of functions stands for.
type Project struct {
	Path    string   // of the project file; empty if there is none
	Folder  string   // that files are relative to
	Skipped []string // the names in a folder of functions that are not functions
	file    *file
	root    *node // of the project file, for places; nil if there is none
}

// file is the content of a project file, as its schema describes it.
type file struct {
	Project      string                  `json:"project"`
	Packages     map[string]*pkg         `json:"packages"`
	Actions      map[string]*action      `json:"actions"`
	Sequences    map[string]*sequence    `json:"sequences"`
	Compositions map[string]*composition `json:"compositions"`
	Workflows    map[string]*workflow    `json:"workflows"`
	Triggers     map[string]*trigger     `json:"triggers"`
	Rules        map[string]*rule        `json:"rules"`
}

type pkg struct {
	Bind         string                  `json:"bind"`
	Shared       bool                    `json:"shared"`
	Inputs       values                  `json:"inputs"`
	Env          values                  `json:"env"`
	Secrets      values                  `json:"secrets"`
	Annotations  values                  `json:"annotations"`
	Actions      map[string]*action      `json:"actions"`
	Sequences    map[string]*sequence    `json:"sequences"`
	Compositions map[string]*composition `json:"compositions"`
	Workflows    map[string]*workflow    `json:"workflows"`
}

type action struct {
	File, Folder, Kind, Main string
	common
}

// common is what functions, sequences and compositions have.
type common struct {
	Limits      limits `json:"limits"`
	Inputs      values `json:"inputs"`
	Env         values `json:"env"`
	Secrets     values `json:"secrets"`
	Annotations values `json:"annotations"`
	Web         any    `json:"web"` // true, false, "yes", "no", "raw"; nil: not said
}

type limits struct{ Timeout, Memory, Logs, Concurrency *int }

// sequence is written as a list of actions, or as an object.
type sequence struct {
	Actions []string `json:"actions"`
	common
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *sequence) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, &s.Actions)
	}
	type plain sequence
	return json.Unmarshal(data, (*plain)(s))
}

// composition is written as the name of its file, or as an object.
type composition struct {
	File string `json:"file"`
	common
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *composition) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		return json.Unmarshal(data, &c.File)
	}
	type plain composition
	return json.Unmarshal(data, (*plain)(c))
}

type trigger struct{ Inputs, Annotations values }

type rule struct {
	Trigger, Action string
	Enabled         *bool
	Annotations     values
}

// values are parameters or annotations, by name.
type values map[string]json.RawMessage

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Load reads the project that a path names: a project file, a folder with one, or a folder of functions. An empty path is
// the project file of the current folder: files that happen to be there are no functions unless somebody says so.
func Load(path string) (*Project, error) {
	inferred := path == ""
	if inferred {
		path = FileName
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); inferred && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s in %s: write one, name another, or name a folder of functions, like `forerun deploy .`", FileName, filepath.Dir(path))
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("there is no project: %w", err)
	}
	if !info.IsDir() {
		return loadFile(path)
	}
	p, err := loadFile(filepath.Join(path, FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return loadFolder(path)
	}
	return p, err
}

func loadFile(path string) (*Project, error) {
	data, err := textfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("the project file cannot be read: %w", err)
	}
	content, root, problems := read(data)
	if len(problems) > 0 {
		return nil, described(path, problems)
	}
	return &Project{Path: path, Folder: filepath.Dir(path), file: content, root: root}, nil
}

// read reads and checks the text of a project file.
func read(data []byte) (*file, *node, []problem) {
	root, wrong := parse(data)
	if wrong != nil {
		return nil, nil, []problem{*wrong}
	}
	var s schema
	if err := json.Unmarshal(docs.Schema, &s); err != nil {
		return nil, nil, []problem{{1, 1, "The schema is damaged: " + err.Error()}}
	}
	if problems := validate(&s, root); len(problems) > 0 {
		return nil, nil, problems
	}
	encoded, err := root.MarshalJSON()
	if err != nil {
		return nil, nil, []problem{{1, 1, err.Error()}}
	}
	content := new(file)
	if err := json.Unmarshal(encoded, content); err != nil {
		return nil, nil, []problem{{1, 1, err.Error()}}
	}
	return content, root, nil
}

// described makes one error of problems, each with its place.
func described(path string, problems []problem) error {
	var lines []string
	for i, p := range problems {
		if i == maxProblems {
			lines = append(lines, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		lines = append(lines, fmt.Sprintf("%s:%d:%d: %s", path, p.line, p.column, p.message))
	}
	return errors.New(strings.Join(lines, "\n"))
}

// at is the error of something wrong at a place of the project file, which is named by its path in it.
func (p *Project) at(path []string, err error) error {
	if p.root == nil {
		return err
	}
	n := p.root
	for _, name := range path {
		within := n.child(name)
		if within == nil {
			break
		}
		n = within
	}
	return fmt.Errorf("%s:%d:%d: %s: %w", p.Path, n.line, n.column, strings.ReplaceAll(strings.Join(path, "."), ".[", "["), err)
}

// loadFolder makes a project of a folder of functions: each source file, archive, executable or folder with a function in
// it is an action of its name.
func loadFolder(folder string) (*Project, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("the folder cannot be read: %w", err)
	}
	content := &file{Actions: make(map[string]*action)}
	var skipped []string
	for _, entry := range entries {
		if Ignored(entry.Name()) || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		name, found := functionIn(folder, entry)
		if found == nil {
			skipped = append(skipped, entry.Name())
			continue
		}
		if content.Actions[name] != nil {
			return nil, fmt.Errorf("%s holds two functions with the name %s: write a %s that says what they are called", folder, name, FileName)
		}
		content.Actions[name] = found
	}
	if len(content.Actions) == 0 {
		return nil, fmt.Errorf("%s holds neither a %s nor a function (.py, .js, .mjs, .cjs, .go, .zip, .jar, an executable, or a folder with __main__.py, package.json, index.js or main.go)", folder, FileName)
	}
	return &Project{Folder: folder, Skipped: skipped, file: content}, nil
}

// functionIn is the action that an entry of a folder stands for, or nil.
func functionIn(folder string, entry os.DirEntry) (string, *action) {
	path, name := filepath.Join(folder, entry.Name()), entry.Name()
	if entry.IsDir() {
		if guessFolder(path) == "" {
			return "", nil
		}
		return name, &action{Folder: name}
	}
	kind := kindOfFile(path)
	if kind == "" {
		return "", nil
	}
	return strings.TrimSuffix(name, filepath.Ext(name)), &action{File: name, Kind: kind}
}

// kindOfFile guesses the kind of a file by its name and content. It is empty if it cannot be told or the guess is not safe: a
// jar without a main class and Go source without a function main are libraries, and a script is seldom a function.
func kindOfFile(path string) string {
	kind, content, err := readFile(path, "")
	if err != nil || kind == java && mainClass(content) == "" || kind == native && isScript(content) || isGo(kind) && !isGoFunction(path) {
		return ""
	}
	return kind
}
