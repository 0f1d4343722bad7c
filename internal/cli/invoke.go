package cli

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
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
	flags.VarP((*milliseconds)(&f.timeout), "timeout", "t", "wait at most `MS` for the end; as long as the server does by default (60 s)")
	flags.Func("speculate", "speculate as `SETTINGS` say: off, branches or all, with options (docs/reference/speculation.md); by default as the action and the server say", func(value string) error {
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
		return a.showOutcome(cmd, c, args[0], flags, outcome)
	})
	return cmd
}

// showOutcome shows what came of an invocation; the error says that the function failed, or was not waited for any longer.
func (a *app) showOutcome(cmd *cobra.Command, c *whisk.Client, name string, flags *invokeFlags, o *whisk.Outcome) error {
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
		return a.explainFailure(cmd, c, name, o.Activation)
	}
	return nil
}

// logLines is how many lines of a failed activation's log are shown: a traceback, not all that came before.
const logLines = 40

// explainFailure shows the end of a failed activation's log, and returns the error of the failure.
func (a *app) explainFailure(cmd *cobra.Command, c *whisk.Client, name, id string) error {
	lines, err := failureLog(cmd.Context(), c, id, 0)
	switch {
	case err != nil:
		return &failure{exitFunction, name + " failed: run `forerun activation logs " + id + "` for its log"}
	case len(lines) == 0:
		return &failure{exitFunction, name + " failed and wrote no log, activation " + id}
	}
	if left := len(lines) - logLines; left > 0 {
		say(cmd, "(%d lines before: run `forerun activation logs %s` for all)", left, id)
		lines = lines[left:]
	}
	sayAll(cmd, lines)
	return &failure{exitFunction, name + " failed, activation " + id}
}

// failureLog is the log of an activation; of a workflow the log of the function that failed.
func failureLog(ctx context.Context, c *whisk.Client, id string, depth int) ([]string, error) {
	record, err := whisk.Get[whisk.Activation](ctx, c, whisk.Collection("_", whisk.Activations, "")+"/"+url.PathEscape(id), nil)
	if err != nil || depth > 0 && record.Value.Response.Success {
		return nil, err
	}
	var lines []string
	for _, line := range record.Value.Logs {
		if _, err := forerun.ParseActivationID(line); err != nil {
			lines = append(lines, stripped(line))
		} else if depth < maxWorkflowDepth {
			within, err := failureLog(ctx, c, line, depth+1)
			if err != nil {
				continue // one that was not kept
			}
			lines = append(lines, within...)
		}
	}
	return lines, nil
}

// maxWorkflowDepth bounds how far workflows in workflows are followed for a log.
const maxWorkflowDepth = 8
