package project

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// readFolder zips a folder. The archive depends on the files' names, contents and executable bits alone, so that the same
// folder is the same code.
func readFolder(folder, kind string) (content []byte, warnings []string, err error) {
	if kind == "" {
		return nil, nil, fmt.Errorf("the kind of the folder %s cannot be told: it holds neither __main__.py, package.json, index.js, exec nor main.go; give it (kind, like %s)", folder, python)
	}
	var archive bytes.Buffer
	z := &zipper{w: zip.NewWriter(&archive)}
	if err := z.addFolder(folder); err != nil {
		return nil, nil, fmt.Errorf("the folder %s cannot be zipped: %w", folder, err)
	}
	if err := z.w.Close(); err != nil {
		return nil, nil, err
	}
	return archive.Bytes(), append(z.leftOut, lacksPackages(folder, kind)...), nil
}

// Ignored tells the names that are no part of a function, nor of what `forerun dev` watches.
func Ignored(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", "__pycache__", ".DS_Store", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".idea", ".vscode":
		return true
	}
	return strings.HasSuffix(name, "~") || strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".pyc")
}

// zipper writes the files of a folder into an archive.
type zipper struct {
	w       *zip.Writer
	root    string // the folder, without links
	size    int64  // of the files so far
	leftOut []string
}

func (z *zipper) addFolder(folder string) (err error) {
	if z.root, err = filepath.EvalSymlinks(folder); err != nil {
		return err
	}
	if z.root, err = filepath.Abs(z.root); err != nil {
		return err
	}
	return filepath.WalkDir(z.root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != z.root && Ignored(entry.Name()):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case entry.Type()&fs.ModeSymlink != 0:
			return z.addLink(path)
		}
		return z.addFile(path, path)
	})
}

// addLink adds what a link leads to inside the folder: the content of a file, and of a folder the link itself, which may be
// part of a circle. A link that leads nowhere is left out: editors mark open files so. So is one that leads out of the
// folder, lest a project that is not one's own takes along files that are (a virtual environment has such links as well).
func (z *zipper) addLink(path string) error {
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return z.leaveOut(path, "a link to nothing")
	case err != nil:
		return z.leaveOut(path, "a link that cannot be followed")
	}
	within, err := filepath.Rel(z.root, target)
	if err != nil || !filepath.IsLocal(within) {
		if isInterpreter(path) {
			return nil
		}
		return z.leaveOut(path, "a link out of the folder; copy what it leads to into the folder if the function needs it")
	}
	info, err := os.Stat(target)
	if err != nil || !info.IsDir() {
		return errors.Join(err, z.addFile(path, target))
	}
	to, err := filepath.Rel(filepath.Dir(path), target)
	if err != nil {
		return err
	}
	return z.add(path, fs.ModeSymlink|0o777, []byte(filepath.ToSlash(to)))
}

// isInterpreter tells the interpreter of a virtual environment, which the server has.
func isInterpreter(path string) bool {
	_, err := os.Stat(filepath.Join(filepath.Dir(path), "..", "pyvenv.cfg"))
	return err == nil && strings.HasPrefix(filepath.Base(path), "python")
}

func (z *zipper) leaveOut(path, why string) error {
	name, err := filepath.Rel(z.root, path)
	z.leftOut = append(z.leftOut, fmt.Sprintf("left out %s: %s", name, why))
	return err
}

// addFile adds the content of a file under the name that path is in the folder.
func (z *zipper) addFile(path, file string) error {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if z.size += int64(len(content)); z.size > 4*maxCode {
		return fmt.Errorf("it has more than %d MiB of files: remove those that the function does not need", 4*maxCode>>20)
	}
	return z.add(path, 0o644|info.Mode()&0o111, content)
}

func (z *zipper) add(path string, mode fs.FileMode, content []byte) error {
	name, err := filepath.Rel(z.root, path)
	if err != nil {
		return err
	}
	header := &zip.FileHeader{Name: filepath.ToSlash(name), Method: zip.Deflate, Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)}
	header.SetMode(mode)
	entry, err := z.w.CreateHeader(header)
	if err != nil {
		return err
	}
	_, err = entry.Write(content)
	return err
}
