package project

import (
	"strings"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// Named is an entity by its name.
type Named struct {
	Collection string // whisk.Actions, ...
	Name       forerun.Name
}

// What is the entity's kind, in a word: "action".
func (n Named) What() string { return strings.TrimSuffix(n.Collection, "s") }

// Path is the entity's path below /api/v1/.
func (n Named) Path() string { return whisk.Path(n.Collection, n.Name) }

// Owner is the project's name; empty if it has none.
func (p *Project) Owner() string { return p.file.Project }

// Names lists the entities that the project file names, without a look at code or environment: in the order in which they
// can be deleted.
func (p *Project) Names() []Named {
	var all []Named
	add := func(collection, pkg string, names []string) {
		for _, name := range names {
			all = append(all, Named{collection, entityName(pkg, name)})
		}
	}
	actions := func(name string, x *pkg) {
		add(whisk.Actions, name, sortedKeys(x.Sequences))
		add(whisk.Actions, name, sortedKeys(x.Workflows))
		add(whisk.Actions, name, sortedKeys(x.Compositions))
		add(whisk.Actions, name, sortedKeys(x.Actions))
	}
	f := p.file
	add(whisk.Rules, "", sortedKeys(f.Rules))
	add(whisk.Triggers, "", sortedKeys(f.Triggers))
	actions("", &pkg{Actions: f.Actions, Sequences: f.Sequences, Compositions: f.Compositions, Workflows: f.Workflows})
	for _, name := range sortedKeys(f.Packages) {
		if x := f.Packages[name]; x != nil {
			actions(name, x)
		}
	}
	for _, name := range sortedKeys(f.Packages) { // a binding before the package that it stands for
		if x := f.Packages[name]; x != nil && x.Bind != "" {
			add(whisk.Packages, "", []string{name})
		}
	}
	for _, name := range sortedKeys(f.Packages) {
		if x := f.Packages[name]; x == nil || x.Bind == "" {
			add(whisk.Packages, "", []string{name})
		}
	}
	return all
}
