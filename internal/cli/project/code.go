package project

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"forerun.dev/forerun/internal/cli/whisk"
)

// maxManifest bounds what is read of a jar's manifest, in bytes.
const maxManifest = 1 << 20

// maxCode is how much code any server takes, as it is sent, in bytes (--max-code).
const maxCode = 60 << 20

// The kinds that files are guessed to be.
const (
	python = "python:3"
	nodejs = "nodejs:20"
	java   = "java:17"
	native = "native"
)

// ReadCode makes what an action executes of a source file, an archive, a native executable or a folder, which is zipped.
// Go source is compiled. An empty kind is guessed from the file. warnings tell which links in a folder the archive does not
// have, and why, and which packages the folder lacks.
func ReadCode(path, kind, main string) (code *whisk.Exec, warnings []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("the function's code cannot be read: %w", err)
	}
	if kind == "" && info.IsDir() {
		kind = guessFolder(path)
	}
	var content []byte
	switch {
	case info.IsDir() && isGo(kind): // compiled below
	case info.IsDir():
		content, warnings, err = readFolder(path, kind)
	default:
		kind, content, err = readFile(path, kind)
	}
	if err == nil && isGo(kind) && !isBinary(content) {
		content, err = buildGo(path, main)
		kind, main = native, ""
	}
	if err != nil {
		return nil, nil, err
	}
	code, err = execOf(path, kind, main, content)
	return code, warnings, err
}

func execOf(path, kind, main string, content []byte) (*whisk.Exec, error) {
	if strings.HasPrefix(kind, "java") && main == "" && mainClass(content) == "" {
		return nil, fmt.Errorf("the manifest of %s does not name a main class: give one (main, like org.example.Hello)", path)
	}
	exec := &whisk.Exec{Kind: kind, Main: main, Binary: kind == native || isBinary(content)}
	if !exec.Binary && !utf8.Valid(content) {
		return nil, fmt.Errorf("%s is neither UTF-8 text nor an archive or executable: save the source as UTF-8", path)
	}
	code := string(content)
	if exec.Binary {
		code = base64.StdEncoding.EncodeToString(content)
	}
	if len(code) > maxCode {
		return nil, fmt.Errorf("%s is %d MiB of code, as it is sent, and a server takes at most %d MiB: leave out files that the function does not need", path, len(code)>>20, maxCode>>20)
	}
	exec.Code = &code
	return exec, nil
}

// isBinary tells archives (zip, jar, and tar compressed with gzip) and executables from source text.
func isBinary(content []byte) bool {
	for _, magic := range []string{"PK\x03\x04", "PK\x05\x06", "\x1f\x8b"} {
		if bytes.HasPrefix(content, []byte(magic)) {
			return true
		}
	}
	return isELF(content)
}

func isELF(content []byte) bool { return bytes.HasPrefix(content, []byte("\x7fELF")) }

func isScript(content []byte) bool { return bytes.HasPrefix(content, []byte("#!")) }

func readFile(path, kind string) (string, []byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("the function's code cannot be read: %w", err)
	}
	if kind == "" {
		kind, err = guessKind(path, content)
	}
	return kind, content, err
}

// guessKind tells the kind by the file's ending, as wsk does, or by its first bytes.
func guessKind(path string, content []byte) (string, error) {
	switch ending := strings.ToLower(filepath.Ext(path)); {
	case ending == ".py":
		return python, nil
	case ending == ".js", ending == ".mjs", ending == ".cjs":
		return nodejs, nil
	case ending == ".jar":
		return java, nil
	case ending == ".zip":
		return guessZip(path, content)
	case ending == ".go":
		return golang, nil
	case ending == ".json":
		return "", fmt.Errorf("the kind of %s cannot be told: JSON is not a function. If it is a composition that `forerun compose` writes, name it below compositions: in a %s and run `forerun deploy`", path, FileName)
	case isELF(content), isScript(content):
		return native, nil
	}
	return "", fmt.Errorf("the kind of %s cannot be told by its ending: give it with --kind, or kind: in a project file (%s, %s, %s, %s or %s)", path, python, nodejs, java, golang, native)
}

// guessFolder tells the kind of a folder by the file where the runtime begins; empty if there is none.
func guessFolder(folder string) string {
	return guessBeginning(func(file string) bool {
		info, err := os.Stat(filepath.Join(folder, file))
		return err == nil && info.Mode().IsRegular()
	})
}

// guessZip is the same for an archive.
func guessZip(path string, content []byte) (string, error) {
	archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", path, err)
	}
	kind := guessBeginning(func(file string) bool {
		return slices.ContainsFunc(archive.File, func(f *zip.File) bool { return f.Name == file })
	})
	if kind == "" {
		return "", fmt.Errorf("the kind of %s cannot be told: it holds neither __main__.py, package.json, index.js, exec nor main.go; give it (kind, like %s)", path, python)
	}
	return kind, nil
}

func guessBeginning(has func(file string) bool) string {
	for _, guess := range []struct{ file, kind string }{
		{"__main__.py", python}, {"package.json", nodejs}, {"index.js", nodejs}, {"index.mjs", nodejs}, {"exec", native}, {"go.mod", golang}, {"main.go", golang},
	} {
		if has(guess.file) {
			return guess.kind
		}
	}
	return ""
}

// mainClass is the class that a jar's manifest names; empty if there is none.
func mainClass(jar []byte) string {
	archive, err := zip.NewReader(bytes.NewReader(jar), int64(len(jar)))
	if err != nil {
		return ""
	}
	manifest, err := archive.Open("META-INF/MANIFEST.MF")
	if err != nil {
		return ""
	}
	defer manifest.Close()
	text, _ := io.ReadAll(io.LimitReader(manifest, maxManifest)) // what can be read of it may do
	for line := range strings.Lines(string(text)) {
		if class, ok := strings.CutPrefix(line, "Main-Class:"); ok {
			return strings.TrimSpace(class)
		}
	}
	return ""
}
