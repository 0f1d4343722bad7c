package main

import (
	"os"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli"
)

// addClient adds the commands that call the API to root, with what they need to see of this process.
func addClient(root *cobra.Command) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // they do without a file of settings then
	}
	cli.Setup(root, cli.Environment{Getenv: os.Getenv, Home: home, Version: version()}, os.Args[1:])
}
