// Package compose makes the JSON document of a composition that is written in
// JavaScript with openwhisk-composer.
//
// It promises what composer's own command `compose` writes, without an
// installation: the library, version 0.12.0 as it was published, is in the
// binary. The file is executed by Node.js, with all the rights of the caller.
package compose

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// files are the library, unchanged, and what executes a composition with it.
//
//go:embed run.cjs openwhisk-composer
var files embed.FS

// Document executes a JavaScript file and returns the composition that it exports, lowered and as it was written (ast).
func Document(file string) ([]byte, error) {
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("the composition cannot be read: %w", err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, fmt.Errorf("%s cannot be composed: there is no `node` here. Install Node.js, or write the workflow below workflows: in forerun.yaml, which needs none", file)
	}
	scratch, err := os.MkdirTemp("", "forerun-compose-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	if err := os.CopyFS(scratch, files); err != nil {
		return nil, err
	}
	output := filepath.Join(scratch, "composition.json")
	cmd := exec.Command(node, filepath.Join(scratch, "run.cjs"), file, output) //nolint:gosec // the person's own interpreter and file
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s cannot be read as a composition: %w\n%s", file, err, bytes.TrimSpace(said))
	}
	return os.ReadFile(output)
}
