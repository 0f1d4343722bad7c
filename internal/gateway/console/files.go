package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
)

// The folder is empty but for .gitignore where `make build` has not bundled the page, as when go vet looks at the package.
//
//go:embed all:dist
var dist embed.FS

// Bundle is the page that `make build` made of the folder console.
func Bundle() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name is valid
	}
	return files
}

// file is one that is served, as it is and compressed.
type file struct {
	content, packed []byte
	media, tag      string
}

// files are the files of the page, by their names.
type files map[string]*file

// pack reads the files of a page.
func pack(from fs.FS) (files, error) {
	all := make(files)
	err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		content, err := fs.ReadFile(from, name)
		if err != nil {
			return err
		}
		var packed bytes.Buffer
		to := gzip.NewWriter(&packed)
		if _, err := to.Write(content); err != nil {
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
		sum := sha256.Sum256(content)
		all[name] = &file{content, packed.Bytes(), mime.TypeByExtension(path.Ext(name)), `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	return all, err
}

// serve answers with a file. Any other path is a place within the page, which index.html shows.
func (all files) serve(w http.ResponseWriter, r *http.Request, name string) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		gateway.NotAllowed(w, r, http.MethodGet, http.MethodHead)
		return nil
	}
	f := all[name]
	if f == nil && path.Ext(name) != ".js" && path.Ext(name) != ".css" {
		f = all["index.html"]
	}
	if f == nil && len(all) == 0 {
		return forerun.Errorf(forerun.Unavailable, r.URL.Path, "This binary was built without the console: build it with `make build`.")
	}
	if f == nil {
		return forerun.Errorf(forerun.NotFound, r.URL.Path, "The requested resource could not be found.")
	}
	h := w.Header()
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Type", f.media)
	h.Set("ETag", f.tag)
	h.Set("Vary", "Accept-Encoding")
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	content := f.content
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		content = f.packed
	}
	_, _ = w.Write(content) // the client may have gone
	return nil
}
