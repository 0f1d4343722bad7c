package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"forerun.dev/forerun/internal/cli/whisk"
	"forerun.dev/forerun/internal/forerun"
)

// workflow is written as a list of steps, or as an object.
type workflow struct {
	Steps []step `json:"steps"`
	common
}

// UnmarshalJSON implements json.Unmarshaler.
func (w *workflow) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '[' {
		return json.Unmarshal(data, &w.Steps)
	}
	type plain workflow
	return json.Unmarshal(data, (*plain)(w))
}

// step is one of these: an action, steps in order, steps in parallel, a step for each element, or a condition.
type step struct {
	Action   string `json:"-"`
	Steps    []step `json:"-"`
	Parallel []step `json:"parallel"`
	Map      *step  `json:"map"`
	If       *step  `json:"if"`
	Then     *step  `json:"then"`
	Else     *step  `json:"else"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *step) UnmarshalJSON(data []byte) error {
	switch {
	case len(data) > 0 && data[0] == '"':
		return json.Unmarshal(data, &s.Action)
	case len(data) > 0 && data[0] == '[':
		return json.Unmarshal(data, &s.Steps)
	}
	type plain step
	return json.Unmarshal(data, (*plain)(s))
}

// combinator is a node of a composer document.
type combinator struct {
	Type       string        `json:"type"`
	Name       string        `json:"name,omitempty"`
	Components []*combinator `json:"components,omitempty"`
	Needs      string        `json:"needs,omitempty"` // of a map: the member without which it fails
	Test       *combinator   `json:"test,omitempty"`
	Consequent *combinator   `json:"consequent,omitempty"`
	Alternate  *combinator   `json:"alternate,omitempty"`
}

// workflows makes compositions of them.
func (b *builder) workflows(within []string, pkg string, workflows map[string]*workflow) {
	for _, name := range sortedKeys(workflows) {
		path, x := below(within, "workflows", name), workflows[name]
		steps := path
		if b.project.root != nil && b.project.root.find(below(path, "steps")) != nil {
			steps = below(path, "steps")
		}
		root := b.inOrder(steps, pkg, x.Steps)
		document, err := json.Marshal(root)
		b.wrong(path, err)
		full := entityName(pkg, name)
		b.addComposition(path, full, document, &x.common)
		b.connect(full, path, actionsIn(root))
	}
}

// actionsIn lists the names of the actions in a document of steps, each once.
func actionsIn(root *combinator) (names []string) {
	if root == nil {
		return nil
	}
	if root.Type == "action" {
		names = append(names, root.Name)
	}
	for _, part := range append(root.Components, root.Test, root.Consequent, root.Alternate) {
		names = append(names, actionsIn(part)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addComposition adds the action that a composition is deployed as.
func (b *builder) addComposition(path []string, name forerun.Name, document json.RawMessage, x *common) {
	code := placeholder
	b.addAction(path, Entity{Name: name}, &whisk.Exec{Kind: "nodejs:default", Code: &code}, x, []forerun.KeyValue{{Key: "conductor", Value: document}})
}

func (b *builder) inOrder(path []string, pkg string, steps []step) *combinator {
	return &combinator{Type: "sequence", Components: b.each(path, pkg, steps)}
}

func (b *builder) each(path []string, pkg string, steps []step) []*combinator {
	all := make([]*combinator, len(steps))
	for i := range steps {
		all[i] = b.step(below(path, fmt.Sprintf("[%d]", i)), pkg, &steps[i])
	}
	return all
}

// step compiles a step; nil is none.
func (b *builder) step(path []string, pkg string, s *step) *combinator {
	switch {
	case s == nil:
		return nil
	case s.Action != "":
		name, err := b.reference(s.Action, pkg)
		b.wrong(path, err)
		return &combinator{Type: "action", Name: name.String()}
	case s.Steps != nil:
		return b.inOrder(path, pkg, s.Steps)
	}
	b.wrong(path, s.check())
	switch {
	case s.Parallel != nil:
		return &combinator{Type: "parallel", Components: b.each(below(path, "parallel"), pkg, s.Parallel)}
	case s.Map != nil:
		return &combinator{Type: "map", Needs: "value", Components: []*combinator{b.step(below(path, "map"), pkg, s.Map)}}
	}
	return &combinator{
		Type: "if", Test: b.test(below(path, "if"), pkg, s.If),
		Consequent: b.step(below(path, "then"), pkg, s.Then), Alternate: b.step(below(path, "else"), pkg, s.Else),
	}
}

// test compiles the step that decides on a branch. People write an expression there.
func (b *builder) test(path []string, pkg string, s *step) *combinator {
	if s != nil && s.Action != "" {
		if _, err := b.reference(s.Action, pkg); err != nil {
			b.wrong(path, fmt.Errorf("if names an action, whose result's member value decides; it takes no expression: %w", err))
			return nil
		}
	}
	return b.step(path, pkg, s)
}

// check refuses an object that is not one kind of step.
func (s *step) check() error {
	kinds := 0
	for _, has := range []bool{s.Parallel != nil, s.Map != nil, s.If != nil} {
		if has {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("a step is an action, a list of steps, or an object with one of parallel, map and if")
	case s.If != nil && s.Then == nil:
		return errors.New("if needs then: the step to run when the action of if returns {\"value\": true}")
	case s.If == nil && (s.Then != nil || s.Else != nil):
		return errors.New("then and else need if: the action that decides")
	}
	return nil
}
