package project

import (
	"fmt"
	"slices"
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
		b.connect(full, path, exec.Components)
		b.sequenced = append(b.sequenced, full.String())
	}
}

// connect notes which actions a sequence or a workflow runs.
func (b *builder) connect(name forerun.Name, path, runs []string) {
	if b.runs == nil {
		b.runs, b.place = make(map[string][]string), make(map[string][]string)
	}
	b.runs[name.String()], b.place[name.String()] = runs, path
}

// checkCycles refuses a sequence or a workflow that runs itself, at once or through others.
func (b *builder) checkCycles() {
	told := make(map[string]bool)
	for _, name := range sortedKeys(b.runs) {
		if way := b.wayBack([]string{name}, make(map[string]bool)); way != nil && !told[name] {
			for i, step := range way {
				told[step] = true
				way[i] = strings.TrimPrefix(step, "/_/")
			}
			what := "workflow"
			if slices.Contains(b.sequenced, name) {
				what = "sequence"
			}
			b.wrong(b.place[name], fmt.Errorf("the %s runs itself (%s): take it out of its own steps", what, strings.Join(way, " > ")))
		}
	}
}

// wayBack finds a way from its first action to itself; nil: there is none.
func (b *builder) wayBack(way []string, seen map[string]bool) []string {
	for _, next := range b.runs[way[len(way)-1]] {
		if next == way[0] {
			return append(way, next)
		}
		if !seen[next] {
			seen[next] = true
			if found := b.wayBack(append(slices.Clone(way), next), seen); found != nil {
				return found
			}
		}
	}
	return nil
}

// findAbsent notes, for each workflow, which of its actions the project does not have: the server must have them. An action of
// another namespace, or of a package that stands for another, is the server's business when the workflow runs.
func (b *builder) findAbsent() {
	for i := range b.entities {
		e := &b.entities[i]
		if e.Collection != whisk.Actions || slices.Contains(b.sequenced, e.Name.String()) {
			continue
		}
		for _, reference := range b.runs[e.Name.String()] {
			name, err := forerun.ParseName(reference, "_")
			x := b.project.file.Packages[name.Package]
			if err == nil && name.Namespace == "_" && (x == nil || x.Bind == "") && !b.taken[whisk.Path(whisk.Actions, name)] {
				e.Absent = append(e.Absent, name)
			}
		}
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
	for i, e := range b.entities {
		if e.Collection == whisk.Actions && slices.Contains(b.sequenced, e.Name.String()) {
			b.entities[i].Rank = b.rankSequence(e.Name.String(), ranks)
		}
	}
}

// rankSequence returns the rank of a sequence. checkCycles refuses one that runs itself.
func (b *builder) rankSequence(name string, ranks map[string]int) int {
	if rank, ok := ranks[name]; ok {
		return rank
	}
	ranks[name] = rankSequence
	rank := rankSequence
	for _, component := range b.runs[name] {
		if slices.Contains(b.sequenced, component) {
			rank = max(rank, 1+b.rankSequence(component, ranks))
		}
	}
	ranks[name] = rank
	return rank
}
