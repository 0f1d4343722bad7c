package cli

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

func (a *app) ruleCommand() *cobra.Command {
	return group("rule", "Ties between triggers and actions",
		listing(a, whisk.Rules, "List rules", ruleColumns(), ruleStatuses), showing(a, whisk.Rules, "Show a rule", ruleOutline),
		a.rulePut(false), a.rulePut(true), a.ruleStatus(), a.ruleSwitch(true), a.ruleSwitch(false), a.ruleDelete())
}

func ruleColumns() columns[whisk.Rule] {
	return columns[whisk.Rule]{[]string{"name", "status", "trigger", "action"}, func(x *whisk.Rule) []string {
		return []string{
			"/" + x.Namespace + "/" + x.Name, first(x.Status, "-"), first(x.Trigger.Name, "-"), first(x.Action.Name, "-"),
		}
	}}
}

// ruleStatuses asks for what OpenWhisk leaves out of a list of rules: whether they are active.
func ruleStatuses(ctx context.Context, c *whisk.Client, rules []whisk.Document[whisk.Rule]) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range rules {
		if rules[i].Value.Status != "" {
			continue
		}
		group.Go(func() error {
			name := forerun.Name{Namespace: rules[i].Value.Namespace, Entity: rules[i].Value.Name}
			whole, err := whisk.Get[whisk.Rule](ctx, c, whisk.Path(whisk.Rules, name), nil)
			if err == nil {
				rules[i] = whole
			} else if whisk.IsStatus(err, http.StatusNotFound) {
				err = nil // deleted since
			}
			return err
		})
	}
	return group.Wait()
}

// ruleStatus is `rule status`.
func (a *app) ruleStatus() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status NAME", Short: "Show whether a rule is active", Args: between(1, 1), Example: "  forerun rule status on-order",
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		rule, err := whisk.Get[whisk.Rule](cmd.Context(), c, whisk.Path(whisk.Rules, name), nil)
		if err != nil {
			return err
		}
		return a.showLine(cmd, rule.Value.Status, map[string]string{"name": rule.Value.Name, "status": rule.Value.Status})
	})
	return cmd
}

// rulePut is `rule create`, or with update `rule update`.
func (a *app) rulePut(update bool) *cobra.Command {
	verb, done, short := "create", "created", "Create a rule: when the trigger fires, the action is invoked"
	if update {
		verb, done, short = "update", "updated", "Change a rule, or create it"
	}
	cmd := &cobra.Command{Use: verb + " NAME TRIGGER ACTION", Short: short, Args: between(3, 3)}
	notes := annotations(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		trigger, err := plainNameOf(args[1])
		if err != nil {
			return err
		}
		action, err := nameOf(args[2])
		if err != nil {
			return err
		}
		body := &whisk.RulePut{Trigger: trigger.String(), Action: action.String()}
		if body.Annotations, err = notes.all(cmd); err != nil {
			return err
		}
		rule, err := whisk.Put[whisk.Rule](cmd.Context(), c, whisk.Path(whisk.Rules, name), body, update)
		return a.did(cmd, err, done, "rule", args[0], rule.Raw)
	})
	return cmd
}

// ruleSwitch is `rule enable` or `rule disable`.
func (a *app) ruleSwitch(on bool) *cobra.Command {
	verb, short := "disable", "Let a rule do nothing"
	if on {
		verb, short = "enable", "Let a rule work (again)"
	}
	cmd := &cobra.Command{Use: verb + " NAME", Short: short, Args: between(1, 1)}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		err = c.SetRule(cmd.Context(), whisk.Path(whisk.Rules, name), on)
		return a.did(cmd, err, verb+"d", "rule", args[0], nil)
	})
	return cmd
}

// ruleDelete disables a rule before it deletes it, as wsk can: some servers keep active rules.
func (a *app) ruleDelete() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME", Short: "Delete a rule", Args: between(1, 1)}
	disable := cmd.Flags().Bool("disable", false, "disable it before")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		path := whisk.Path(whisk.Rules, name)
		if *disable {
			if err := c.SetRule(cmd.Context(), path, false); err != nil {
				return err
			}
		}
		return a.did(cmd, c.Delete(cmd.Context(), path, false), "deleted", "rule", args[0], nil)
	})
	return cmd
}
