package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

func (a *app) activationCommand() *cobra.Command {
	return group("activation", "Records of what ran",
		a.activationList(), a.activationGet(), a.activationLogs(), a.activationResult(), a.activationPoll(), a.activationTrace())
}

func (a *app) activationList() *cobra.Command {
	cmd := &cobra.Command{Use: "list [/NAMESPACE | ACTION]", Short: "List activations, the newest first", Args: between(0, 1)}
	limit := cmd.Flags().IntP("limit", "l", 30, "show at most `N`; 0 shows 200, the most that a page has")
	skip := cmd.Flags().IntP("skip", "s", 0, "leave out the newest `N`")
	since := cmd.Flags().Int64("since", 0, "only those that began after `TIME`, in milliseconds since 1970")
	upto := cmd.Flags().Int64("upto", 0, "only those that began before `TIME`, in milliseconds since 1970")
	full := cmd.Flags().BoolP("full", "f", false, "show whole records")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		namespace, query, err := activationsOf(args)
		if err != nil {
			return err
		}
		query.Set("limit", strconv.Itoa(*limit))
		query.Set("skip", strconv.Itoa(*skip))
		for name, ms := range map[string]int64{"since": *since, "upto": *upto} {
			if ms > 0 {
				query.Set(name, strconv.FormatInt(ms, 10))
			}
		}
		if *full {
			query.Set("docs", "true")
		}
		records, err := whisk.List[whisk.Activation](cmd.Context(), c, whisk.Collection(namespace, whisk.Activations, ""), query)
		if err != nil {
			return err
		}
		if *full && a.output == asText {
			return showAll(a, cmd, records)
		}
		return list(a, cmd, records, activationColumns())
	})
	return cmd
}

func showAll[T any](a *app, cmd *cobra.Command, documents []whisk.Document[T]) error {
	for _, d := range documents {
		if err := a.show(cmd, d.Raw); err != nil {
			return err
		}
	}
	return nil
}

// activationsOf reads whose activations are meant: those of a namespace, or of an action.
func activationsOf(args []string) (namespace string, query url.Values, err error) {
	query = make(url.Values)
	if len(args) == 0 {
		return "_", query, nil
	}
	if namespace, pkg, err := place(args); err == nil && pkg == "" {
		return namespace, query, nil
	}
	name, err := nameOf(args[0])
	if err != nil {
		return "", nil, err
	}
	query.Set("name", name.Entity)
	if name.Package != "" {
		query.Set("name", name.Package+"/"+name.Entity)
	}
	return name.Namespace, query, nil
}

func activationColumns() columns[whisk.Activation] {
	return columns[whisk.Activation]{
		[]string{"start", "id", "kind", "duration", "status", "name"},
		func(x *whisk.Activation) []string {
			return []string{
				moment(x.Start), x.ActivationID, first(unquoted(forerun.Lookup(x.Annotations, "kind")), "-"),
				fmt.Sprintf("%d ms", x.Duration), statusOf(x), x.Namespace + "/" + x.Name,
			}
		},
	}
}

// statusOf tells how an activation ended, as a list and as a record say it.
func statusOf(x *whisk.Activation) string {
	if x.Response.Status != "" {
		return x.Response.Status
	}
	if x.StatusCode < 0 || x.StatusCode > int(forerun.InternalError) {
		return strconv.Itoa(x.StatusCode)
	}
	return forerun.Status(x.StatusCode).String()
}

// lastFlag adds the flag --last, which stands for the id of the newest activation.
func lastFlag(flags *pflag.FlagSet) *bool {
	return flags.BoolP("last", "l", false, "the newest activation")
}

// activationPath finds the path of the activation that was asked for, by its id or by --last.
func activationPath(ctx context.Context, c *whisk.Client, last bool, args []string) (string, error) {
	collection := whisk.Collection("_", whisk.Activations, "")
	if !last {
		if len(args) == 0 {
			return "", wrongf("no activation is named: write its id, or --last")
		}
		if _, err := forerun.ParseActivationID(args[0]); err != nil {
			return "", wrongf("%.100q is not an id: write the activation's id, 32 digits 0-9 and a-f, or --last\nRun `forerun activation list` to see those that are there.", args[0])
		}
		return collection + "/" + url.PathEscape(args[0]), nil
	}
	if len(args) > 0 {
		return "", wrongf("an id and --last do not go together: write one of them")
	}
	newest, err := whisk.List[whisk.Activation](ctx, c, collection, url.Values{"limit": {"1"}})
	if err != nil {
		return "", err
	}
	if len(newest) == 0 {
		return "", &failure{exitGeneral, "no activation ran yet: invoke an action with `forerun invoke NAME`"}
	}
	return collection + "/" + newest[0].Value.ActivationID, nil
}

func (a *app) activationGet() *cobra.Command {
	cmd := &cobra.Command{Use: "get (ID | --last) [FIELD]", Short: "Show the record of an activation", Args: between(0, 2)}
	last := lastFlag(cmd.Flags())
	summary := cmd.Flags().BoolP("summary", "s", false, "say how it ended, and show the result only")
	logs := cmd.Flags().BoolP("logs", "g", false, "show what it wrote only, without times and streams")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		ids, fields := args[:min(1, len(args))], args[min(1, len(args)):]
		if *last {
			ids, fields = nil, args
		}
		path, err := activationPath(cmd.Context(), c, *last, ids)
		if err != nil {
			return err
		}
		record, err := whisk.Get[whisk.Activation](cmd.Context(), c, path, nil)
		switch x := &record.Value; {
		case err != nil:
			return err
		case *summary:
			say(cmd, "/%s/%s: %s at %s", x.Namespace, x.Name, x.Response.Status, moment(max(x.Start, x.End))) // a trigger's has no end
			return a.showResult(cmd, x.Response.Result)
		case *logs:
			return a.showLog(cmd, x.Logs, true)
		}
		return a.field(cmd, record.Raw, optional(fields, 0))
	})
	return cmd
}

func (a *app) activationLogs() *cobra.Command {
	cmd := &cobra.Command{Use: "logs (ID | --last)", Short: "Show what an activation wrote to stdout and stderr", Args: between(0, 1)}
	last := lastFlag(cmd.Flags())
	strip := stripFlag(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		path, err := activationPath(cmd.Context(), c, *last, args)
		if err != nil {
			return err
		}
		logs, err := whisk.Get[whisk.Activation](cmd.Context(), c, path+"/logs", nil)
		if err != nil {
			return err
		}
		return a.showLog(cmd, logs.Value.Logs, *strip)
	})
	return cmd
}

// showLog writes the lines of a log.
func (a *app) showLog(cmd *cobra.Command, lines []string, strip bool) error {
	if a.output != asText {
		return a.showLine(cmd, "", map[string][]string{"logs": append([]string{}, lines...)})
	}
	for _, line := range lines {
		if strip {
			line = stripped(line)
		}
		if _, err := fmt.Fprintln(data(cmd), line); err != nil {
			return err
		}
	}
	return nil
}

func stripFlag(flags *pflag.FlagSet) *bool {
	return flags.BoolP("strip", "r", false, "leave out the time and the stream of each line")
}

func (a *app) activationResult() *cobra.Command {
	cmd := &cobra.Command{Use: "result (ID | --last)", Short: "Show what an activation returned", Args: between(0, 1)}
	last := lastFlag(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		path, err := activationPath(cmd.Context(), c, *last, args)
		if err != nil {
			return err
		}
		response, err := whisk.Get[whisk.Response](cmd.Context(), c, path+"/result", nil)
		if err != nil {
			return err
		}
		return a.showResult(cmd, response.Value.Result)
	})
	return cmd
}

// showResult writes the result of an activation, which some have none of.
func (a *app) showResult(cmd *cobra.Command, result json.RawMessage) error {
	if result == nil {
		result = json.RawMessage("null")
	}
	return a.show(cmd, result)
}
