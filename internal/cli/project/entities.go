package project

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"forerun.dev/forerun/internal/annotation"
	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// Entity is one thing to deploy. Those of a lower rank must be there before those of a higher; within a rank the order
// does not matter.
type Entity struct {
	Collection string // whisk.Actions, ...
	Name       forerun.Name
	Body       any            // *whisk.ActionPut, *whisk.PackagePut, *whisk.TriggerPut or *whisk.RulePut
	Inactive   bool           // a rule that is switched off
	Warnings   []string       // what its code does not have, and why
	Absent     []forerun.Name // the actions of a workflow that the project does not have
	Rank       int
}

// The ranks. Sequences that run sequences come after these.
const (
	rankPackage = iota
	rankBinding
	rankAction
	rankSequence
)

const rankRule = 1000

// What is the entity's kind, in a word: "action".
func (e *Entity) What() string { return strings.TrimSuffix(e.Collection, "s") }

// Path is the entity's path below /api/v1/.
func (e *Entity) Path() string { return whisk.Path(e.Collection, e.Name) }

// Entities builds what is to be deployed, sorted by rank and name. getenv looks up the variables in inputs.
func (p *Project) Entities(getenv func(string) string) ([]Entity, error) {
	b := &builder{project: p, getenv: getenv}
	b.actions(nil, "", p.file.Actions)
	b.compositions(nil, "", p.file.Compositions)
	b.workflows(nil, "", p.file.Workflows)
	for _, name := range sortedKeys(p.file.Packages) {
		b.pkg(name, p.file.Packages[name])
	}
	b.sequences(nil, "", p.file.Sequences)
	for _, name := range sortedKeys(p.file.Packages) {
		if x := p.file.Packages[name]; x != nil {
			b.sequences([]string{"packages", name}, name, x.Sequences)
		}
	}
	b.triggers()
	b.rules()
	b.checkCycles()
	b.rankSequences()
	b.findAbsent()
	if p.file.Project != "" {
		b.sign(p.file.Project)
	}
	slices.SortStableFunc(b.entities, func(x, y Entity) int {
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Name.String(), y.Name.String()))
	})
	return b.entities, errors.Join(b.errors...)
}

// Owner is the annotation with the name of the project that an entity was deployed from.
const Owner = "forerun-project"

// sign notes the project's name at each entity.
func (b *builder) sign(name string) {
	value, _ := json.Marshal(name) // strings always marshal
	owner := forerun.KeyValue{Key: Owner, Value: value}
	for _, e := range b.entities {
		switch body := e.Body.(type) {
		case *whisk.ActionPut:
			body.Annotations = append(body.Annotations, owner)
		case *whisk.PackagePut:
			body.Annotations = append(body.Annotations, owner)
		case *whisk.TriggerPut:
			body.Annotations = append(body.Annotations, owner)
		case *whisk.RulePut:
			body.Annotations = append(body.Annotations, owner)
		}
	}
}

// builder gathers entities, and everything that is wrong with them.
type builder struct {
	project   *Project
	getenv    func(string) string
	entities  []Entity
	errors    []error
	taken     map[string]bool     // paths of entities
	runs      map[string][]string // the actions that each sequence and workflow of the project runs, by name
	place     map[string][]string // where each of these stands
	sequenced []string            // the names of the sequences
}

func (b *builder) wrong(path []string, err error) {
	if err != nil {
		b.errors = append(b.errors, b.project.at(path, err))
	}
}

func (b *builder) add(path []string, e Entity) {
	if b.taken == nil {
		b.taken = make(map[string]bool)
	}
	if b.taken[e.Path()] {
		b.wrong(path, fmt.Errorf("another %s has this name: /%s/%s; rename one of them", e.What(), e.Name.Path(), e.Name.Entity))
		return
	}
	b.taken[e.Path()] = true
	b.entities = append(b.entities, e)
}

// below is a path one or more names further; it shares nothing with path.
func below(path []string, names ...string) []string { return slices.Concat(path, names) }

func entityName(pkg, name string) forerun.Name {
	return forerun.Name{Namespace: "_", Package: pkg, Entity: name}
}

func (b *builder) pkg(name string, x *pkg) {
	path := []string{"packages", name}
	if x == nil {
		x = new(pkg)
	}
	rank := rankPackage
	body := &whisk.PackagePut{Parameters: b.parameters(path, x.Inputs, x.Env, x.Secrets), Annotations: keyValues(x.Annotations), Publish: &x.Shared}
	if x.Bind != "" {
		rank = rankBinding
		if len(x.Actions)+len(x.Sequences)+len(x.Compositions)+len(x.Workflows) > 0 {
			b.wrong(below(path, "bind"), errors.New("a package that stands for another cannot have actions of its own: remove bind or the actions"))
		}
		to, err := forerun.ParseName(x.Bind, "_")
		if err == nil && to.Package != "" {
			err = fmt.Errorf("%q is not a package: write /NAMESPACE/PACKAGE", x.Bind)
		}
		b.wrong(below(path, "bind"), err)
		body.Binding = &whisk.Binding{Namespace: to.Namespace, Name: to.Entity}
	}
	b.add(path, Entity{Collection: whisk.Packages, Name: entityName("", name), Body: body, Rank: rank})
	b.actions(path, name, x.Actions)
	b.compositions(path, name, x.Compositions)
	b.workflows(path, name, x.Workflows)
}

func (b *builder) actions(within []string, pkg string, actions map[string]*action) {
	for _, name := range sortedKeys(actions) {
		path, x := below(within, "actions", name), actions[name]
		which, source := "file", x.File
		if x.Folder != "" {
			which, source = "folder", x.Folder
		}
		exec, warnings, err := ReadCode(b.project.resolve(source), x.Kind, x.Main)
		b.wrong(below(path, which), err)
		b.addAction(path, Entity{Name: entityName(pkg, name), Warnings: warnings}, exec, &x.common, nil)
	}
}

// resolve makes a path of the project file one of this process.
func (p *Project) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.Folder, path)
}

// addAction adds an action, of which e has the name, with the annotations of its own kind over the ones in the file.
func (b *builder) addAction(path []string, e Entity, exec *whisk.Exec, x *common, own []forerun.KeyValue) {
	annotations := keyValues(x.Annotations)
	for _, kv := range slices.Concat(own, b.web(path, x.Web)) {
		annotations = slices.DeleteFunc(annotations, func(old forerun.KeyValue) bool { return old.Key == kv.Key })
		annotations = append(annotations, kv)
	}
	b.wrong(below(path, "annotations"), annotation.Check(annotations))
	if exec != nil {
		b.wrong(below(path, "annotations"), annotation.CheckWorkflow(exec.Kind, annotations))
	}
	body := &whisk.ActionPut{Exec: exec, Parameters: b.parameters(path, x.Inputs, x.Env, x.Secrets), Annotations: annotations, Limits: limitsOf(x.Limits)}
	if exec != nil && exec.Kind == "sequence" {
		body.Parameters = nil // the server keeps the components there
	}
	e.Collection, e.Body, e.Rank = whisk.Actions, body, rankAction
	b.add(path, e)
}

func (b *builder) web(path []string, web any) []forerun.KeyValue {
	if web == nil {
		return nil
	}
	annotations, err := WebAnnotations(fmt.Sprint(web))
	b.wrong(below(path, "web"), err)
	return annotations
}

// limitsOf fills in the defaults, so that a limit that is taken out of the file is no longer in force.
func limitsOf(given limits) *whisk.LimitsPut {
	d := forerun.DefaultLimits()
	l := &whisk.LimitsPut{Timeout: &d.Timeout, Memory: &d.Memory, Logs: &d.Logs, Concurrency: &d.Concurrency}
	for _, x := range []struct{ from, to **int }{
		{&given.Timeout, &l.Timeout}, {&given.Memory, &l.Memory}, {&given.Logs, &l.Logs}, {&given.Concurrency, &l.Concurrency},
	} {
		if *x.from != nil {
			*x.to = *x.from
		}
	}
	return l
}

func (b *builder) triggers() {
	for _, name := range sortedKeys(b.project.file.Triggers) {
		path, x := []string{"triggers", name}, b.project.file.Triggers[name]
		if x == nil {
			x = new(trigger)
		}
		body := &whisk.TriggerPut{Parameters: b.inputs(path, "inputs", x.Inputs), Annotations: keyValues(x.Annotations)}
		b.add(path, Entity{Collection: whisk.Triggers, Name: entityName("", name), Body: body, Rank: rankAction})
	}
}

func (b *builder) rules() {
	for _, name := range sortedKeys(b.project.file.Rules) {
		path, x := []string{"rules", name}, b.project.file.Rules[name]
		event, err := forerun.ParseName(x.Trigger, "_")
		if err == nil && event.Package != "" {
			err = fmt.Errorf("%q is not a trigger: write NAME or /NAMESPACE/NAME", x.Trigger)
		}
		b.wrong(below(path, "trigger"), err)
		action, err := b.reference(x.Action, "")
		b.wrong(below(path, "action"), err)
		body := &whisk.RulePut{Trigger: event.String(), Action: action.String(), Annotations: keyValues(x.Annotations)}
		b.add(path, Entity{
			Collection: whisk.Rules, Name: entityName("", name), Body: body, Rank: rankRule, Inactive: x.Enabled != nil && !*x.Enabled,
		})
	}
}

// keyValues is OpenWhisk's form of values, by name; never nil, so that a PUT takes away what is no longer there.
func keyValues(vs values) []forerun.KeyValue {
	kvs := make([]forerun.KeyValue, 0, len(vs))
	for _, name := range sortedKeys(vs) {
		kvs = append(kvs, forerun.KeyValue{Key: name, Value: vs[name]})
	}
	return kvs
}
