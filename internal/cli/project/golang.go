package project

import (
	"bytes"
	_ "embed" // for launcher
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// golang is the kind of Go source. A server runs the program that it is compiled to, whose kind is native.
const golang = "go"

// launcher lets a function of OpenWhisk's Go runtime, Main(map[string]any) map[string]any, be a program. The name of the
// function stands for its Main.
//
//go:embed launcher.go.txt
var launcher string

// isGo tells the kind go and its versions.
func isGo(kind string) bool { return kind == golang || strings.HasPrefix(kind, golang+":") }

// buildGo compiles a source file, or the package in a folder, for the server: a program for Linux that needs no library.
// The same source makes the same program.
func buildGo(path, function string) ([]byte, error) {
	folder, target := filepath.Dir(path), filepath.Base(path)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		folder, target = path, "."
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("%s is source and there is no `go` here to compile it: install Go, or build it elsewhere (CGO_ENABLED=0 go build -o NAME %s) and deploy the executable", path, target)
	}
	scratch, err := os.MkdirTemp("", "forerun-go-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	program := filepath.Join(scratch, "exec")
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program}
	with, err := withLauncher(folder, target, function, scratch)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(tool, append(append(args, with...), target)...) //nolint:gosec // the person's own compiler and source
	if len(with) > 0 && target != "." {
		cmd.Args = append(cmd.Args, launcherName)
	}
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if said, err := cmd.CombinedOutput(); err != nil {
		if bytes.Contains(said, []byte(filepath.Base(scratch))) { // the launcher's call
			return nil, fmt.Errorf("%s: the function has other parameters or results than an action: write it as func(args map[string]any) map[string]any\n%s", path, bytes.TrimSpace(said))
		}
		return nil, fmt.Errorf("%s does not compile: %w\n%s", path, err, bytes.TrimSpace(said))
	}
	return os.ReadFile(program)
}

// launcherName is the file that the compiler sees beside the source.
const launcherName = "forerun_launcher.go"

// withLauncher returns the compiler's arguments that add the launcher to a package without a function main.
func withLauncher(folder, target, function, scratch string) ([]string, error) {
	functions, err := functionsOf(folder, target)
	if err != nil {
		return nil, err
	}
	if functions["main"] {
		return nil, nil
	}
	if function == "" || function == "main" {
		function = "Main"
	}
	if !functions[function] {
		return nil, fmt.Errorf("%s has neither a function main nor a function %s: write func %s(args map[string]any) map[string]any in package main", filepath.Join(folder, target), function, function)
	}
	source := filepath.Join(scratch, "launcher.go")
	if err := os.WriteFile(source, []byte(strings.ReplaceAll(launcher, "MAIN", function)), 0o600); err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(folder, launcherName): source}})
	if err != nil {
		return nil, err
	}
	list := filepath.Join(scratch, "overlay.json")
	return []string{"-overlay=" + list}, os.WriteFile(list, overlay, 0o600)
}

// functionsOf are the functions of package main in a file, or in the files of a folder.
func functionsOf(folder, target string) (map[string]bool, error) {
	files := []string{filepath.Join(folder, target)}
	if target == "." {
		files, _ = filepath.Glob(filepath.Join(folder, "*.go")) // the pattern is right
	}
	functions := make(map[string]bool)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("the source cannot be read: %w", err)
		}
		if source.Name.Name != "main" {
			return nil, errors.New(file + " is not in package main: write `package main`, because a function is a program")
		}
		for _, d := range source.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				functions[f.Name.Name] = true
			}
		}
	}
	return functions, nil
}

// isGoFunction reports whether a file is Go source that can be an action of its own.
func isGoFunction(path string) bool {
	functions, err := functionsOf(filepath.Dir(path), filepath.Base(path))
	return err == nil && (functions["main"] || functions["Main"])
}
