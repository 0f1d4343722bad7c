package simulation

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/flow"
	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/speculate/oracle"
)

// Composition is a workflow as users write them, compiled by package flow: a composer document, or a sequence.
type Composition struct {
	forerun.Program
	Root *Node
}

// Node is a combinator of a composer document.
type Node struct {
	Type         string         `json:"type"`
	Name         string         `json:"name,omitempty"`
	Components   []*Node        `json:"components,omitempty"`
	Test         *Node          `json:"test,omitempty"`
	Consequent   *Node          `json:"consequent,omitempty"`
	Alternate    *Node          `json:"alternate,omitempty"`
	Body         *Node          `json:"body,omitempty"`
	Handler      *Node          `json:"handler,omitempty"`
	Finalizer    *Node          `json:"finalizer,omitempty"`
	Declarations map[string]int `json:"declarations,omitempty"`
	Count        int            `json:"count,omitempty"`
	Value        any            `json:"value,omitempty"`
	Function     *Inline        `json:"function,omitempty"`
}

// Inline is a function that a document brings along.
type Inline struct {
	Exec forerun.Function `json:"exec"`
}

// kindSequence is the type of a root that stands for a sequence of actions, and not for a document.
const kindSequence = "actions"

// compose compiles a document.
func compose(root *Node) *Composition {
	c := &Composition{Root: root}
	if root.Type == kindSequence {
		var names []string
		for _, n := range root.Components {
			names = append(names, n.Name)
		}
		c.Program = flow.Sequence(names)
		return c
	}
	p, err := flow.Of(&forerun.Action{
		Exec:        forerun.Exec{Kind: "nodejs:default"},
		Annotations: []forerun.KeyValue{{Key: "conductor", Value: root.document()}},
	})
	if err != nil || p == nil {
		panic(fmt.Sprintf("a document that is none: %s: %v", root.document(), err))
	}
	c.Program = p
	return c
}

func (n *Node) document() json.RawMessage {
	text, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return text
}

// document writes a composition, or a sequence.
func (g *generator) document(i, n int, cost *int) *Composition {
	w := &writer{generator: g, i: i, n: n, cost: cost}
	if g.IntN(4) > 0 {
		return compose(w.node(0))
	}
	root := &Node{Type: kindSequence}
	for range 1 + g.IntN(4) {
		root.Components = append(root.Components, w.action())
	}
	return compose(root)
}

// writer writes the document of the i-th action of n.
type writer struct {
	*generator
	i, n int
	cost *int
}

func (w *writer) action() *Node { return &Node{Type: "action", Name: w.later(w.i, w.n, w.cost)} }

// nodes writes a few combinators.
func (w *writer) nodes(depth int) []*Node {
	var list []*Node
	for range 1 + w.IntN(3-min(depth, 2)) {
		list = append(list, w.node(depth+1))
	}
	return list
}

func (w *writer) node(depth int) *Node {
	k := w.IntN(20)
	if depth >= 3 {
		k = w.IntN(8)
	}
	switch {
	case k < 4:
		return w.action()
	case k < 6:
		return w.function()
	case k < 8:
		return w.leaf()
	case k < 12:
		return w.branch(depth)
	case k < 14:
		return w.fork(depth)
	case k < 16:
		return &Node{Type: w.one("sequence", "let", "mask", "retain", "retain_catch", "merge"), Components: w.nodes(depth), Declarations: map[string]int{"x": w.IntN(3)}}
	}
	return w.loop(depth)
}

func (w *writer) one(of ...string) string { return of[w.IntN(len(of))] }

// function brings code along: that of an action behind, with the variables of the document.
func (w *writer) function() *Node {
	of := w.actions[w.later(w.i, w.n, w.cost)]
	if of == nil {
		return w.action()
	}
	name := "inline " + of.Name
	if w.actions[name] == nil {
		code := of.Versions[0]
		code.Program, code.Inline = nil, true
		w.add(&Action{Name: name, Action: oracle.Action{Versions: []oracle.Code{code}, Pure: of.Pure, Cached: of.Cached, Alone: of.Alone}})
	}
	return &Node{Type: "function", Function: &Inline{forerun.Function{Kind: "nodejs:default", Code: name}}}
}

// leaf writes what runs nothing, or what it names only now.
func (w *writer) leaf() *Node {
	switch w.IntN(4) {
	case 0:
		return &Node{Type: "empty"}
	case 1:
		return &Node{Type: "literal", Value: map[string]int{"value": w.IntN(4)}}
	case 2:
		return &Node{Type: "async", Components: []*Node{w.action()}}
	}
	call := map[string]any{"type": "action", "name": w.later(w.i, w.n, w.cost), "params": map[string]int{"value": w.IntN(2)}}
	return &Node{Type: "sequence", Components: []*Node{{Type: "literal", Value: call}, {Type: "dynamic"}}}
}

func (w *writer) branch(depth int) *Node {
	switch w.IntN(4) {
	case 0:
		return &Node{Type: "try", Body: w.node(depth + 1), Handler: w.node(depth + 1)}
	case 1:
		return &Node{Type: "finally", Body: w.node(depth + 1), Finalizer: w.node(depth + 1)}
	}
	n := &Node{Type: w.one("if", "if", "if", "if_nosave"), Test: w.action(), Consequent: w.node(depth + 1)}
	if w.IntN(2) == 0 {
		n.Alternate = w.node(depth + 1)
	}
	return n
}

func (w *writer) fork(depth int) *Node {
	before := *w.cost
	defer func() { *w.cost += *w.cost - before }() // it is harder to explain
	if w.IntN(3) > 0 {
		return &Node{Type: "parallel", Components: []*Node{w.node(depth + 1), w.node(depth + 1)}}
	}
	each := &Node{Type: "map", Components: w.nodes(depth)}
	list := make([]int, w.IntN(3))
	return &Node{Type: "sequence", Components: []*Node{{Type: "literal", Value: map[string]any{"value": list}}, each}}
}

// loop writes one that ends: it counts, or runs "less" for as long as there is "more".
func (w *writer) loop(depth int) *Node {
	before := *w.cost
	defer func() { *w.cost += *w.cost - before }()
	switch w.IntN(4) {
	case 0:
		return &Node{Type: "repeat", Count: 1 + w.IntN(2), Components: w.nodes(depth)}
	case 1:
		return &Node{Type: "retry", Count: 1 + w.IntN(2), Components: w.nodes(depth)}
	}
	*w.cost += w.counted
	kind := w.one("while", "dowhile", "while_nosave", "dowhile_nosave")
	less, more := &Node{Type: "action", Name: "less"}, &Node{Type: "action", Name: "more"}
	body, handler := less, less
	if strings.HasSuffix(kind, "_nosave") {
		// The test's value is the body's input: "less" makes 0 of {"value":true}, or fails each time.
		handler = &Node{Type: "literal", Value: map[string]int{"value": 0}}
	}
	switch w.IntN(4) {
	case 0:
		body = &Node{Type: "if", Test: w.action(), Consequent: less, Alternate: less}
	case 1:
		body = &Node{Type: "let", Declarations: map[string]int{"x": 1}, Components: []*Node{{Type: "try", Body: less, Handler: handler}}}
	}
	return &Node{Type: kind, Test: more, Body: body}
}

// counts tells whether it is a loop that runs "less" for as long as there is "more".
func (n *Node) counts() bool {
	switch n.Type {
	case "while", "dowhile", "while_nosave", "dowhile_nosave":
		return true
	}
	return false
}

// parts are a node's own places for others.
func (n *Node) parts() []**Node {
	parts := []**Node{&n.Test, &n.Consequent, &n.Alternate, &n.Body, &n.Handler, &n.Finalizer}
	for i := range n.Components {
		parts = append(parts, &n.Components[i])
	}
	return parts
}

// forks tells whether branches of it run side by side.
func (n *Node) forks() bool {
	if n.Type == "parallel" || n.Type == "map" || n.Type == "async" {
		return true
	}
	for _, part := range n.parts() {
		if *part != nil && (*part).forks() {
			return true
		}
	}
	return false
}

func (n *Node) clone() *Node {
	c := *n
	c.Components = append([]*Node(nil), n.Components...)
	for _, part := range c.parts() {
		if *part != nil {
			*part = (*part).clone()
		}
	}
	return &c
}

// without makes the i-th node empty, or counts i down. The tests and bodies of loops stay, so that these end.
func (n *Node) without(i *int) bool {
	for at, part := range n.parts() {
		p := *part
		if p == nil || p.Type == "empty" || n.counts() {
			continue
		}
		if *i == 0 {
			if n.Type == kindSequence {
				at -= len(n.parts()) - len(n.Components)
				n.Components = append(n.Components[:at], n.Components[at+1:]...)
			} else {
				*part = &Node{Type: "empty"}
			}
			return true
		}
		*i--
		if p.without(i) {
			return true
		}
	}
	return false
}
