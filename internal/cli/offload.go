package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) offloadCommand() *cobra.Command {
	cmd := group("offload", "Java applications that have methods run as functions",
		a.offloadList(), a.offloadGet(), a.offloadExplain(), a.offloadMode())
	cmd.Long = `Show Java applications with the offload agent, and switch offloading of one off and on. An application is listed once its agent has
reported; what is shown counts since its processes started.`
	return cmd
}

func (a *app) offloadList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List applications", Args: between(0, 0)}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		all, err := whisk.Applications(cmd.Context(), c)
		if err != nil {
			return err
		}
		return list(a, cmd, all, columns[whisk.Application]{
			[]string{"application", "mode", "processes", "instances", "roots", "offloaded", "local", "lost", "refused"},
			func(p *whisk.Application) []string {
				var offloaded, local, lost int64
				refused := 0
				for _, r := range p.Roots {
					offloaded, local, lost = offloaded+r.Offloaded, local+r.Local, lost+r.Lost
					if r.Refused != "" {
						refused++
					}
				}
				return append([]string{p.Name, p.Mode}, numbers(int64(p.Processes), int64(p.Instances), int64(len(p.Roots)), offloaded, local, lost, int64(refused))...)
			},
		})
	})
	return cmd
}

func numbers(all ...int64) (cells []string) {
	for _, n := range all {
		cells = append(cells, strconv.FormatInt(n, 10))
	}
	return cells
}

func (a *app) offloadGet() *cobra.Command {
	cmd := &cobra.Command{Use: "get APPLICATION", Short: "Show what came of the calls of each root", Args: between(1, 1)}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		p, err := whisk.GetApplication(cmd.Context(), c, args[0])
		switch {
		case err != nil:
			return err
		case a.output != asText:
			return a.show(cmd, p.Raw)
		}
		say(cmd, "mode %s, %d processes, %d instances", p.Value.Mode, p.Value.Processes, p.Value.Instances)
		roots := make([]whisk.Document[whisk.OffloadedRoot], len(p.Value.Roots))
		for i, r := range p.Value.Roots {
			roots[i].Value = r
		}
		return columns[whisk.OffloadedRoot]{
			[]string{"root", "offloaded", "local", "lost", "repeatable", "exchanges each", "KB each", "ms here", "ms there", "refused"},
			func(r *whisk.OffloadedRoot) []string {
				exchanges := int64(0)
				for kind, n := range r.Exchanges {
					if isExchange(kind) {
						exchanges += n
					}
				}
				name, _, _ := strings.Cut(r.Root, "(")
				cells := append([]string{name}, numbers(r.Offloaded, r.Local, r.Lost, r.Repeatable)...)
				return append(cells, each(exchanges, r, 1), each(r.SentBytes+r.ReceivedBytes, r, 1e3), each(r.CPUHereNanos, r, 1e6), each(r.CPUThereNanos, r, 1e6),
					map[bool]string{true: "yes"}[r.Refused != ""])
			},
		}.write(data(cmd), roots)
	})
	return cmd
}

// isExchange reports whether the application answers a frame of this type.
func isExchange(kind string) bool {
	return !slices.Contains([]string{"result", "thrown", "refused", "line", "print"}, kind)
}

// each is the mean of a call that was offloaded, in a unit.
func each(sum int64, r *whisk.OffloadedRoot, unit float64) string {
	calls := r.Offloaded + r.Lost
	if calls == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(sum)/unit/float64(calls), 'f', 1, 64)
}

func (a *app) offloadExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use: "explain APPLICATION ROOT", Short: "Say where the calls of a root run, and why", Args: between(2, 2),
		Example: "  forerun offload explain shop 'shop.Prices#price'",
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		p, err := whisk.GetApplication(cmd.Context(), c, args[0])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(p.Value.Roots, func(r whisk.OffloadedRoot) bool {
			name, _, _ := strings.Cut(r.Root, "(")
			return r.Root == args[1] || name == args[1]
		})
		if i < 0 {
			return wrongf("no call of a root %s of %s has been counted yet: `forerun offload get %[2]s` shows the roots.", args[1], args[0])
		}
		r := p.Value.Roots[i]
		var text strings.Builder
		switch {
		case p.Value.Mode == "off":
			fmt.Fprintf(&text, "%s runs in the application: the mode is off.\n", r.Root)
		case r.Refused != "":
			fmt.Fprintf(&text, "%s runs in the application from now on: %s.\n", r.Root, r.Refused)
		default:
			fmt.Fprintf(&text, "%s runs as a function.\n", r.Root)
		}
		if r.LastLocal != "" && r.LastLocal != r.Refused {
			fmt.Fprintf(&text, "The last call that ran in the application did so because: %s.\n", r.LastLocal)
		}
		for _, kind := range slices.Sorted(maps.Keys(r.Exchanges)) {
			fmt.Fprintf(&text, "%s: %d\n", kind, r.Exchanges[kind])
		}
		return a.showLine(cmd, strings.TrimSuffix(text.String(), "\n"), r)
	})
	return cmd
}

func (a *app) offloadMode() *cobra.Command {
	cmd := &cobra.Command{
		Use: "mode APPLICATION on|off", Short: "Have all calls run in the application (off), or as its agent was started (on)", Args: between(2, 2),
		Long: `Have all calls of an application run there, or again as its agent was started. The agents hear of it within ten seconds. A restart of the
server switches it on.`,
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		p, err := whisk.PutApplicationMode(cmd.Context(), c, args[0], args[1])
		return a.did(cmd, err, "switched "+args[1], "offloading of application", args[0], p.Raw)
	})
	return cmd
}
