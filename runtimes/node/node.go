// Package node carries the Node runtime, so that the one binary has it. It
// holds no logic: internal/launcher starts the files, of which Entry is the
// first.
package node

import "embed"

// Entry is the file that Node is started with.
const Entry = "main.cjs"

// Sources are the runtime's files, at their top.
//
//go:embed *.cjs
var Sources embed.FS
