package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

// patience is how long a shell that completes a name waits for the API.
const patience = time.Second

// completionCommand prints what a shell needs to complete commands, flags and the names of entities.
func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "completion (bash | zsh | fish)", Short: "Print what your shell needs to complete commands, flags and names",
		Args: between(1, 1), ValidArgs: []string{"bash", "zsh", "fish"},
		Example: "  source <(forerun completion bash)      # in ~/.bashrc\n" +
			"  source <(forerun completion zsh)       # in ~/.zshrc, after compinit\n" +
			"  forerun completion fish | source       # in ~/.config/fish/config.fish",
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			}
			return usagef(cmd, "%q is not a shell that Forerun knows: write bash, zsh or fish", args[0])
		},
	}
}

// completed are the commands whose first argument is the name of an entity, by the collection that it is in.
func completed() map[string][]string {
	return map[string][]string{
		whisk.Actions:  {"invoke", "action invoke", "action get", "action update", "action delete", "logs"},
		whisk.Packages: {"package get", "package update", "package delete"},
		whisk.Triggers: {"trigger get", "trigger update", "trigger delete", "trigger fire"},
		whisk.Rules:    {"rule get", "rule status", "rule enable", "rule disable", "rule delete", "rule update"},
	}
}

// completeNames lets shells complete the names of entities, and formats.
func (a *app) completeNames(root *cobra.Command) error {
	for collection, paths := range completed() {
		for _, path := range paths {
			cmd, _, err := root.Find(strings.Fields(path))
			if err != nil {
				return err
			}
			cmd.ValidArgsFunction = a.names(collection)
		}
	}
	formats := cobra.FixedCompletions([]string{asText, asJSON, asLines}, cobra.ShellCompDirectiveNoFileComp)
	return root.RegisterFlagCompletionFunc("output", formats)
}

// names lists the entities of a collection. A shell that completes shows no errors.
func (a *app) names(collection string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		c, err := a.client(cmd)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		listed, err := whisk.List[whisk.Action](ctx, c, whisk.Collection("_", collection, ""), nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, d := range listed {
			_, pkg, _ := strings.Cut(d.Value.Namespace, "/")
			names = append(names, strings.TrimPrefix(pkg+"/"+d.Value.Name, "/"))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
