package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// feed is an action that brings events to a trigger, by OpenWhisk's protocol: it is invoked when the trigger comes and
// when it goes.
type feed struct {
	client  *whisk.Client
	trigger forerun.Name
	action  forerun.Name
}

func newFeed(c *whisk.Client, trigger forerun.Name, action string) (*feed, error) {
	name, err := nameOf(action)
	return &feed{c, trigger, name}, err
}

// create makes the trigger and tells the feed its settings.
func (f *feed) create(ctx context.Context, body *whisk.TriggerPut, settings []forerun.KeyValue) (whisk.Document[whisk.Trigger], error) {
	body.Annotations = with(body.Annotations, forerun.KeyValue{Key: "feed", Value: quoted(f.action.String())})
	path := whisk.Path(whisk.Triggers, f.trigger)
	trigger, err := whisk.Put[whisk.Trigger](ctx, f.client, path, body, false)
	if err != nil {
		return trigger, err
	}
	if _, err := f.tell(ctx, "CREATE", settings); err != nil {
		if left := f.client.Delete(ctx, path, false); left != nil {
			return trigger, fmt.Errorf("%w. The trigger could not be deleted again (%w): run `forerun trigger delete %s`", err, left, f.trigger.Entity)
		}
		return trigger, fmt.Errorf("%w. The trigger %s was not created", err, f.trigger.Entity)
	}
	return trigger, nil
}

// tell invokes the feed, and returns its result.
func (f *feed) tell(ctx context.Context, event string, settings []forerun.KeyValue) (json.RawMessage, error) {
	for _, kv := range []forerun.KeyValue{
		{Key: "lifecycleEvent", Value: quoted(event)},
		{Key: "triggerName", Value: quoted(f.trigger.String())},
		{Key: "authKey", Value: quoted(f.client.Auth())},
	} {
		settings = with(settings, kv)
	}
	outcome, err := f.client.Invoke(ctx, whisk.Path(whisk.Actions, f.action), objectOf(settings), whisk.Terms{Blocking: true})
	switch {
	case err != nil:
		return nil, fmt.Errorf("the feed %s cannot be invoked: %w", f.action, err)
	case outcome.Failed:
		return nil, &failure{exitFunction, fmt.Sprintf("the feed %s failed: %s", f.action, reasonOf(outcome))}
	case !outcome.Over:
		return nil, &failure{exitTimeout, fmt.Sprintf("the feed %s still runs: run `forerun activation get %s`", f.action, outcome.Activation)}
	}
	var record whisk.Activation
	if err := json.Unmarshal(outcome.Body, &record); err != nil {
		return nil, fmt.Errorf("the feed's record cannot be read: %w", err)
	}
	return record.Response.Result, nil
}

// reasonOf is why a feed failed: the error that it returned, or where to find it.
func reasonOf(outcome *whisk.Outcome) string {
	var record whisk.Activation
	var result struct{ Error string }
	if json.Unmarshal(outcome.Body, &record) == nil && json.Unmarshal(record.Response.Result, &result) == nil && result.Error != "" {
		return result.Error
	}
	return fmt.Sprintf("run `forerun activation get %s`", outcome.Activation)
}
