package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// run makes a command's function of one that calls the API: it checks the common flags, makes the client, and ends what
// the function does when the person interrupts.
func (a *app) run(f func(cmd *cobra.Command, c *whisk.Client, args []string) error) func(*cobra.Command, []string) error {
	return a.runWith(a.client, f)
}

// runWith is run with a way of its own to make the client.
func (a *app) runWith(
	client func(*cobra.Command) (*whisk.Client, error), f func(cmd *cobra.Command, c *whisk.Client, args []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := a.checkOutput(); err != nil {
			return err
		}
		c, err := client(cmd)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		cmd.SetContext(ctx)
		return f(cmd, c, args)
	}
}

// did tells that something was done to an entity: in words, and as the document that it is then when that is asked for.
func (a *app) did(cmd *cobra.Command, err error, done, what, name string, document json.RawMessage) error {
	if err != nil {
		return err
	}
	say(cmd, "ok: %s %s %s", done, what, name)
	if a.output == asText || document == nil {
		return nil
	}
	return a.show(cmd, document)
}

// place reads where a list is to look: "/namespace", "/namespace/package" or "package".
func place(args []string) (namespace, pkg string, err error) {
	if len(args) == 0 {
		return "_", "", nil
	}
	if namespace, ok := strings.CutPrefix(strings.TrimSuffix(args[0], "/"), "/"); ok && !strings.Contains(namespace, "/") {
		return namespace, "", nil
	}
	name, err := plainNameOf(args[0])
	return name.Namespace, name.Entity, err
}

// namespaceOf reads where a list is to look that knows no packages: "/namespace".
func namespaceOf(args []string) (string, error) {
	namespace, pkg, err := place(args)
	if err == nil && pkg != "" {
		return "", wrongf("%q is not a namespace: write it with a slash before, like /guest", args[0])
	}
	return namespace, err
}

// listEntities shows one page of a collection.
func listEntities[T any](a *app, cmd *cobra.Command, c *whisk.Client, path string, p *page, shown columns[T], fill filler[T]) error {
	documents, err := whisk.List[T](cmd.Context(), c, path, p.query())
	if err == nil && fill != nil {
		err = fill(cmd.Context(), c, documents)
	}
	if err != nil {
		return err
	}
	if fill != nil {
		if err := fill(cmd.Context(), c, documents); err != nil {
			return err
		}
	}
	if p.byName {
		slices.SortStableFunc(documents, func(x, y whisk.Document[T]) int {
			return cmp.Compare(shown.cells(&x.Value)[0], shown.cells(&y.Value)[0])
		})
	}
	return list(a, cmd, documents, shown)
}

// entityName reads the name of an entity of a collection: only actions are in packages.
func entityName(collection, s string) (forerun.Name, error) {
	if collection == whisk.Actions {
		return nameOf(s)
	}
	return plainNameOf(s)
}

// filler puts into listed documents what the server leaves out of lists; nil: nothing.
type filler[T any] func(context.Context, *whisk.Client, []whisk.Document[T]) error

// listing is the `list` of a collection without packages.
func listing[T any](a *app, collection, short string, shown columns[T], fill filler[T]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [/NAMESPACE]", Short: short, Args: between(0, 1), Example: "  forerun " + strings.TrimSuffix(collection, "s") + " list --limit 5",
	}
	p := pageFlags(cmd)
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		namespace, err := namespaceOf(args)
		if err != nil {
			return err
		}
		return listEntities(a, cmd, c, whisk.Collection(namespace, collection, ""), p, shown, fill)
	})
	return cmd
}

// showing is the `get` of a collection.
func showing[T any](a *app, collection, short string, outlined func(*T) []outline) *cobra.Command {
	cmd := &cobra.Command{
		Use: "get NAME [FIELD]", Short: short, Args: between(1, 2), Example: "  forerun " + strings.TrimSuffix(collection, "s") + " get NAME --summary",
	}
	summary := summaryFlag(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := entityName(collection, args[0])
		if err != nil {
			return err
		}
		entity, err := whisk.Get[T](cmd.Context(), c, whisk.Path(collection, name), nil)
		switch {
		case err != nil:
			return err
		case *summary:
			return a.outline(cmd, outlined(&entity.Value))
		}
		return a.field(cmd, entity.Raw, optional(args, 1))
	})
	return cmd
}

// deletion is the `delete` of a collection.
func (a *app) deletion(collection, what string) *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME", Short: "Delete " + article(what), Args: between(1, 1), Example: "  forerun " + what + " delete NAME"}
	var force bool
	if collection == whisk.Packages {
		cmd.Flags().BoolVarP(&force, "recursive", "r", false, "with the actions in it")
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := entityName(collection, args[0])
		if err != nil {
			return err
		}
		err = c.Delete(cmd.Context(), whisk.Path(collection, name), force)
		return a.did(cmd, err, "deleted", what, args[0], nil)
	})
	return cmd
}

func article(what string) string {
	if strings.ContainsRune("aeiou", rune(what[0])) {
		return "an " + what
	}
	return "a " + what
}
