package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
)

func (a *app) feedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "feed [ACTION]", Short: "Tell which activations begin and end, and what they write, until interrupted", Args: between(0, 1),
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		namespace, query, err := activationsOf(args)
		if err != nil {
			return err
		}
		w := &watcher{app: a, cmd: cmd, client: c, namespace: namespace, query: query, running: make(map[string]int), over: make(map[string]bool)}
		return w.watch(cmd.Context())
	})
	return cmd
}

// mostOver bounds the activations that a watcher knows to have ended. A feed tells of the last minute once more after a pause.
const mostOver = 10_000

// watcher shows the events of a feed, each once.
type watcher struct {
	app       *app
	cmd       *cobra.Command
	client    *whisk.Client
	namespace string
	query     url.Values
	last      string          // the id of the last event
	running   map[string]int  // how many lines of each activation were shown
	over      map[string]bool // activations that have ended, the latest ones
}

// watch shows events until ctx ends, which is not a failure. A server that is away for a while is asked again, from the last event on.
func (w *watcher) watch(ctx context.Context) error {
	for away := false; ; {
		connected, err := w.stream(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !isAway(err):
			return err
		case connected || !away:
			say(w.cmd, "%v; trying again", err)
		}
		away = true
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pollEvery):
		}
	}
}

// stream shows the events of one connection.
func (w *watcher) stream(ctx context.Context) (connected bool, err error) {
	feed, err := whisk.Follow(ctx, w.client, w.namespace, w.query, w.last)
	if err != nil {
		return false, err
	}
	defer feed.Close()
	for {
		event, err := feed.Next()
		if err == nil {
			err = w.event(&event)
		}
		if err != nil {
			return true, err
		}
	}
}

// event shows an event, unless it was shown before.
func (w *watcher) event(e *whisk.Event) error {
	w.last = first(e.ID, w.last)
	id := e.ActivationID
	lines, known := w.running[id]
	switch {
	case w.over[id] || e.Kind == "begun" && known || e.Kind == "line" && e.Number < lines:
		return nil
	case e.Kind == "begun":
		w.running[id] = 0
	case e.Kind == "line":
		w.running[id] = e.Number + 1
	case e.Kind == "ended":
		if len(w.over) >= mostOver {
			clear(w.over)
		}
		w.over[id] = true
		delete(w.running, id)
	}
	return w.app.showLine(w.cmd, told(e), shownEvent{e.Kind, e.ID, e.Data})
}

// shownEvent is an event as JSON.
type shownEvent struct {
	Event string          `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// told is an event in words.
func told(e *whisk.Event) string {
	switch e.Kind {
	case "line":
		return fmt.Sprintf("line   %s %s %s", e.ActivationID, e.Name, e.Line)
	case "ended":
		return fmt.Sprintf("ended  %s %s %s in %d ms", e.ActivationID, e.Name, statusOf(&e.Activation), e.Duration)
	case "gap":
		return "gap    more has ended than the feed tells: forerun activation list"
	}
	return fmt.Sprintf("%-6s %s %s", e.Kind, e.ActivationID, e.Name)
}
