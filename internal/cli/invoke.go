package cli

import (
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/speculate"
)

// invokeFlags are those of `invoke` and `action invoke`.
type invokeFlags struct {
	blocking, result bool
	timeout          int
	speculate        *string // nil: not given
	params           *keyValues
}

func newInvokeFlags(flags *pflag.FlagSet) *invokeFlags {
	f := &invokeFlags{params: params(flags)}
	flags.BoolVarP(&f.blocking, "blocking", "b", false, "wait for the end, and show the record of the activation")
	flags.BoolVarP(&f.result, "result", "r", false, "wait for the end, and show the result only")
	flags.IntVarP(&f.timeout, "timeout", "t", 0, "wait at most `MS` for the end; as long as the server does by default (60 s)")
	flags.Func("speculate", "run ahead as `SETTINGS` say: off, branches or all, and what docs/reference/speculation.md has behind it; as the action and the server say by default", func(value string) error {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return errors.New("it has a control character, such as an end of line")
		}
		f.speculate = &value
		_, err := speculate.ParseSettings(value)
		return err
	})
	return f
}

func (f *invokeFlags) terms() whisk.Terms {
	return whisk.Terms{
		Blocking: f.blocking || f.result, Result: f.result,
		Wait: time.Duration(f.timeout) * time.Millisecond, Speculate: f.speculate,
	}
}

func (a *app) invokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "invoke NAME", Short: "Invoke an action", Args: between(1, 1),
		Example: "  forerun invoke hello --result -p name World\n  echo '{\"name\": \"World\"}' | forerun invoke hello -r -P -",
	}
	flags := newInvokeFlags(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := nameOf(args[0])
		if err != nil {
			return err
		}
		input, err := flags.params.object(cmd)
		if err != nil {
			return err
		}
		outcome, err := c.Invoke(cmd.Context(), whisk.Path(whisk.Actions, name), input, flags.terms())
		if err != nil {
			return err
		}
		return a.showOutcome(cmd, args[0], flags, outcome)
	})
	return cmd
}

// showOutcome shows what came of an invocation; the error says that the function failed, or was not waited for any longer.
func (a *app) showOutcome(cmd *cobra.Command, name string, flags *invokeFlags, o *whisk.Outcome) error {
	if o.Ignored != "" {
		say(cmd, "not in effect: %s", o.Ignored)
	}
	if !o.Over {
		err := a.showLine(cmd, o.Activation, map[string]string{"activationId": o.Activation})
		if err == nil && flags.terms().Blocking {
			return &failure{exitTimeout, name + " still runs: run `forerun activation get " + o.Activation + "` later for its record"}
		}
		say(cmd, "ok: invoked %s with id %s", name, o.Activation)
		return err
	}
	if !flags.result {
		say(cmd, "%s: invoked %s with id %s", map[bool]string{false: "ok", true: "failed"}[o.Failed], name, o.Activation)
	}
	if o.Ahead != "" && (!flags.result && o.Workflow || flags.speculate != nil) {
		say(cmd, "speculative functions: %s", o.Ahead)
	}
	if err := a.show(cmd, o.Body); err != nil {
		return err
	}
	if o.Failed {
		return &failure{exitFunction, name + " failed: run `forerun activation logs " + o.Activation + "` for what it wrote"}
	}
	return nil
}
