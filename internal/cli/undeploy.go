package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/project"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

func (a *app) undeployCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "undeploy [FILE | FOLDER]", Short: "Delete what a project file or a folder of functions says", Args: between(0, 1),
		Long: `Delete what ` + "`forerun deploy`" + ` of the same project deploys. If the project has a name (project: in its file), everything that was
deployed under that name is deleted as well, also what is no longer in the file.

Records of activations, and data that the functions keep, stay.`,
		Example: "  forerun undeploy --dry-run\n  forerun undeploy",
	}
	dry := cmd.Flags().Bool("dry-run", false, "only say what would be deleted")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		p, err := project.Load(optional(args, 0))
		if err != nil {
			return wrongf("%v", err)
		}
		named := p.Names()
		left, err := leftovers(cmd.Context(), c, p.Owner(), named)
		if err != nil {
			return err
		}
		changes, err := remove(cmd.Context(), c, inDeletionOrder(append(named, left...)), *dry)
		if shown := a.showChanges(cmd, changes); shown != nil {
			return shown
		}
		if err == nil {
			say(cmd, "ok: %s", summary(changes, *dry))
		}
		return err
	})
	return cmd
}

// inDeletionOrder puts rules first and packages last.
func inDeletionOrder(all []project.Named) []project.Named {
	order := []string{whisk.Rules, whisk.Triggers, whisk.Actions, whisk.Packages}
	slices.SortStableFunc(all, func(x, y project.Named) int {
		return slices.Index(order, x.Collection) - slices.Index(order, y.Collection)
	})
	return all
}

// remove deletes entities and tells which were there. A failed deletion does not stop the others.
func remove(ctx context.Context, c *whisk.Client, all []project.Named, dry bool) (changes []change, failed error) {
	for _, x := range all {
		var err error
		if dry {
			_, err = whisk.Get[struct{}](ctx, c, x.Path(), nil)
		} else {
			err = c.Delete(ctx, x.Path(), false)
		}
		switch {
		case err == nil:
			changes = append(changes, change{"deleted", x.What(), x.Name.String()})
		case !whisk.IsStatus(err, http.StatusNotFound):
			failed = errors.Join(failed, fmt.Errorf("%s %s: %w", x.What(), x.Name, err))
		}
	}
	return changes, failed
}

// leftovers lists what was deployed from the project and is not among what it has now. A project without a name has none.
func leftovers(ctx context.Context, c *whisk.Client, owner string, now []project.Named) ([]project.Named, error) {
	if owner == "" {
		return nil, nil
	}
	known := make(map[string]bool)
	for _, x := range now {
		known[x.Path()] = true
	}
	var left []project.Named
	for _, collection := range []string{whisk.Rules, whisk.Triggers, whisk.Actions, whisk.Packages} {
		listed, err := listWhole(ctx, c, collection)
		if err != nil {
			return nil, err
		}
		for _, e := range listed {
			_, pkg, _ := strings.Cut(e.Namespace, "/")
			x := project.Named{Collection: collection, Name: forerun.Name{Namespace: "_", Package: pkg, Entity: e.Name}}
			if unquoted(forerun.Lookup(e.Annotations, project.Owner)) == owner && !known[x.Path()] {
				left = append(left, x)
			}
		}
	}
	return left, nil
}

// listed is what all entities have in a list.
type listed struct {
	Namespace   string             `json:"namespace"`
	Name        string             `json:"name"`
	Annotations []forerun.KeyValue `json:"annotations"`
}

// listWhole lists all pages of a collection of the caller's namespace.
func listWhole(ctx context.Context, c *whisk.Client, collection string) ([]listed, error) {
	var all []listed
	for {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}, "skip": {strconv.Itoa(len(all))}}
		page, err := whisk.List[listed](ctx, c, whisk.Collection("_", collection, ""), query)
		if err != nil {
			return nil, err
		}
		for _, d := range page {
			all = append(all, d.Value)
		}
		if len(page) < pageSize {
			return all, nil
		}
	}
}
