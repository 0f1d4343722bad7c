// Command forerun is the whole of Forerun in one binary: a table of commands,
// one file each. What they do is in the packages under internal.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli"
)

func main() {
	if code, ok := runSandboxProcess(os.Args); ok { // first: each sandbox waits for these
		os.Exit(code)
	}
	root := &cobra.Command{
		Use:           "forerun",
		Short:         "A serverless platform that runs ahead of its requests",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	for _, command := range commands() {
		root.AddCommand(command)
	}
	addClient(root)
	if err := root.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "forerun:", cli.Explain(err))
		os.Exit(cli.ExitCode(err))
	}
}

// commands is the table of commands.
func commands() []*cobra.Command {
	return []*cobra.Command{serveCommand(), versionCommand()}
}
