package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) speculationCommand() *cobra.Command {
	cmd := group("speculation", "Switch speculation of a server on and off, for its operator",
		a.speculationGet(),
		a.speculationSet("off", "Switch speculation off until it is switched on again", false),
		a.speculationSet("on", "Switch speculation on again, as the server was started", true))
	cmd.Long = `Switch speculation of a server off and on. Off stays off when the server restarts. The commands find the operator's key and the
server as "forerun tenant" does: by --apihost or FORERUN_APIHOST, else by the operator's file.`
	cmd.PersistentFlags().String("operator", "", "`FILE` with the operator's key")
	return cmd
}

func (a *app) speculationGet() *cobra.Command {
	cmd := &cobra.Command{Use: "get", Short: "Show whether speculation is on, and which setting says so", Args: between(0, 0)}
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		s, err := whisk.Get[whisk.Speculation](cmd.Context(), c, whisk.SpeculationPath, nil)
		switch {
		case err != nil:
			return err
		case a.output != asText:
			return a.show(cmd, s.Raw)
		}
		say(cmd, "on the server %s%s:", c.Host(), whyOff(s.Value))
		effect := "off"
		if s.Value.On {
			effect = s.Value.Settings
		}
		_, err = fmt.Fprintf(data(cmd), "in effect: %s\nswitch: %s\n--speculate: %s\n", effect, map[bool]string{true: "on", false: "off"}[s.Value.Switch], s.Value.Settings)
		return err
	})
	return cmd
}

// whyOff says who has it off, and until when; it is empty if nobody has.
func whyOff(s whisk.Speculation) string {
	switch {
	case s.Mode == "off" && !s.Switch:
		return ", until it is started with another --speculate, and `forerun speculation on`"
	case s.Mode == "off":
		return ", until it is started with another --speculate"
	case !s.Switch:
		return ", until `forerun speculation on`"
	}
	return ""
}

func (a *app) speculationSet(use, short string, on bool) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: between(0, 0)}
	cmd.RunE = a.operate(func(cmd *cobra.Command, c *whisk.Client, _ []string) error {
		s, err := whisk.PutSpeculation(cmd.Context(), c, on)
		what, name := "speculation on the server", c.Host()
		if s.Value.Mode == "off" {
			what = "the switch of the server"
			name += ", which keeps that; speculation stays off, since the server was started with --speculate off"
			if on {
				name += ": start it with --speculate all for that"
			}
		}
		return a.did(cmd, err, "turned "+use, what, name, s.Raw)
	})
	return cmd
}
