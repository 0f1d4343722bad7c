package cli

import (
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) packageCommand() *cobra.Command {
	return group("package", "Packages of actions, and bindings to them",
		listing(a, whisk.Packages, "List packages", packageColumns(), nil), showing(a, whisk.Packages, "Show a package", packageOutline),
		a.packagePut(false), a.packagePut(true), a.packageBind(), a.packageRefresh(), a.deletion(whisk.Packages, "package"))
}

func packageColumns() columns[whisk.Package] {
	return columns[whisk.Package]{[]string{"name", "shared", "version", "updated"}, func(x *whisk.Package) []string {
		return []string{"/" + x.Namespace + "/" + x.Name, yesNo(x.Publish), x.Version, moment(x.Updated)}
	}}
}

func yesNo(b bool) string { return map[bool]string{true: "yes", false: "no"}[b] }

// packagePut is `package create`, or with update `package update`.
func (a *app) packagePut(update bool) *cobra.Command {
	verb, done, short := "create", "created", "Create a package"
	if update {
		verb, done, short = "update", "updated", "Change a package, or create it"
	}
	cmd := &cobra.Command{Use: verb + " NAME", Short: short, Args: between(1, 1)}
	given, notes, env := params(cmd.Flags()), annotations(cmd.Flags()), environmentFlags(cmd.Flags())
	shared := cmd.Flags().String("shared", "", "whether others may bind it: `WHICH` is yes or no")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) (err error) {
		body := new(whisk.PackagePut)
		if body.Parameters, err = given.all(cmd); err != nil {
			return err
		}
		body.Parameters = env.over(body.Parameters)
		if body.Annotations, err = notes.all(cmd); err != nil {
			return err
		}
		if body.Publish, err = sharing(*shared); err != nil {
			return err
		}
		return a.putPackage(cmd, c, args[0], done, body, update)
	})
	return cmd
}

func sharing(shared string) (*bool, error) {
	switch shared {
	case "":
		return nil, nil
	case "yes", "no":
		publish := shared == "yes"
		return &publish, nil
	}
	return nil, wrongf("--shared: %q is neither yes nor no: write one of them", shared)
}

func (a *app) putPackage(cmd *cobra.Command, c *whisk.Client, arg, done string, body *whisk.PackagePut, update bool) error {
	name, err := plainNameOf(arg)
	if err != nil {
		return err
	}
	pkg, err := whisk.Put[whisk.Package](cmd.Context(), c, whisk.Path(whisk.Packages, name), body, update)
	return a.did(cmd, err, done, "package", arg, pkg.Raw)
}

func (a *app) packageBind() *cobra.Command {
	cmd := &cobra.Command{Use: "bind PACKAGE NAME", Short: "Make a package that stands for another, with parameters of its own", Args: between(2, 2)}
	given, notes, env := params(cmd.Flags()), annotations(cmd.Flags()), environmentFlags(cmd.Flags())
	overwrite := cmd.Flags().Bool("overwrite", false, "change the binding if it is there")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		to, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		body := &whisk.PackagePut{Binding: &whisk.Binding{Namespace: to.Namespace, Name: to.Entity}}
		if body.Parameters, err = given.all(cmd); err != nil {
			return err
		}
		body.Parameters = env.over(body.Parameters)
		if body.Annotations, err = notes.all(cmd); err != nil {
			return err
		}
		return a.putPackage(cmd, c, args[1], "bound", body, *overwrite)
	})
	return cmd
}

// packageRefresh is there because wsk has it. No server of OpenWhisk's API does anything for it: a binding shows its package
// as that is.
func (a *app) packageRefresh() *cobra.Command {
	cmd := &cobra.Command{
		Use: "refresh [/NAMESPACE]", Short: "Do nothing: bindings always show their packages as they are", Args: between(0, 1),
		Example: "  forerun package refresh",
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		namespace, err := namespaceOf(args)
		if err != nil {
			return err
		}
		packages, err := whisk.List[whisk.Package](cmd.Context(), c, whisk.Collection(namespace, whisk.Packages, ""), url.Values{"limit": {"0"}})
		if err != nil {
			return err
		}
		bound := slices.DeleteFunc(packages, func(p whisk.Document[whisk.Package]) bool { return p.Value.Binding.Name == "" })
		say(cmd, "ok: nothing to refresh: all bindings (%d) show their packages as they are", len(bound))
		return nil
	})
	return cmd
}
