package service

import (
	"os/exec"
	"path/filepath"
)

// bindRoots are the host folders that a sandbox may be shown: where languages are installed, and the packages.
func bindRoots(packages string) []string {
	roots := []string{"/usr", "/opt"}
	if packages != "" {
		roots = append(roots, packages)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		if real, err := filepath.EvalSymlinks(python); err == nil {
			roots = append(roots, filepath.Dir(filepath.Dir(real))) // PREFIX/bin/python3
		}
	}
	return roots
}
