// Package runtimes carries the language runtimes that run inside sandboxes, so
// that the one binary has them, and the contract they keep: PROTOCOL.md, with
// byte vectors in testdata that both ends are tested against.
//
// It holds no logic: internal/runtimewire is the server's end of the protocol.
package runtimes

import (
	"embed"
	"io/fs"
)

//go:embed python/forerun_runtime/*.py
var sources embed.FS

// Python returns the source of the Python runtime: the files of its one package, forerun_runtime.
func Python() fs.FS {
	sub, err := fs.Sub(sources, "python/forerun_runtime")
	if err != nil {
		panic(err) // the embedded name is a constant, and valid
	}
	return sub
}
