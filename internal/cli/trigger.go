package cli

import (
	"net/http"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

func (a *app) triggerCommand() *cobra.Command {
	shown := columns[whisk.Trigger]{[]string{"name", "version", "updated"}, func(x *whisk.Trigger) []string {
		return []string{"/" + x.Namespace + "/" + x.Name, x.Version, moment(x.Updated)}
	}}
	return group("trigger", "Events that rules tie to actions",
		listing(a, whisk.Triggers, "List triggers", shown, nil), a.triggerGet(),
		a.triggerCreate(), a.triggerUpdate(), a.triggerDelete(), a.triggerFire())
}

// triggerFlags are those of `trigger create` and `trigger update`.
type triggerFlags struct {
	params, annotations, feedParams, triggerParams *keyValues
}

func newTriggerFlags(flags *pflag.FlagSet) *triggerFlags {
	f := &triggerFlags{params: params(flags), annotations: annotations(flags), feedParams: new(keyValues), triggerParams: new(keyValues)}
	flags.VarP(&f.feedParams.pairs, "feed-param", "F", "parameter of the feed")
	flags.VarP(&f.triggerParams.pairs, "trigger-param", "T", "parameter of the trigger, also if it has a feed")
	return f
}

// read reads the flags for a trigger that has a feed, or none: --param are the feed's if there is one.
func (f *triggerFlags) read(cmd *cobra.Command, fed bool) (body *whisk.TriggerPut, settings []forerun.KeyValue, err error) {
	if !fed && len(f.feedParams.pairs) > 0 {
		return nil, nil, wrongf("--feed-param: the trigger has no feed; name one with --feed when you create it")
	}
	body = new(whisk.TriggerPut)
	if body.Annotations, err = f.annotations.all(cmd); err != nil {
		return nil, nil, err
	}
	given, err := f.params.all(cmd)
	if err != nil {
		return nil, nil, err
	}
	if fed {
		settings = withAll(given, f.feedParams.pairs)
		given = nil
	}
	body.Parameters = withAll(given, f.triggerParams.pairs)
	return body, settings, nil
}

func (a *app) triggerCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a trigger", Args: between(1, 1),
		Long: `Create a trigger. With --feed an action feeds events to it, and --param are the feed's. The server has these feeds:

  /whisk.system/alarms/alarm      at the times of a cron expression: cron ("0 3 * * *"; a sixth field in front is seconds);
                                  optional timezone, startDate, stopDate, maxTriggers
  /whisk.system/alarms/interval   each so many minutes: minutes; optional startDate, stopDate, maxTriggers
  /whisk.system/alarms/once       at one time: date; optional deleteAfterFire

Each takes trigger_payload, a JSON object: the event's parameters. Dates are ISO 8601 or milliseconds since 1970.`,
		Example: "  forerun trigger create order -p currency EUR\n  forerun trigger create nightly --feed /whisk.system/alarms/alarm -p cron '0 3 * * *'",
	}
	flags := newTriggerFlags(cmd.Flags())
	feedName := cmd.Flags().StringP("feed", "f", "", "`ACTION` that feeds events to the trigger; --param are for it")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		body, settings, err := flags.read(cmd, *feedName != "")
		if err != nil {
			return err
		}
		trigger, err := createTrigger(cmd, c, name, *feedName, body, settings)
		return a.did(cmd, err, "created", "trigger", args[0], trigger.Raw)
	})
	return cmd
}

func createTrigger(
	cmd *cobra.Command, c *whisk.Client, name forerun.Name, feedName string, body *whisk.TriggerPut, settings []forerun.KeyValue,
) (whisk.Document[whisk.Trigger], error) {
	if feedName == "" {
		return whisk.Put[whisk.Trigger](cmd.Context(), c, whisk.Path(whisk.Triggers, name), body, false)
	}
	f, err := newFeed(c, name, feedName)
	if err != nil {
		return whisk.Document[whisk.Trigger]{}, err
	}
	return f.create(cmd.Context(), body, settings)
}

func (a *app) triggerUpdate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "update NAME", Short: "Change a trigger, or create it", Args: between(1, 1), Example: "  forerun trigger update order -p currency USD",
	}
	flags := newTriggerFlags(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		trigger, err := updateTrigger(cmd, c, name, flags)
		return a.did(cmd, err, "updated", "trigger", args[0], trigger.Raw)
	})
	return cmd
}

// updateTrigger changes a trigger and tells its feed, each if there is something for it.
func updateTrigger(cmd *cobra.Command, c *whisk.Client, name forerun.Name, flags *triggerFlags) (whisk.Document[whisk.Trigger], error) {
	path := whisk.Path(whisk.Triggers, name)
	is, err := whisk.Get[whisk.Trigger](cmd.Context(), c, path, nil)
	if err != nil && !whisk.IsStatus(err, http.StatusNotFound) {
		return is, err
	}
	feedName := feedOf(&is.Value)
	body, settings, err := flags.read(cmd, feedName != "")
	if err != nil {
		return is, err
	}
	if feedName == "" {
		return whisk.Put[whisk.Trigger](cmd.Context(), c, path, body, true)
	}
	if len(settings) > 0 {
		f, err := newFeed(c, name, feedName)
		if err != nil {
			return is, err
		}
		if _, err := f.tell(cmd.Context(), "UPDATE", settings); err != nil {
			return is, err
		}
	}
	if body.Parameters == nil && body.Annotations == nil {
		return is, nil
	}
	if body.Annotations != nil { // they take the place of all that are there
		body.Annotations = with(body.Annotations, forerun.KeyValue{Key: "feed", Value: quoted(feedName)})
	}
	return whisk.Put[whisk.Trigger](cmd.Context(), c, path, body, true)
}

// feedOf is the name of a trigger's feed; empty if it has none.
func feedOf(trigger *whisk.Trigger) string {
	return unquoted(forerun.Lookup(trigger.Annotations, "feed"))
}

// triggerGet is `trigger get`. Of a trigger with a feed it shows what that says of it, as wsk does.
func (a *app) triggerGet() *cobra.Command {
	cmd := showing(a, whisk.Triggers, "Show a trigger", triggerOutline)
	show := cmd.RunE
	cmd.Long = "Show a trigger. For a trigger with a feed the feed answers, unless you ask for a FIELD or --summary."
	read := a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		name, err := plainNameOf(args[0])
		if err != nil {
			return err
		}
		trigger, err := whisk.Get[whisk.Trigger](cmd.Context(), c, whisk.Path(whisk.Triggers, name), nil)
		switch {
		case err != nil:
			return err
		case feedOf(&trigger.Value) == "":
			return a.show(cmd, trigger.Raw)
		}
		f, err := newFeed(c, name, feedOf(&trigger.Value))
		if err != nil {
			return err
		}
		told, err := f.tell(cmd.Context(), "READ", nil)
		if err != nil {
			return err
		}
		return a.show(cmd, told)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 || cmd.Flag("summary").Changed {
			return show(cmd, args)
		}
		return read(cmd, args)
	}
	return cmd
}

func (a *app) triggerDelete() *cobra.Command {
	cmd := &cobra.Command{Use: "delete NAME", Short: "Delete a trigger", Args: between(1, 1), Example: "  forerun trigger delete order"}
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
		if action := feedOf(&trigger.Value); action != "" {
			f, err := newFeed(c, name, action)
			if err != nil {
				return err
			}
			if _, err := f.tell(cmd.Context(), "DELETE", nil); err != nil {
				say(cmd, "%v; the trigger is deleted nevertheless", err)
			}
		}
		return a.did(cmd, c.Delete(cmd.Context(), path, false), "deleted", "trigger", args[0], nil)
	})
	return cmd
}

func (a *app) triggerFire() *cobra.Command {
	cmd := &cobra.Command{Use: "fire NAME", Short: "Fire a trigger", Args: between(1, 1), Example: "  forerun trigger fire order -p id 17"}
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
