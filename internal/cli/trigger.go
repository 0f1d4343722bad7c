package cli

import (
	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

func (a *app) triggerCommand() *cobra.Command {
	shown := columns[whisk.Trigger]{[]string{"name", "version", "updated"}, func(x *whisk.Trigger) []string {
		return []string{"/" + x.Namespace + "/" + x.Name, x.Version, moment(x.Updated)}
	}}
	return group("trigger", "Events that rules tie to actions",
		listing(a, whisk.Triggers, "List triggers", shown, nil), showing[whisk.Trigger](a, whisk.Triggers, "Show a trigger"),
		a.triggerCreate(), a.triggerUpdate(), a.triggerDelete(), a.triggerFire())
}

func (a *app) triggerCreate() *cobra.Command {
	cmd := &cobra.Command{Use: "create NAME", Short: "Create a trigger", Args: between(1, 1)}
	given, notes := params(cmd.Flags()), annotations(cmd.Flags())
	feedName := cmd.Flags().StringP("feed", "f", "", "`ACTION` that feeds events to the trigger; it gets the parameters")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, body, err := triggerBody(cmd, args[0], given, notes)
		if err != nil {
			return err
		}
		if *feedName == "" {
			trigger, err := whisk.Put[whisk.Trigger](cmd.Context(), c, whisk.Path(whisk.Triggers, name), body, false)
			return a.did(cmd, err, "created", "trigger", args[0], trigger.Raw)
		}
		f, err := newFeed(c, name, *feedName)
		if err != nil {
			return err
		}
		trigger, err := f.create(cmd.Context(), body)
		return a.did(cmd, err, "created", "trigger", args[0], trigger.Raw)
	})
	return cmd
}

func triggerBody(cmd *cobra.Command, arg string, given, notes *keyValues) (forerun.Name, *whisk.TriggerPut, error) {
	body := new(whisk.TriggerPut)
	name, err := plainNameOf(arg)
	if err != nil {
		return name, nil, err
	}
	if body.Parameters, err = given.all(cmd); err != nil {
		return name, nil, err
	}
	body.Annotations, err = notes.all(cmd)
	return name, body, err
}

func (a *app) triggerUpdate() *cobra.Command {
	cmd := &cobra.Command{Use: "update NAME", Short: "Change a trigger, or create it", Args: between(1, 1)}
	given, notes := params(cmd.Flags()), annotations(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, body, err := triggerBody(cmd, args[0], given, notes)
		if err != nil {
			return err
		}
		trigger, err := whisk.Put[whisk.Trigger](cmd.Context(), c, whisk.Path(whisk.Triggers, name), body, true)
		return a.did(cmd, err, "updated", "trigger", args[0], trigger.Raw)
	})
	return cmd
}

func (a *app) triggerDelete() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME", Short: "Delete a trigger", Args: between(1, 1)}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		path := whisk.Path(whisk.Triggers, name)
		trigger, err := whisk.Get[whisk.Trigger](cmd.Context(), c, path, nil)
		if err != nil {
			return err
		}
		if action := unquoted(forerun.Lookup(trigger.Value.Annotations, "feed")); action != "" {
			f, err := newFeed(c, name, action)
			if err != nil {
				return err
			}
			if err := f.tell(cmd.Context(), "DELETE", nil); err != nil {
				say(cmd, "%v; the trigger is deleted nevertheless", err)
			}
		}
		return a.did(cmd, c.Delete(cmd.Context(), path, false), "deleted", "trigger", args[0], nil)
	})
	return cmd
}

func (a *app) triggerFire() *cobra.Command {
	cmd := &cobra.Command{Use: "fire NAME", Short: "Fire a trigger", Args: between(1, 1)}
	given := params(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		event, err := given.object(cmd)
		if err != nil {
			return err
		}
		id, err := c.Fire(cmd.Context(), whisk.Path(whisk.Triggers, name), event)
		switch {
		case err != nil:
			return err
		case id == "":
			say(cmd, "ok: fired %s, but no rule is active for it", args[0])
			return nil
		}
		say(cmd, "ok: fired %s with id %s", args[0], id)
		return a.showLine(cmd, id, map[string]string{"activationId": id})
	})
	return cmd
}
