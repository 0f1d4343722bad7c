package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"forerun.dev/forerun/internal/canonical"
	"forerun.dev/forerun/internal/cli/project"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// atOnce bounds the requests of one deployment that are under way at the same time.
const atOnce = 4

func (a *app) deployCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "deploy [FILE | FOLDER]", Short: "Deploy what a project file or a folder of functions says", Args: between(0, 1),
		Long: `Deploy what a project file says: packages, functions, sequences, compositions, triggers and rules. Without an argument it is
forerun.yaml in the current folder. A folder that is named and has none is taken as functions: each file or folder in it that
can be one is an action.

An entity that is deployed already and has not changed stays as it is. --prune deletes the entities that are no longer in the project,
and finds them by the project's name (project: in the file). The file's form is docs/forerun.schema.json.`,
		Example: "  forerun deploy\n  forerun deploy functions/ --dry-run",
	}
	dry := cmd.Flags().Bool("dry-run", false, "only say what would change")
	prune := cmd.Flags().Bool("prune", false, "delete what was deployed from the project and is no longer in it")
	cmd.RunE = a.run(func(cmd *cobra.Command, c *whisk.Client, args []string) error {
		p, entities, err := a.entities(optional(args, 0))
		if err != nil {
			return err
		}
		if *prune && p.Owner() == "" {
			return wrongf("--prune finds what it deletes by the name of the project: write `project: NAME` in its %s. Entities that were deployed before cannot be pruned", project.FileName)
		}
		saySkipped(cmd, p)
		for i := range entities {
			sayWarnings(cmd, &entities[i])
		}
		d := &deployment{client: c, dry: *dry, done: make(map[string]digest)}
		changes, err := d.deploy(cmd.Context(), entities)
		if err == nil && *prune {
			var pruned []change
			pruned, err = d.prune(cmd.Context(), p.Owner(), entities)
			changes = append(changes, pruned...)
		}
		if shown := a.showChanges(cmd, changes); shown != nil {
			return shown
		}
		if err == nil {
			say(cmd, "ok: %s", summary(changes, *dry))
		}
		return err
	})
	return cmd
}

// entities reads a project.
func (a *app) entities(path string) (*project.Project, []project.Entity, error) {
	p, err := project.Load(path)
	if err != nil {
		return nil, nil, wrongf("%v", err)
	}
	entities, err := p.Entities(a.env.Getenv)
	if err != nil {
		return nil, nil, wrongf("%v", err)
	}
	return p, entities, nil
}

// saySkipped tells which files of a folder of functions are not deployed.
func saySkipped(cmd *cobra.Command, p *project.Project) {
	if len(p.Skipped) > 0 {
		say(cmd, "skipped, since they are not functions: %s", strings.Join(p.Skipped, ", "))
	}
}

// prune deletes what was deployed from the project and is no longer in it.
func (d *deployment) prune(ctx context.Context, owner string, entities []project.Entity) ([]change, error) {
	var now []project.Named
	for i := range entities {
		now = append(now, project.Named{Collection: entities[i].Collection, Name: entities[i].Name})
	}
	left, err := leftovers(ctx, d.client, owner, now)
	if err != nil {
		return nil, err
	}
	return remove(ctx, d.client, inDeletionOrder(left), d.dry)
}

// sayWarnings tells which links and packages of a function's folder are not deployed.
func sayWarnings(cmd *cobra.Command, e *project.Entity) {
	for _, warning := range e.Warnings {
		say(cmd, "%s %s: %s", e.What(), e.Name, warning)
	}
}

// change is what a deployment did to an entity.
type change struct {
	Change string `json:"change"` // "created", "updated", "unchanged" or "deleted"
	Kind   string `json:"kind"`   // "action", ...
	Name   string `json:"name"`
}

func (c change) String() string { return fmt.Sprintf("%-9s  %-7s  %s", c.Change, c.Kind, c.Name) }

// showChanges writes a line for each change, or all of them as JSON.
func (a *app) showChanges(cmd *cobra.Command, changes []change) error {
	if a.output == asJSON {
		return a.showLine(cmd, "", append([]change{}, changes...))
	}
	for _, c := range changes {
		if err := a.showLine(cmd, c.String(), c); err != nil {
			return err
		}
	}
	return nil
}

func summary(changes []change, dry bool) string {
	count := make(map[string]int)
	for _, c := range changes {
		count[c.Change]++
	}
	text := fmt.Sprintf("%d created, %d updated, %d unchanged", count["created"], count["updated"], count["unchanged"])
	switch {
	case count["deleted"] == len(changes) && len(changes) > 0:
		text = fmt.Sprintf("%d deleted", count["deleted"])
	case count["deleted"] > 0:
		text += fmt.Sprintf(", %d deleted", count["deleted"])
	}
	if dry {
		text += " (nothing was sent)"
	}
	return text
}

// digest identifies what an entity was deployed as.
type digest [sha256.Size]byte

// deployment brings a namespace to what a project says. It may be used again when the project has changed, and then asks
// about changed entities only.
type deployment struct {
	client *whisk.Client
	dry    bool
	done   map[string]digest // what this deployment knows to be deployed, by path
}

// deploy makes or updates what is not there as it should be, rank by rank, and returns what it did, in the order of the
// entities. Where something fails, what comes after in rank is left out.
func (d *deployment) deploy(ctx context.Context, entities []project.Entity) ([]change, error) {
	var changes []change
	for len(entities) > 0 {
		n := 1
		for n < len(entities) && entities[n].Rank == entities[0].Rank {
			n++
		}
		done, err := d.rank(ctx, entities[:n])
		changes = append(changes, done...)
		if err != nil {
			return changes, err
		}
		entities = entities[n:]
	}
	return changes, nil
}

// rank deploys entities that do not depend on each other.
func (d *deployment) rank(ctx context.Context, entities []project.Entity) ([]change, error) {
	outcomes := make([]string, len(entities))
	failures := make([]error, len(entities))
	digests := make([]digest, len(entities))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range entities {
		e := &entities[i]
		if digests[i], failures[i] = digestOf(e); failures[i] != nil {
			continue
		}
		if outcomes[i] = "unchanged"; d.done[e.Path()] == digests[i] {
			continue
		}
		group.Go(func() error {
			outcomes[i], failures[i] = d.one(ctx, e)
			return nil
		})
	}
	_ = group.Wait() // the errors are in failures
	var changes []change
	for i := range entities {
		e := &entities[i]
		if failures[i] != nil {
			failures[i] = fmt.Errorf("%s %s: %w", e.What(), e.Name, failures[i])
			continue
		}
		d.done[e.Path()] = digests[i]
		changes = append(changes, change{outcomes[i], e.What(), e.Name.String()})
	}
	return changes, errors.Join(failures...)
}

func digestOf(e *project.Entity) (digest, error) {
	encoded, err := canonical.Marshal([]any{e.Body, e.Inactive})
	return sha256.Sum256(encoded), err
}

// one deploys one entity, and tells what it did.
func (d *deployment) one(ctx context.Context, e *project.Entity) (string, error) {
	switch body := e.Body.(type) {
	case *whisk.ActionPut:
		if err := d.find(ctx, e.Absent); err != nil {
			return "", err
		}
		outcome, err := put(ctx, d, e, body, func(is *whisk.Action) bool {
			body.DelAnnotations = gone(body.Annotations, is.Annotations)
			return sameAction(body, is, func() []forerun.KeyValue { return d.inherited(ctx, e.Name) })
		})
		return outcome, orMissing(ctx, d.client, body.Exec, err)
	case *whisk.PackagePut:
		return put(ctx, d, e, body, func(is *whisk.Package) bool { return samePackage(body, is) })
	case *whisk.TriggerPut:
		return put(ctx, d, e, body, func(is *whisk.Trigger) bool { return sameTrigger(body, is) })
	case *whisk.RulePut:
		return d.rule(ctx, e, body)
	}
	return "", fmt.Errorf("nothing is known about deploying a %T", e.Body)
}

// find fails if the server does not have an action that a workflow names.
func (d *deployment) find(ctx context.Context, actions []forerun.Name) error {
	for _, name := range actions {
		_, err := whisk.Get[whisk.Action](ctx, d.client, whisk.Path(whisk.Actions, name), url.Values{"code": {"false"}})
		if whisk.IsStatus(err, http.StatusNotFound) {
			return &failure{exitHTTP, fmt.Sprintf("a step names the action %s, which neither the project nor the server has: correct the name, or deploy the action first", strings.TrimPrefix(name.String(), "/_/"))}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// inherited are the parameters of the package that an action is in. Where they cannot be had the action is taken for another
// than it should be, and put again.
func (d *deployment) inherited(ctx context.Context, action forerun.Name) []forerun.KeyValue {
	if action.Package == "" {
		return nil
	}
	name := forerun.Name{Namespace: action.Namespace, Entity: action.Package}
	pkg, err := whisk.Get[whisk.Package](ctx, d.client, whisk.Path(whisk.Packages, name), withSecrets(nil, true))
	if err != nil {
		return nil
	}
	return pkg.Value.Parameters
}

// put reads what is there and, if it is not the same, puts the body in its place.
func put[T any](ctx context.Context, d *deployment, e *project.Entity, body any, same func(*T) bool) (string, error) {
	query := make(url.Values)
	if e.Collection == whisk.Actions {
		query.Set("code", "true")
	}
	if e.Collection == whisk.Actions || e.Collection == whisk.Packages { // secret parameters can be compared only if the server shows them
		query.Set("secrets", "true")
	}
	is, err := whisk.Get[T](ctx, d.client, e.Path(), query)
	outcome := "updated"
	switch {
	case whisk.IsStatus(err, http.StatusNotFound):
		outcome = "created"
	case err != nil:
		return "", err
	case same(&is.Value):
		return "unchanged", nil
	}
	if d.dry {
		return outcome, nil
	}
	_, err = whisk.Put[T](ctx, d.client, e.Path(), body, true)
	return outcome, err
}

// rule deploys a rule, and switches it on or off.
func (d *deployment) rule(ctx context.Context, e *project.Entity, body *whisk.RulePut) (string, error) {
	outcome, err := put(ctx, d, e, body, func(is *whisk.Rule) bool { return sameRule(body, is) })
	if err != nil || d.dry {
		return outcome, err
	}
	rule, err := whisk.Get[whisk.Rule](ctx, d.client, e.Path(), nil)
	if active := rule.Value.Status != "inactive"; err == nil && active == e.Inactive {
		err = d.client.SetRule(ctx, e.Path(), !e.Inactive)
		if outcome == "unchanged" {
			outcome = "updated"
		}
	}
	return outcome, err
}
