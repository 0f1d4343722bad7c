// Package docs holds the documents that the program itself reads or serves:
// what is published is what is used.
package docs

import "embed"

// Schema is the JSON Schema of the project file, forerun.yaml.
//
//go:embed forerun.schema.json
var Schema []byte

// Documents are the guide and the reference, as Markdown.
//
//go:embed guide/*.md reference/*.md
var Documents embed.FS
