package cli

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) actionAdvise() *cobra.Command {
	cmd := &cobra.Command{
		Use: "advise [ACTION]", Short: "Say what actions were seen to do, and which could be answered with known results", Args: between(0, 1),
		Long: `Say what actions were seen to do since the server's start, and which could be answered with known results.

"looked at" are the executions whose reads and effects were followed. "repeated" of these had an input that was seen lately, and "unchanged" of
these read what the earlier execution had read: a known result could have answered them.`,
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		query := url.Values{}
		if len(args) > 0 {
			query.Set("action", args[0])
		}
		known, err := whisk.List[whisk.Advice](cmd.Context(), c, whisk.CachePath+"/advice", query)
		if err != nil {
			return err
		}
		return list(a, cmd, known, columns[whisk.Advice]{
			[]string{"action", "class", "executions", "looked at", "repeated", "unchanged", "mean", "could save", "advice"},
			func(x *whisk.Advice) []string {
				cells := []string{x.Action, x.Class}
				for _, n := range []uint64{x.Count, x.Followed, x.Repeated, x.Current} {
					cells = append(cells, strconv.FormatUint(n, 10))
				}
				return append(cells, strconv.FormatFloat(1000*x.Took, 'f', 1, 64)+"ms", strconv.FormatFloat(x.Saves, 'f', 3, 64)+"s", x.Text)
			},
		})
	})
	return cmd
}
