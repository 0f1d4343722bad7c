package project

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// lacksPackages warns of a folder that names packages and does not hold them. The server installs nothing, so the function fails at its
// first import.
func lacksPackages(folder, kind string) []string {
	const page = "Forerun installs nothing (docs/guide/dependencies.md)"
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == name })
	}
	installed := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasSuffix(e.Name(), ".dist-info") }) // pip --target
	switch {
	case strings.HasPrefix(kind, "python") && !has("virtualenv") && !installed:
		for _, name := range []string{"requirements.txt", ".venv"} {
			if has(name) {
				return []string{fmt.Sprintf("%s has no effect: install the packages into %s, as %s", filepath.Join(folder, name), filepath.Join(folder, "virtualenv"), page)}
			}
		}
	case strings.HasPrefix(kind, "nodejs") && !has("node_modules") && hasDependencies(folder):
		return []string{fmt.Sprintf("the dependencies in %s are not there: run `npm install --prefix %s` first, as %s", filepath.Join(folder, "package.json"), folder, page)}
	}
	return nil
}

// hasDependencies reports whether a folder's package.json names packages that the function needs. Node's runtime judges a file that cannot
// be read.
func hasDependencies(folder string) bool {
	content, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return false
	}
	var manifest struct {
		Dependencies map[string]any `json:"dependencies"`
	}
	err = json.Unmarshal(bytes.TrimPrefix(content, []byte("\ufeff")), &manifest)
	return err == nil && len(manifest.Dependencies) > 0
}
