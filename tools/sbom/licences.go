package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/CycloneDX/cyclonedx-go"
	classifier "github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

// composer is the folder of what openwhisk-composer has in the binary.
const composer = "internal/cli/compose/openwhisk-composer"

// compatible are the licences whose code may be distributed with code under Apache-2.0. MPL-2.0 is one for files that stay as they are.
var compatible = map[string]bool{
	"Apache-2.0": true, "MIT": true, "BSD-2-Clause": true, "BSD-3-Clause": true, "ISC": true, "0BSD": true,
	"BlueOak-1.0.0": true, "MPL-2.0": true,
}

// trove are the licences that Python packages name by a classifier.
var trove = map[string]string{
	"License :: OSI Approved :: Apache Software License":              "Apache-2.0",
	"License :: OSI Approved :: BSD License":                          "BSD-3-Clause",
	"License :: OSI Approved :: MIT License":                          "MIT",
	"License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}

// license gives each component its licences as SPDX names: Go modules have them by their texts, other packages by what they declare.
func (t tree) license(components []cyclonedx.Component) error {
	folders, err := t.folders(components)
	if err != nil {
		return err
	}
	for i, c := range components {
		names := declared(c)
		if len(names) == 0 {
			for _, f := range texts(folders[c.BOMRef], license) {
				names = append(names, f.licences...)
			}
		}
		if ours(c) {
			names = []string{"Apache-2.0"}
		}
		list := make(cyclonedx.Licenses, 0, len(names))
		for _, n := range slices.Compact(slices.Sorted(slices.Values(names))) {
			list = append(list, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: n}})
		}
		components[i].Licenses = &list
	}
	return nil
}

// declared gives the licences that a component names itself.
func declared(c cyclonedx.Component) (names []string) {
	if c.Licenses == nil {
		return nil
	}
	for _, choice := range *c.Licenses {
		switch {
		case choice.Expression != "":
			names = append(names, choice.Expression)
		case choice.License.ID != "":
			names = append(names, choice.License.ID)
		case trove[choice.License.Name] != "":
			names = append(names, trove[choice.License.Name])
		default:
			names = append(names, choice.License.Name)
		}
	}
	return names
}

// refused gives a sentence for each component without a licence, or with one that Forerun cannot be distributed with.
func refused(bom *cyclonedx.BOM) (faults []string) {
	for _, c := range deref(bom.Components) {
		names := declared(c)
		if len(names) == 0 {
			faults = append(faults, fmt.Sprintf("%s %s has no licence that was found", name(c), c.Version))
		}
		for _, n := range names {
			if !compatible[n] {
				faults = append(faults, fmt.Sprintf("%s %s has the licence %q, which is not known to be compatible with Apache-2.0", name(c), c.Version, n))
			}
		}
	}
	return faults
}

// folders gives the folder with each component's files, by its reference. A jar has none.
func (t tree) folders(components []cyclonedx.Component) (map[string]string, error) {
	found := make(map[string]string)
	modules := make(map[string]string)
	for _, c := range components {
		switch path, version := c.Name, c.Version; {
		case ours(c):
		case path == "std":
			found[c.BOMRef] = t.goRoot()
		case strings.HasPrefix(c.PackageURL, "pkg:golang/"):
			modules[path+"@"+version] = c.BOMRef
		case path == "openwhisk-composer":
			found[c.BOMRef] = t.path(composer)
		case strings.HasPrefix(c.PackageURL, "pkg:npm/"):
			found[c.BOMRef] = t.npm(property(c, "cdx:npm:package:path"))
		case strings.HasPrefix(c.PackageURL, "pkg:pypi/"):
			found[c.BOMRef] = t.path("bin/runtimes/python/packages", strings.ReplaceAll(path, "-", "_")+"-"+version+".dist-info")
		}
	}
	return found, t.modules(modules, found)
}

// npm is the folder of a package for Node functions, or of one that the console's page has.
func (t tree) npm(path string) string {
	folder := t.path("bin/runtimes/node/packages", path)
	if _, err := os.Stat(folder); err != nil {
		return t.path(".forerun/console", path)
	}
	return folder
}

// modules looks up where the Go tool keeps modules, and puts that into found.
func (t tree) modules(refs, found map[string]string) error {
	if len(refs) == 0 {
		return nil
	}
	args := []string{"mod", "download", "-json"}
	for module := range refs {
		args = append(args, module)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = string(t), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go mod download: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var m struct{ Path, Version, Dir string }
		if err := d.Decode(&m); err != nil {
			return err
		}
		found[refs[m.Path+"@"+m.Version]] = m.Dir
	}
	return nil
}

func (t tree) goRoot() string {
	cmd := exec.Command("go", "env", "GOROOT")
	cmd.Dir = string(t)
	out, _ := cmd.Output()
	return strings.TrimSpace(string(out))
}

func (t tree) path(names ...string) string {
	return filepath.Join(append([]string{string(t)}, names...)...)
}

func property(c cyclonedx.Component, name string) string {
	for _, p := range deref(c.Properties) {
		if p.Name == name {
			return p.Value
		}
	}
	return ""
}

// The names of files that hold a licence, and the ones that the Apache License asks to pass on.
var (
	license = regexp.MustCompile(`(?i)^(licen[cs]e|copying)`)
	notice  = regexp.MustCompile(`(?i)^notice`)
)

// text is a file of a component, with the licences found in it.
type text struct {
	content  string
	licences []string
}

// texts gives a folder's files of one kind, in the order of their names; Python has them in a folder licenses.
func texts(folder string, kind *regexp.Regexp) (found []text) {
	if folder == "" {
		return nil
	}
	for _, pattern := range []string{"*", "licenses/*"} {
		names, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, name := range names {
			if !kind.MatchString(filepath.Base(name)) {
				continue
			}
			if content, err := os.ReadFile(name); err == nil { // a folder is not a text
				found = append(found, text{string(content), classify(content)})
			}
		}
	}
	return found
}

var known = sync.OnceValue(func() *classifier.Classifier {
	c, err := assets.DefaultClassifier()
	if err != nil {
		panic(err) // its data are in the program
	}
	return c
})

// classify gives the licences whose texts are in a file.
func classify(content []byte) (names []string) {
	for _, m := range known().Match(content).Matches {
		if m.MatchType == "License" && !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}
