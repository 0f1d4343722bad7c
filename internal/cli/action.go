package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) actionCommand() *cobra.Command {
	return group("action", "Functions, sequences and compositions",
		a.actionList(), a.actionGet(), a.actionPut(false), a.actionPut(true), a.actionAdvise(), a.deletion(whisk.Actions, "action"), a.invokeCommand())
}

// page are the flags of a list.
type page struct {
	limit, skip int
	byName      bool
}

func pageFlags(cmd *cobra.Command) *page {
	p := new(page)
	p.flags(cmd)
	cmd.Flags().BoolVarP(&p.byName, "name-sort", "n", false, "sort by name")
	return p
}

func (p *page) flags(cmd *cobra.Command) {
	cmd.Flags().IntVarP(&p.limit, "limit", "l", 30, "show at most `N`; 0 shows 200, the most that a page has")
	cmd.Flags().IntVarP(&p.skip, "skip", "s", 0, "leave out the first `N`")
}

func (p *page) query() url.Values {
	return url.Values{"limit": {strconv.Itoa(p.limit)}, "skip": {strconv.Itoa(p.skip)}}
}

func (a *app) actionList() *cobra.Command {
	cmd := &cobra.Command{Use: "list [/NAMESPACE | PACKAGE]", Short: "List actions", Args: between(0, 1)}
	p := pageFlags(cmd)
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		namespace, pkg, err := place(args)
		if err != nil {
			return err
		}
		return listEntities(a, cmd, c, whisk.Collection(namespace, whisk.Actions, pkg), p, actionColumns(), nil)
	})
	return cmd
}

func actionColumns() columns[whisk.Action] {
	return columns[whisk.Action]{[]string{"name", "kind", "version", "updated"}, func(x *whisk.Action) []string {
		return []string{"/" + x.Namespace + "/" + x.Name, first(x.Sort(), "-"), x.Version, moment(x.Updated)}
	}}
}

func (a *app) actionGet() *cobra.Command {
	cmd := &cobra.Command{Use: "get NAME [FIELD]", Short: "Show an action", Args: between(1, 2)}
	save := cmd.Flags().Bool("save", false, "write the action's code to a file named after it")
	saveAs := outFileFlag(cmd.Flags(), "save-as", "write the action's code to `FILE`")
	showURL := cmd.Flags().BoolP("url", "r", false, "show the action's URL only")
	code := cmd.Flags().Bool("code", false, "show the code too")
	summary, secrets := summaryFlag(cmd.Flags()), secretsFlag(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := nameOf(args[0])
		if err != nil {
			return err
		}
		path := whisk.Path(whisk.Actions, name)
		action, err := whisk.Get[whisk.Action](cmd.Context(), c, path, withSecrets(url.Values{"code": {strconv.FormatBool(*code || *save || *saveAs != "")}}, *secrets))
		switch {
		case err != nil:
			return err
		case *summary:
			return a.outline(cmd, actionOutline(&action.Value))
		case *save || *saveAs != "":
			return saveCode(cmd, &action.Value, string(*saveAs))
		case *showURL:
			address, err := actionURL(cmd.Context(), c, &action.Value)
			if err != nil {
				return err
			}
			return a.showLine(cmd, address, map[string]string{"url": address})
		}
		return a.field(cmd, action.Raw, optional(args, 1))
	})
	return cmd
}

func optional(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// actionPut is `action create`, or with update `action update`.
func (a *app) actionPut(update bool) *cobra.Command {
	verb, done := "create", "created"
	if update {
		verb, done = "update", "updated"
	}
	cmd := &cobra.Command{
		Use: verb + " NAME [FILE | ACTION]", Short: map[bool]string{false: "Create an action", true: "Change an action, or create it"}[update],
		Long: `The kind of a function is guessed from its file: .py, .js, .mjs and .cjs, .jar, .go, an executable, or a .zip or folder with one
of __main__.py, package.json, index.js and exec. A folder may also hold go.mod or main.go. Go source is compiled here. With --sequence the second argument is a list of actions with commas between, with --copy another action.`,
		Args: between(1, 2),
	}
	flags := newActionFlags(cmd)
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := nameOf(args[0])
		if err != nil {
			return err
		}
		body, err := flags.body(cmd, c, optional(args, 1))
		if err != nil {
			return err
		}
		if body.Exec == nil && !update {
			return usagef(cmd, "there is no code: name the function's file, or use --sequence or --copy")
		}
		action, err := whisk.Put[whisk.Action](cmd.Context(), c, whisk.Path(whisk.Actions, name), body, update)
		err = a.did(cmd, orMissing(cmd.Context(), c, body.Exec, err), done, "action", args[0], action.Raw)
		if err == nil && flags.web != "" && isWeb(&action.Value) && a.output == asText {
			var address string
			if address, err = actionURL(cmd.Context(), c, &action.Value); err == nil {
				_, err = fmt.Fprintln(data(cmd), address)
			}
		}
		return err
	})
	return cmd
}

// orMissing turns the error of a PUT of a sequence into that of the first component that is not there, which OpenWhisk does
// not name; other errors stay.
func orMissing(ctx context.Context, c *whisk.Client, exec *whisk.Exec, err error) error {
	if exec == nil || !whisk.IsStatus(err, http.StatusBadRequest) {
		return err
	}
	for _, component := range exec.Components {
		name, wrong := nameOf(component)
		if wrong != nil {
			return err
		}
		_, missing := whisk.Get[whisk.Action](ctx, c, whisk.Path(whisk.Actions, name), url.Values{"code": {"false"}})
		if whisk.IsStatus(missing, http.StatusNotFound) {
			return missing
		}
	}
	return err
}
