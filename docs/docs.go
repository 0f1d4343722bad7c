// Package docs holds the documents that the program itself reads: what is
// published is what is used.
package docs

import _ "embed" // for Schema

// Schema is the JSON Schema of the project file, forerun.yaml.
//
//go:embed forerun.schema.json
var Schema []byte
