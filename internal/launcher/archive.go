package launcher

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of an archive.
const (
	maxFiles  = 20_000
	maxBytes  = 512 << 20
	maxName   = 1024
	maxDepth  = 64
	maxTarget = 1024
)

// unpackCommand is what Main is called with, and a folder, to extract the archive on the standard input there. Runtimes that are no
// launcher's (Python) call it, so that all languages have one extractor.
const unpackCommand = "unpack"

// unpackInput does so, and returns the exit status. What is wrong with the archive is said on the standard output, without what a runtime
// puts before a sentence and behind it.
func unpackInput(folder string) int {
	data, err := readInput()
	if err == nil {
		err = unpackArchive(data, folder)
	}
	if err != nil {
		fmt.Print(strings.TrimSuffix(strings.TrimPrefix(err.Error(), initializing), "."))
		return 1
	}
	return 0
}

// readInput maps the standard input, which is a file in memory, or else reads it: memory may have room for one copy only.
func readInput() ([]byte, error) {
	info, err := os.Stdin.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return io.ReadAll(os.Stdin)
	}
	return unix.Mmap(int(os.Stdin.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
}

// How sentences for the author begin.
const (
	initializing  = "Initialization has failed due to: "
	uncompressing = initializing + "There was an error uncompressing the action archive"
)

// How archives begin.
var (
	zipMagic  = []byte("PK\x03\x04")
	gzipMagic = []byte("\x1f\x8b")
)

// isArchive tells an archive that unpackArchive takes from other code.
func isArchive(data []byte) bool {
	return bytes.HasPrefix(data, zipMagic) || bytes.HasPrefix(data, gzipMagic)
}

// unpackArchive extracts a zip file, or a tar file compressed with gzip, into the folder.
func unpackArchive(data []byte, folder string) error {
	x, err := newExtraction(folder)
	if err != nil {
		return err
	}
	defer x.root.Close()
	return x.all(data)
}

// all extracts an archive of whatever format. The error is a loadError.
func (x *extraction) all(data []byte) (err error) {
	switch {
	case bytes.HasPrefix(data, zipMagic):
		err = x.zip(data)
	case bytes.HasPrefix(data, gzipMagic):
		err = x.tar(data)
	default:
		return loadError(uncompressing + ". The file type is unsupported: use a zip file, or a tar file compressed with gzip.")
	}
	if err == nil {
		err = x.link()
	}
	if err != nil {
		return loadError(fmt.Sprintf("%s: %v.", uncompressing, pathless(err)))
	}
	return nil
}

// extraction writes the entries of an archive. Symbolic links are made last, so that nothing is written through one.
type extraction struct {
	root  *os.Root
	left  int64 // bytes that may still come
	files int
	links []link
}

type link struct{ name, target string }

func newExtraction(folder string) (*extraction, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("opening the code's folder: %w", err)
	}
	return &extraction{root: root, left: maxBytes}, nil
}

func (x *extraction) zip(data []byte) error {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return err
	}
	if len(archive.File) > maxFiles {
		return fmt.Errorf("it has %d entries, and %d are allowed", len(archive.File), maxFiles)
	}
	for _, f := range archive.File {
		if err := x.zipEntry(f); err != nil {
			return err
		}
	}
	return nil
}

func (x *extraction) zipEntry(f *zip.File) error {
	mode := f.Mode()
	if strings.HasSuffix(f.Name, "/") {
		mode = fs.ModeDir | 0o755
	}
	if mode.IsDir() {
		return x.entry(f.Name, mode, nil)
	}
	content, err := f.Open()
	if err != nil {
		return fmt.Errorf("%q: %w", f.Name, err)
	}
	defer content.Close()
	return x.entry(f.Name, mode, content)
}

func (x *extraction) tar(data []byte) error {
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	archive := tar.NewReader(plain)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content := io.Reader(archive)
		if h.Typeflag == tar.TypeSymlink {
			content = strings.NewReader(h.Linkname)
		}
		if h.Typeflag == tar.TypeLink {
			return fmt.Errorf("%q is a hard link", h.Name)
		}
		if err := x.entry(h.Name, h.FileInfo().Mode(), content); err != nil {
			return err
		}
	}
}

// entry writes one file, folder or symbolic link; of a link the content is its target.
func (x *extraction) entry(name string, mode fs.FileMode, content io.Reader) error {
	clean, err := safeName(name)
	if err != nil || clean == "." {
		return err
	}
	if x.files++; x.files > maxFiles {
		return fmt.Errorf("it has more than %d entries", maxFiles)
	}
	if mode.IsDir() {
		return x.root.MkdirAll(clean, 0o755)
	}
	if err := x.root.MkdirAll(path.Dir(clean), 0o755); err != nil {
		return err
	}
	switch mode.Type() {
	case 0:
		return x.file(clean, mode, content)
	case fs.ModeSymlink:
		target, err := io.ReadAll(io.LimitReader(content, maxTarget+1))
		if err == nil && len(target) > maxTarget {
			err = fmt.Errorf("the target of the link %q is too long", name)
		}
		x.links = append(x.links, link{clean, string(target)})
		return err
	default:
		return fmt.Errorf("%q is neither a file nor a folder", name)
	}
}

// safeName checks a name, and returns it without what means nothing, as in "./a//b".
func safeName(name string) (string, error) {
	clean := path.Clean(name)
	switch {
	case len(name) > maxName || strings.Count(clean, "/") >= maxDepth:
		return "", fmt.Errorf("the name that begins with %q is too long or too deep", name[:min(len(name), 80)])
	case name == "" || strings.ContainsAny(name, "\\\x00") || !fs.ValidPath(clean):
		return "", fmt.Errorf("%q is not a safe name", name)
	}
	return clean, nil
}

func (x *extraction) file(name string, mode fs.FileMode, content io.Reader) error {
	permissions := fs.FileMode(0o644)
	if mode&0o100 != 0 {
		permissions = 0o755
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, permissions)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(content, x.left+1))
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if x.left -= n; x.left < 0 {
		return fmt.Errorf("it extracts to more than %d MiB", maxBytes>>20)
	}
	if err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	return nil
}

// link makes the symbolic links. One that leads to nothing stays as it is. One that leads out of the folder, on whatever way, is refused.
func (x *extraction) link() error {
	x.links = slices.DeleteFunc(x.links, isInterpreter)
	for _, l := range x.links {
		if l.target == "" || path.IsAbs(l.target) || strings.ContainsRune(l.target, 0) {
			return l.leaves()
		}
		if err := x.root.Symlink(l.target, l.name); err != nil {
			return err
		}
	}
	for _, l := range x.links {
		if _, err := x.root.Stat(l.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l.leaves()
		}
	}
	return nil
}

func (l link) leaves() error {
	return fmt.Errorf("the symbolic link %q leads to %q, which is not in the archive: leave the link out, or pack the file that it leads to (zip follows links without -y)", l.name, l.target)
}

// isInterpreter reports whether a link is to the interpreter of a Python's virtualenv, which each has in "bin". The sandbox has its own, so the
// link is left out.
func isInterpreter(l link) bool {
	named, err := path.Match("virtualenv/bin/python*", l.name)
	return named && err == nil && path.IsAbs(l.target)
}

// pathless removes the paths of this side of things from an error.
func pathless(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%q: %w", path.Base(p.Path), p.Err)
	}
	return err
}
