package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/CycloneDX/cyclonedx-go"
)

const preamble = `Forerun

Forerun is under the Apache License 2.0, which is in the file LICENSE. Its
binary and its distribution contain the components below, which others wrote.
The file sbom.cdx.json of a distribution has their versions. After the list come
the notices of components under the Apache License, and then the licences of the
others. ` + "`make notice`" + ` writes this file.
`

// kinds are the sections of NOTICE, by how package URLs begin.
var kinds = []struct{ purl, title string }{
	{"pkg:golang/", "In the binary"},
	{"pkg:npm/", "In the packages for Node functions, and in the binary for compositions and the console"},
	{"pkg:pypi/", "In the packages for Python functions"},
	{"pkg:maven/", "In the runtime of Java functions"},
}

// notice is the content of NOTICE. It names no versions, so it changes only if a component or a licence does.
func (t tree) notice(bom *cyclonedx.BOM) (string, error) {
	components := deref(bom.Components)
	slices.SortFunc(components, func(a, b cyclonedx.Component) int { return strings.Compare(name(a), name(b)) })
	folders, err := t.folders(components)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(preamble)
	for _, kind := range kinds {
		heading(&out, kind.title)
		for _, c := range components {
			if strings.HasPrefix(c.PackageURL, kind.purl) && !ours(c) {
				fmt.Fprintf(&out, "%-52s %s\n", title(c), strings.Join(declared(c), ", "))
			}
		}
	}
	notices, licences := newQuotes(), newQuotes()
	for _, c := range components {
		if ours(c) {
			continue
		}
		for _, f := range texts(folders[c.BOMRef], notice) {
			notices.add(title(c), f.content)
		}
		for _, f := range texts(folders[c.BOMRef], license) {
			if !slices.Equal(f.licences, []string{"Apache-2.0"}) {
				licences.add(title(c), f.content)
			}
		}
	}
	heading(&out, "Notices")
	notices.write(&out)
	heading(&out, "Licences")
	licences.write(&out)
	return out.String(), nil
}

func title(c cyclonedx.Component) string {
	if name(c) == "std" {
		return "Go's standard library"
	}
	return name(c)
}

func heading(out *strings.Builder, title string) {
	fmt.Fprintf(out, "\n\n%s\n%s\n\n", title, strings.Repeat("=", len(title)))
}

// quotes are texts of components, each once.
type quotes struct {
	texts []string
	of    map[string][]string
}

func newQuotes() *quotes { return &quotes{of: make(map[string][]string)} }

func (q *quotes) add(component, content string) {
	content = plain(content)
	if !slices.Contains(q.texts, content) {
		q.texts = append(q.texts, content)
	}
	if !slices.Contains(q.of[content], component) {
		q.of[content] = append(q.of[content], component)
	}
}

func (q *quotes) write(out *strings.Builder) {
	for _, content := range q.texts {
		fmt.Fprintf(out, "---- %s\n\n%s\n\n", strings.Join(q.of[content], ", "), content)
	}
}

// plain leaves out what editors add to lines and files.
func plain(content string) string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(content, "\ufeff"), "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f\r")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
