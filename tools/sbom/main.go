// Command sbom joins the bills of materials of Forerun's parts to one CycloneDX
// file, and writes NOTICE from it:
//
//	sbom -version VERSION -out FILE PART...
//	sbom -notice NOTICE FILE
//
// tools/sbom.sh makes the parts with CycloneDX's tools for each language.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run() error {
	version := flag.String("version", "", "the version of Forerun")
	out := flag.String("out", "", "the joined file to write")
	notice := flag.String("notice", "", "the NOTICE to write")
	flag.Parse()
	root := tree(".")
	if *notice != "" {
		bom, err := read(flag.Arg(0))
		if err != nil {
			return err
		}
		text, err := root.notice(bom)
		if err != nil {
			return err
		}
		return os.WriteFile(*notice, []byte(text), 0o644)
	}
	bom, err := root.join(*version, flag.Args())
	if err != nil {
		return err
	}
	return write(*out, bom)
}

// tree is the folder of the repository, in which `make build` has built.
type tree string

// join puts the components of all parts below one application. What a part itself stands for is a component, too.
func (t tree) join(version string, parts []string) (*cyclonedx.BOM, error) {
	main := cyclonedx.Component{
		BOMRef: "forerun", Type: cyclonedx.ComponentTypeApplication, Name: "forerun", Version: version,
		Licenses: licence("Apache-2.0"),
	}
	components, err := t.vendored()
	if err != nil {
		return nil, err
	}
	needs := make(map[string][]string)
	for _, name := range parts {
		part, err := read(name)
		if err != nil {
			return nil, err
		}
		components = append(components, all(part)...)
		for _, d := range deref(part.Dependencies) {
			needs[d.Ref] = append(needs[d.Ref], deref(d.Dependencies)...)
		}
	}
	if err := t.license(components); err != nil {
		return nil, err
	}
	bom := cyclonedx.NewBOM()
	bom.SpecVersion, bom.JSONSchema = cyclonedx.SpecVersion1_6, "http://cyclonedx.org/schema/bom-1.6.schema.json"
	bom.Metadata = &cyclonedx.Metadata{Timestamp: time.Now().UTC().Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = dependencies(main.BOMRef, components, needs)
	return bom, nil
}

// all gives the components of a part, with the one that the part describes. Which files something was found in is left out.
func all(part *cyclonedx.BOM) []cyclonedx.Component {
	found := deref(part.Components)
	if m := part.Metadata; m != nil && m.Component != nil {
		found = append(found, *m.Component)
	}
	for i := range found {
		found[i].Evidence = nil
	}
	return found
}

// vendored gives what others wrote and the repository holds, and the binary with it.
func (t tree) vendored() ([]cyclonedx.Component, error) {
	text, err := os.ReadFile(t.path(composer, "package.json"))
	if err != nil {
		return nil, err
	}
	var p struct{ Name, Version, License string }
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", composer, err)
	}
	purl := "pkg:npm/" + p.Name + "@" + p.Version
	return []cyclonedx.Component{{
		BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: p.Name, Version: p.Version, PackageURL: purl,
		Licenses: licence(p.License),
	}}, nil
}

// dependencies lets the application depend on each component that no other depends on.
func dependencies(root string, components []cyclonedx.Component, needs map[string][]string) *[]cyclonedx.Dependency {
	needed := make(map[string]bool)
	for _, refs := range needs {
		for _, ref := range refs {
			needed[ref] = true
		}
	}
	found := make([]cyclonedx.Dependency, 0, len(components)+1)
	for _, c := range components {
		if !needed[c.BOMRef] {
			needs[root] = append(needs[root], c.BOMRef)
		}
		found = append(found, dependency(c.BOMRef, needs))
	}
	found = append(found, dependency(root, needs))
	return &found
}

func dependency(ref string, needs map[string][]string) cyclonedx.Dependency {
	refs := append([]string{}, needs[ref]...) // a list in the file, even if it is empty
	slices.Sort(refs)
	refs = slices.Compact(refs)
	return cyclonedx.Dependency{Ref: ref, Dependencies: &refs}
}

func licence(id string) *cyclonedx.Licenses {
	return &cyclonedx.Licenses{{License: &cyclonedx.License{ID: id}}}
}

// ours reports whether a component is a part of Forerun itself.
func ours(c cyclonedx.Component) bool {
	return c.Group == "dev.forerun" || c.Name == "forerun-node-packages" || c.Name == "forerun-console" || c.Name == "forerun" || c.Name == "forerun.dev/forerun"
}

// name is the name of a component in its language.
func name(c cyclonedx.Component) string {
	switch {
	case c.Group == "":
		return c.Name
	case strings.HasPrefix(c.PackageURL, "pkg:maven/"):
		return c.Group + ":" + c.Name
	}
	return c.Group + "/" + c.Name
}

func read(name string) (*cyclonedx.BOM, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w; `make sbom` writes it", err)
	}
	defer f.Close()
	bom := new(cyclonedx.BOM)
	if err := cyclonedx.NewBOMDecoder(f, cyclonedx.BOMFileFormatJSON).Decode(bom); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return bom, nil
}

func write(name string, bom *cyclonedx.BOM) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := cyclonedx.NewBOMEncoder(f, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

func deref[T any](list *[]T) []T {
	if list == nil {
		return nil
	}
	return *list
}
