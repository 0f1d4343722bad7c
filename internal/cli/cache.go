package cli

import (
	"encoding/json"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) cacheCommand() *cobra.Command {
	cmd := group("cache", "Known results of annotated actions",
		a.cacheStats(), a.cacheList(), a.cacheExplain(), a.cachePurge(), a.cacheResume(),
		a.cacheSet("off", "Switch the result cache of a server off until it is switched on again, for its operator", false),
		a.cacheSet("on", "Switch the result cache of a server on again, for its operator", true))
	cmd.Long = `Show, explain and drop known results of annotated actions. "off" and "on" are for the server's operator. They find the operator's key and
the server as "forerun tenant" does.`
	return cmd
}

func (a *app) cacheStats() *cobra.Command {
	cmd := &cobra.Command{Use: "stats", Short: "Show how often each annotated action was answered with a known result", Args: between(0, 0)}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		uses, err := whisk.List[whisk.CacheUse](cmd.Context(), c, whisk.CachePath, nil)
		if err != nil {
			return err
		}
		return list(a, cmd, uses, columns[whisk.CacheUse]{
			[]string{"action", "hits", "misses", "stale", "bypass", "off", "rows", "bytes", "stale bytes", "saved", "verified", "suspended, because"},
			func(u *whisk.CacheUse) []string {
				name := u.Action
				if name == "" {
					name = "(others)"
				}
				cells := []string{name}
				for _, n := range []uint64{u.Hits, u.Misses, u.Stale, u.Bypass, u.Off} {
					cells = append(cells, strconv.FormatUint(n, 10))
				}
				return append(cells, strconv.Itoa(u.Rows), strconv.Itoa(u.Bytes), strconv.Itoa(u.StaleBytes), strconv.FormatFloat(u.Saved, 'f', 3, 64)+"s", strconv.FormatUint(u.Verified, 10), u.Suspended)
			},
		})
	})
	return cmd
}

func (a *app) cacheList() *cobra.Command {
	cmd := &cobra.Command{Use: "list [ACTION]", Short: "List known results, the one that was asked for last first", Args: between(0, 1)}
	show := cmd.Flags().Bool("show", false, "show inputs, outputs, and the records that were read with their versions")
	page := new(page)
	page.flags(cmd)
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		query := page.query()
		if len(args) > 0 {
			query.Set("action", args[0])
		}
		query.Set("show", strconv.FormatBool(*show))
		rows, err := whisk.List[whisk.CacheRow](cmd.Context(), c, whisk.CachePath+"/rows", query)
		if err != nil {
			return err
		}
		heads := []string{"action", "input", "of", "bytes", "records", "never a hit, because"}
		if *show {
			heads = append(heads, "output")
		}
		return list(a, cmd, rows, columns[whisk.CacheRow]{heads, func(r *whisk.CacheRow) []string {
			cells := []string{r.Action, r.Input[:min(12, len(r.Input))], r.Of, strconv.Itoa(r.Bytes), strconv.Itoa(r.Records), r.Why}
			if *show {
				if r.Given != nil {
					cells[1] = string(r.Given)
				}
				cells = append(cells, string(r.Output))
			}
			return cells
		}})
	})
	return cmd
}

func (a *app) cacheExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain ACTION", Short: "Say what an invocation would give now and why, without executing anything", Args: between(1, 1),
		Example: "  forerun cache explain quote -p city Ulm",
	}
	given := params(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		input, err := given.object(cmd)
		if err != nil {
			return err
		}
		x, err := whisk.ExplainCache(cmd.Context(), c, args[0], input)
		switch {
		case err != nil:
			return err
		case a.output != asText:
			return a.show(cmd, x.Raw)
		}
		return a.showLine(cmd, x.Value.Text, nil)
	})
	return cmd
}

func (a *app) cachePurge() *cobra.Command {
	cmd := &cobra.Command{
		Use: "purge [ACTION]", Short: "Drop known results: all, or only for an action, an input or a record that was read", Args: between(0, 1),
		Example: "  forerun cache purge quote --input '{\"city\": \"Ulm\"}'\n  forerun cache purge --record trip:42",
	}
	var p whisk.CachePurge
	cmd.Flags().Func("input", "only the result of ACTION on this input, a `JSON` object", func(value string) error {
		if _, err := canonical.Object([]byte(value)); err != nil {
			return errors.New("it is not a JSON object")
		}
		p.Input = json.RawMessage(value)
		return nil
	})
	cmd.Flags().StringVar(&p.Record, "record", "", "only results whose executions read the record `NAME`")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		if len(args) > 0 {
			p.Action = args[0]
		} else if p.Input != nil {
			return usagef(cmd, "--input needs ACTION: the input of which action?")
		}
		n, err := whisk.PurgeCache(cmd.Context(), c, p)
		return a.did(cmd, err, "dropped", strconv.Itoa(n.Value.Purged), "known results", n.Raw)
	})
	return cmd
}

func (a *app) cacheResume() *cobra.Command {
	cmd := &cobra.Command{Use: "resume ACTION", Short: "Use results of an action again that gave two results on one input", Args: between(1, 1)}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		r, err := whisk.ResumeCache(cmd.Context(), c, args[0])
		done := "resumed"
		if !r.Value.Resumed {
			done = "there was no need to resume"
		}
		return a.did(cmd, err, done, "results of action", args[0], r.Raw)
	})
	return cmd
}

func (a *app) cacheSet(use, short string, on bool) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: between(0, 0)}
	cmd.Flags().String("operator", "", "`FILE` with the operator's key")
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		s, err := whisk.PutCache(cmd.Context(), c, on)
		name := c.Host()
		if on && !s.Value.Started {
			name += "; it stays off, since the server was started with --cache off"
		}
		return a.did(cmd, err, "turned "+use, "the result cache of the server", name, s.Raw)
	})
	return cmd
}
