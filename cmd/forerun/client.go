package main

import (
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli"
	"forerun.dev/forerun/internal/config"
)

// addClient adds the commands that call the API to root, with what they need to see of this process.
func addClient(root *cobra.Command) error {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // they do without a file of settings then
	}
	return cli.Setup(root, cli.Environment{
		Getenv: os.Getenv, Home: home, Version: version(),
		OperatorFile: filepath.Join(config.DataFolder(os.Geteuid() == 0, config.StateHome(os.Getenv)), "operator"),
	}, os.Args[1:])
}

// version is what the Go tool noted when it built the binary.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
