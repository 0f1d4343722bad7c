package main

import (
	"os"
	"path/filepath"

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
