package cli

import "github.com/spf13/cobra"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: between(0, 0), Example: "  forerun version -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			return a.showLine(cmd, "forerun "+a.env.Version, map[string]string{"version": a.env.Version})
		},
	}
}
