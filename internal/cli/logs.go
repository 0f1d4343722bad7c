package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// pollEvery is how long a follower waits before it connects again, or asks a server without a feed for new activations.
const pollEvery = 250 * time.Millisecond

// pageSize is the most that a list holds.
const pageSize = 200

func (a *app) logsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "logs [ACTION]", Short: "Show what the latest activations wrote, and follow those that run", Args: between(0, 1),
	}
	follow := cmd.Flags().BoolP("follow", "f", false, "go on with what runs, line by line as it is written, until interrupted")
	limit := cmd.Flags().IntP("limit", "l", 10, "begin with the latest `N` activations")
	strip := stripFlag(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		f, err := a.newFollower(cmd, c, args)
		if err != nil {
			return err
		}
		f.strip = *strip
		err = f.latest(cmd.Context(), *limit)
		switch {
		case *follow && cmd.Context().Err() != nil:
			return nil // as in the middle of following
		case err != nil || !*follow:
			return err
		}
		return f.follow(cmd.Context())
	})
	return cmd
}

func (a *app) activationPoll() *cobra.Command {
	cmd := &cobra.Command{Use: "poll [/NAMESPACE | ACTION]", Short: "Follow what activations write", Args: between(0, 1)}
	exit := cmd.Flags().IntP("exit", "e", 0, "stop after `SECONDS`")
	strip := stripFlag(cmd.Flags())
	var since [4]int
	units := [4]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	for i, unit := range []string{"seconds", "minutes", "hours", "days"} {
		cmd.Flags().IntVar(&since[i], "since-"+unit, 0, "begin with activations of the last `N` "+unit)
	}
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		f, err := a.newFollower(cmd, c, args)
		if err != nil {
			return err
		}
		f.strip = *strip
		var back time.Duration
		for i := range since {
			back += time.Duration(since[i]) * units[i]
		}
		ctx := cmd.Context()
		if *exit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, time.Duration(*exit)*time.Second)
			defer cancel()
		}
		if back > 0 {
			f.query.Set("since", strconv.FormatInt(time.Now().Add(-back).UnixMilli(), 10))
		} else if err := f.latest(ctx, 0); err != nil {
			return err
		}
		say(cmd, "Following activations; interrupt to stop.")
		return f.follow(ctx)
	})
	return cmd
}

// follower shows the logs of activations, each line once. The server's feed tells it the lines of running activations and
// which ones have ended. Whenever it connects, it also looks for records of activations that ended before. A record appears
// when its activation ends but is listed by its start, so a follower reads a whole page each time and shows what it has not
// seen in it.
type follower struct {
	app        *app
	cmd        *cobra.Command
	client     *whisk.Client
	namespace  string
	collection string
	query      url.Values       // narrows the list down
	seen       map[string]int64 // the start of each activation that is not to be shown (again)
	shown      map[string]int   // how many lines of each running activation were shown
	strip      bool
	told       map[string]string // the error that was told of each activation, or of one that it began, by its id
}

func (a *app) newFollower(cmd *cobra.Command, c *whisk.Client, args []string) (*follower, error) {
	namespace, query, err := activationsOf(args)
	if err != nil {
		return nil, err
	}
	query.Set("limit", strconv.Itoa(pageSize))
	return &follower{
		app: a, cmd: cmd, client: c, namespace: namespace, collection: whisk.Collection(namespace, whisk.Activations, ""), query: query,
		seen: make(map[string]int64), shown: make(map[string]int), told: make(map[string]string),
	}, nil
}

// latest shows the newest n activations, and notes the others as seen.
func (f *follower) latest(ctx context.Context, n int) error {
	listed, _, err := f.page(ctx, 0)
	if err != nil {
		return err
	}
	n = max(0, min(n, len(listed)))
	for _, x := range listed[n:] {
		f.seen[x.ActivationID] = x.Start
	}
	return f.show(ctx, listed[:n])
}

// follow shows what runs from now on, until ctx ends, which is not a failure. A server that is away for a while is asked
// again.
func (f *follower) follow(ctx context.Context) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	away, look := false, f.stream
	for {
		connected, err := look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case !connected && isUnknown(err):
			look = f.poll // the server has no feed
			continue
		case err != nil && !isAway(err):
			return err
		case err != nil && (connected || !away):
			say(f.cmd, "%v; trying again", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// isAway reports whether a server may be back after a while: it cannot be reached, or it is shutting down.
func isAway(err error) bool {
	refused, ok := errors.AsType[*whisk.Error](err)
	return isNetwork(err) || ok && refused.Status == http.StatusServiceUnavailable
}

// isUnknown reports whether a server does not know what it was asked for: OpenWhisk has no feed.
func isUnknown(err error) bool {
	refused, ok := errors.AsType[*whisk.Error](err)
	return ok && (refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed)
}

// stream shows what the feed tells, until the connection ends.
func (f *follower) stream(ctx context.Context) (connected bool, err error) {
	feed, err := whisk.Follow(ctx, f.client, f.namespace, url.Values{"name": f.query["name"]}, "")
	if err != nil {
		return false, err
	}
	defer feed.Close()
	if connected, err = f.poll(ctx); err != nil { // what has ended before
		return connected, err
	}
	for {
		event, err := feed.Next()
		if err == nil {
			err = f.event(ctx, &event)
		}
		if err != nil {
			return true, err
		}
	}
}

// event shows an event of the feed. The record of an activation has its error, and the lines that were not shown.
func (f *follower) event(ctx context.Context, e *whisk.Event) error {
	id := e.ActivationID
	if _, known := f.seen[id]; known {
		return nil
	}
	switch {
	case e.Kind == "line" && e.Number >= f.shown[id]:
		f.shown[id] = e.Number + 1
		return f.line(&e.Activation, e.Line)
	case e.Kind == "ended" && isSuccess(&e.Activation):
		f.forget()
		f.see(&e.Activation)
	case e.Kind == "ended":
		f.forget()
		return f.show(ctx, []whisk.Activation{e.Activation})
	}
	return nil
}

// isSuccess reports whether a listed activation has ended well. A trigger's is listed without an end.
func isSuccess(x *whisk.Activation) bool { return x.StatusCode == 0 }

// see notes that an activation was shown.
func (f *follower) see(x *whisk.Activation) {
	f.seen[x.ActivationID] = x.Start
	delete(f.shown, x.ActivationID)
}

// poll shows what is new. It turns pages until one is not full of new ones.
func (f *follower) poll(ctx context.Context) (listed bool, err error) {
	var fresh []whisk.Activation
	for skip := 0; ; skip += pageSize {
		listed, all, err := f.page(ctx, skip)
		if err != nil {
			return false, err
		}
		if fresh = append(fresh, listed...); !all {
			break
		}
	}
	f.forget()
	return true, f.show(ctx, fresh)
}

// forget keeps what was seen from growing without end: what began long before the newest page is not listed again.
func (f *follower) forget() {
	const most = 20 * pageSize
	if len(f.seen) < 2*most {
		return
	}
	starts := slices.Sorted(maps.Values(f.seen))
	oldest := starts[len(starts)-most]
	maps.DeleteFunc(f.seen, func(_ string, start int64) bool { return start < oldest })
	maps.DeleteFunc(f.told, func(id, _ string) bool { return f.seen[id] == 0 })
}

// page lists the activations of a page that were not seen before, and reports whether that is a full page.
func (f *follower) page(ctx context.Context, skip int) ([]whisk.Activation, bool, error) {
	f.query.Set("skip", strconv.Itoa(skip))
	listed, err := whisk.List[whisk.Activation](ctx, f.client, f.collection, f.query)
	var fresh []whisk.Activation
	for _, d := range listed {
		if _, known := f.seen[d.Value.ActivationID]; !known {
			fresh = append(fresh, d.Value)
		}
	}
	return fresh, len(fresh) >= pageSize, err
}

// show reads the records of listed activations and writes their logs, the oldest first.
func (f *follower) show(ctx context.Context, listed []whisk.Activation) error {
	slices.SortStableFunc(listed, func(x, y whisk.Activation) int { return cmp.Compare(x.Start, y.Start) })
	for _, x := range listed {
		if _, known := f.seen[x.ActivationID]; known {
			continue // an end while pages were turned moved it to the next one
		}
		record, err := whisk.Get[whisk.Activation](ctx, f.client, f.collection+"/"+url.PathEscape(x.ActivationID), nil)
		if err != nil {
			return err
		}
		err = f.record(&record.Value)
		f.see(&x)
		if err != nil {
			return err
		}
	}
	return nil
}

// record writes what was not shown of the log of one activation, and its error.
func (f *follower) record(r *whisk.Activation) error {
	for _, line := range r.Logs[min(f.shown[r.ActivationID], len(r.Logs)):] {
		if _, err := forerun.ParseActivationID(line); err == nil {
			continue // a component's, which has its own log
		}
		if err := f.line(r, line); err != nil {
			return err
		}
	}
	if !r.Response.Success {
		f.failed(r)
	}
	return nil
}

// failed tells a failure. The failure of a workflow is the one of its function: it is told once.
func (f *follower) failed(r *whisk.Activation) {
	text := errorIn(r.Response.Result)
	if f.told[r.Cause] != text && f.told[r.ActivationID] != text {
		say(f.cmd, "%s failed (%s, activation %s): %s", r.Name, r.Response.Status, r.ActivationID, text)
	}
	f.told[r.ActivationID] = text
	if r.Cause != "" {
		f.told[r.Cause] = text
	}
}

// line writes one line of a log.
func (f *follower) line(r *whisk.Activation, line string) error {
	moment, stream, text := cutLine(line)
	if f.app.output != asText {
		return f.app.showLine(f.cmd, "", logLine{r.ActivationID, r.Name, moment, stream, text})
	}
	if f.strip {
		line = text
	}
	_, err := fmt.Fprintf(data(f.cmd), "%s %s\n", r.Name, line)
	return err
}

// logLine is a line of a log, as JSON.
type logLine struct {
	ActivationID string `json:"activationId"`
	Name         string `json:"name"`
	Time         string `json:"time"`
	Stream       string `json:"stream"`
	Text         string `json:"text"`
}

// errorIn is the error in a result, shortened.
func errorIn(result json.RawMessage) string {
	var members struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(result, &members) // a result of another form has none
	text := first(unquoted(members.Error), string(members.Error), string(result))
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:300]) + "..."
	}
	return text
}

// unquoted is the string in a JSON string; empty for other values.
func unquoted(value json.RawMessage) (s string) {
	_ = json.Unmarshal(value, &s) // not a string: empty
	return s
}

// cutLine takes a line of a log apart: "2026-01-02T15:04:05.000000000Z stdout: text".
func cutLine(line string) (moment, stream, text string) {
	moment, rest, ok := strings.Cut(line, " ")
	stream, text, found := strings.Cut(rest, ":")
	stream = strings.TrimSpace(stream)
	if !ok || !found || stream != "stdout" && stream != "stderr" {
		return "", "", line
	}
	return moment, stream, strings.TrimPrefix(text, " ")
}

func stripped(line string) string {
	_, _, text := cutLine(line)
	return text
}
