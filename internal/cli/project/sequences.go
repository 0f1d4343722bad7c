package project

import (
	"errors"
	"strings"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

func (b *builder) sequences(within []string, pkg string, sequences map[string]*sequence) {
	for _, name := range sortedKeys(sequences) {
		path, x := below(within, "sequences", name), sequences[name]
		exec := &whisk.Exec{Kind: "sequence"}
		for _, reference := range x.Actions {
			component, err := b.reference(reference, pkg)
			b.wrong(path, err)
			exec.Components = append(exec.Components, component.String())
		}
		full := entityName(pkg, name)
		b.addAction(path, Entity{Name: full}, exec, &x.common, nil)
		if b.depends == nil {
			b.depends, b.place = make(map[string][]string), make(map[string][]string)
		}
		b.depends[full.String()], b.place[full.String()] = exec.Components, path
	}
}

// reference reads the name of an action; a plain name is first looked for in the package where it stands.
func (b *builder) reference(reference, pkg string) (forerun.Name, error) {
	name, err := forerun.ParseName(reference, "_")
	if err != nil || strings.Contains(reference, "/") || pkg == "" {
		return name, err
	}
	if x := b.project.file.Packages[pkg]; x != nil && (x.Actions[reference] != nil || x.Sequences[reference] != nil || x.Compositions[reference] != nil || x.Workflows[reference] != nil) {
		name.Package = pkg
	}
	return name, nil
}

// rankSequences puts sequences after those that they run.
func (b *builder) rankSequences() {
	ranks := make(map[string]int)
	for _, name := range sortedKeys(b.depends) {
		b.rankSequence(name, ranks)
	}
	for i, e := range b.entities {
		if _, ok := b.depends[e.Name.String()]; ok && e.Collection == whisk.Actions {
			b.entities[i].Rank = ranks[e.Name.String()]
		}
	}
}

// rankSequence returns the rank of a sequence; while it is being worked out, ranks has -1 for it.
func (b *builder) rankSequence(name string, ranks map[string]int) int {
	if rank, ok := ranks[name]; ok {
		if rank < 0 {
			b.wrong(b.place[name], errors.New("the sequence contains itself"))
		}
		return rank
	}
	ranks[name] = -1
	rank := rankSequence
	for _, component := range b.depends[name] {
		if _, ok := b.depends[component]; ok {
			rank = max(rank, 1+b.rankSequence(component, ranks))
		}
	}
	ranks[name] = rank
	return rank
}
