package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) namespaceCommand() *cobra.Command {
	return group("namespace", "The namespaces of your key", a.namespaceList(), a.namespaceGet())
}

func (a *app) namespaceList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the namespaces of your key", Args: between(0, 0), Example: "  forerun namespace list"}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		names, err := whisk.List[string](cmd.Context(), c, "namespaces", nil)
		if err != nil {
			return err
		}
		return list(a, cmd, names, columns[string]{[]string{"name"}, func(name *string) []string { return []string{*name} }})
	})
	return cmd
}

// listCommand is wsk's short form of `namespace get`.
func (a *app) listCommand() *cobra.Command {
	cmd := a.namespaceGet()
	cmd.Use, cmd.Example = "list [/NAMESPACE]", "  forerun list"
	return cmd
}

// namespaceGet shows what is in a namespace.
func (a *app) namespaceGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get [/NAMESPACE]", Short: "Show what is in a namespace", Args: between(0, 1), Example: "  forerun namespace get -o json",
	}
	p := pageFlags(cmd)
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		namespace, err := namespaceOf(args)
		if err != nil {
			return err
		}
		content := make(map[string][]whisk.Document[whisk.Package])
		for _, collection := range []string{whisk.Packages, whisk.Actions, whisk.Triggers, whisk.Rules} {
			path := whisk.Collection(namespace, collection, "")
			if content[collection], err = whisk.List[whisk.Package](cmd.Context(), c, path, p.query()); err != nil {
				return err
			}
		}
		return a.showNamespace(cmd, content)
	})
	return cmd
}

func (a *app) showNamespace(cmd *cobra.Command, content map[string][]whisk.Document[whisk.Package]) error {
	if a.output == asText {
		for _, collection := range []string{whisk.Packages, whisk.Actions, whisk.Triggers, whisk.Rules} {
			for _, d := range content[collection] {
				what := collection[:len(collection)-1]
				if _, err := fmt.Fprintf(data(cmd), "%-7s  /%s/%s\n", what, d.Value.Namespace, d.Value.Name); err != nil {
					return err
				}
			}
		}
		return nil
	}
	raw := make(map[string][]json.RawMessage)
	for collection, documents := range content {
		raw[collection] = []json.RawMessage{}
		for _, d := range documents {
			raw[collection] = append(raw[collection], d.Raw)
		}
	}
	document, err := json.Marshal(raw)
	if err != nil {
		return err
	}
	return a.show(cmd, document)
}
