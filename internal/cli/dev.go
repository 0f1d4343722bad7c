package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/spf13/cobra"

	"forerun.dev/forerun/internal/cli/project"
	"forerun.dev/forerun/internal/cli/whisk"
)

// settle is how long dev waits after a change for those that come with it: an editor writes a file in several steps.
const settle = 30 * time.Millisecond

func (a *app) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev [FILE | FOLDER]", Short: "Deploy a project, again whenever a file is saved, and show the logs", Args: between(0, 1),
		Example: "  forerun dev\n  forerun dev --invoke hello -p name World    # and show the result each time",
	}
	d := &development{app: a}
	cmd.Flags().StringVar(&d.invoke, "invoke", "", "invoke `ACTION` after each deployment, and show its result")
	d.params = params(cmd.Flags())
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		d.cmd, d.path, d.deployment = cmd, optional(args, 0), &deployment{client: c, done: make(map[string]digest)}
		return d.run(cmd.Context())
	})
	return cmd
}

// development is one `forerun dev`.
type development struct {
	app        *app
	cmd        *cobra.Command
	path       string // of the project
	invoke     string
	params     *keyValues
	deployment *deployment
	deployed   bool            // once, or tried
	skipped    string          // of a folder of functions, as it was told
	known      []project.Named // what the project had at the last deployment
	wrong      string          // with the last deployment
	watcher    *fsnotify.Watcher
}

// run deploys once, which must succeed as far as reading the project goes, then follows logs and changes until ctx ends.
func (d *development) run(ctx context.Context) (err error) {
	if _, err := project.Load(d.path); err != nil {
		return wrongf("%v", err)
	}
	if d.watcher, err = fsnotify.NewWatcher(); err != nil {
		return fmt.Errorf("files cannot be watched: %w", err)
	}
	defer d.watcher.Close()
	logs, err := d.app.newFollower(d.cmd, d.deployment.client, nil)
	if err != nil {
		return err
	}
	if err := logs.latest(ctx, 0); err != nil {
		return err
	}
	d.deploy(ctx)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- logs.follow(ctx)
	}()
	err = d.watch(ctx)
	cancel()
	return errors.Join(<-ended, err)
}

// deploy deploys what changed and says so. What goes wrong is told, once, and the next change is waited for. A save that
// changes nothing is passed over: the file may be one that this command's own output goes to.
func (d *development) deploy(ctx context.Context) {
	begun := time.Now()
	changes, err := d.changes(ctx)
	changed := false
	for _, c := range changes {
		if c.Change != "unchanged" {
			say(d.cmd, "%s", c)
			changed = true
		}
	}
	var wrong string
	if err != nil {
		wrong = Explain(err)
	}
	again := d.deployed && !changed && wrong == d.wrong
	if ctx.Err() != nil || again {
		return
	}
	d.deployed, d.wrong = true, wrong
	if err != nil {
		say(d.cmd, "%s", wrong)
		return
	}
	say(d.cmd, "ok: %s, in %d ms", summary(changes, false), time.Since(begun).Milliseconds())
	if d.invoke != "" {
		d.tryOut(ctx)
	}
}

// changes reads the project anew, watches its folders, and deploys.
func (d *development) changes(ctx context.Context) ([]change, error) {
	p, err := project.Load(d.path)
	if err != nil {
		return nil, err
	}
	if err := d.watchFolders(p.Folders()); err != nil {
		return nil, err
	}
	entities, err := p.Entities(d.app.env.Getenv)
	if err != nil {
		return nil, err
	}
	d.sayGone(p, entities)
	changes, err := d.deployment.deploy(ctx, entities)
	for i := range entities {
		e := &entities[i]
		if slices.ContainsFunc(changes, func(c change) bool {
			return c.Change != "unchanged" && c.Kind == e.What() && c.Name == e.Name.String()
		}) {
			sayWarnings(d.cmd, e)
		}
	}
	return changes, err
}

// sayGone tells what has left the project, and which files were passed over, each once.
func (d *development) sayGone(p *project.Project, entities []project.Entity) {
	var now []project.Named
	for i := range entities {
		now = append(now, project.Named{Collection: entities[i].Collection, Name: entities[i].Name})
	}
	for _, x := range d.known {
		if !slices.Contains(now, x) {
			name := strings.TrimPrefix(x.Name.String(), "/_/")
			say(d.cmd, "gone       %-7s  %s: no longer in the project, but still deployed; `forerun %s delete %s` deletes it", x.What(), x.Name, x.What(), name)
			delete(d.deployment.done, x.Path())
		}
	}
	d.known = now
	if skipped := strings.Join(p.Skipped, ", "); skipped != d.skipped {
		d.skipped = skipped
		saySkipped(d.cmd, p)
	}
}

func (d *development) watchFolders(folders []string) error {
	watched := d.watcher.WatchList()
	for _, folder := range folders {
		if slices.Contains(watched, folder) {
			continue
		}
		if err := d.watcher.Add(folder); err != nil {
			return fmt.Errorf("%s cannot be watched: %w", folder, err)
		}
	}
	return nil
}

// tryOut invokes the action that the person wants to see.
func (d *development) tryOut(ctx context.Context) {
	name, err := nameOf(d.invoke)
	if err != nil {
		say(d.cmd, "--invoke: %v", err)
		return
	}
	input, err := d.params.object(d.cmd)
	if err != nil {
		say(d.cmd, "%v", err)
		return
	}
	flags := &invokeFlags{result: true}
	outcome, err := d.deployment.client.Invoke(ctx, whisk.Path(whisk.Actions, name), input, flags.terms())
	if err == nil && outcome.Failed {
		return // the follower tells it, with the log
	}
	if err == nil {
		err = d.app.showOutcome(d.cmd, d.deployment.client, d.invoke, flags, outcome)
	}
	if err != nil && ctx.Err() == nil {
		say(d.cmd, "%s", Explain(err))
	}
}

// watch deploys whenever files have changed and then rested for a moment.
func (d *development) watch(ctx context.Context) error {
	var rested <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-d.watcher.Events:
			if !ok {
				return errors.New("files are no longer watched: run `forerun dev` again")
			}
			if matters(event) {
				rested = time.After(settle)
			}
		case err := <-d.watcher.Errors:
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("files cannot be watched: %w", err)
			}
			rested = time.After(settle) // changes were lost, so everything is looked at
		case <-rested:
			rested = nil
			d.deploy(ctx)
		}
	}
}

func matters(event fsnotify.Event) bool {
	return event.Op&^fsnotify.Chmod != 0 && !project.Ignored(filepath.Base(event.Name))
}
