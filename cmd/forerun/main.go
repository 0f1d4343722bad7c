// Command forerun is the whole of Forerun in one binary: the server, and the
// client commands of internal/cli. What they do is in the packages under internal.
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
		Short:         "A serverless platform that speculates on workflows",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(serveCommand(), restoreCommand())
	err := addClient(root)
	if err == nil {
		err = root.Execute()
	}
	if err != nil {
		fmt.Fprintln(cli.Screen(os.Stderr), "forerun:", cli.Explain(err))
		os.Exit(cli.ExitCode(err))
	}
}
