package flow

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// maxNesting bounds the depth of a composition, so that a hostile document cannot exhaust the stack.
const maxNesting = 100

// node is one combinator of a composer document: the value of the "conductor" annotation that npm
// openwhisk-composer writes (the composition before it is lowered).
type node struct {
	Type         string          `json:"type"`
	Name         string          `json:"name"`
	Components   []*node         `json:"components"`
	Needs        string          `json:"needs"` // of a map in a forerun.yaml: "value", which the value must have then
	Test         *node           `json:"test"`
	Consequent   *node           `json:"consequent"`
	Alternate    *node           `json:"alternate"`
	Body         *node           `json:"body"`
	Handler      *node           `json:"handler"`
	Finalizer    *node           `json:"finalizer"`
	Declarations members         `json:"declarations"`
	Count        float64         `json:"count"`
	Value        json.RawMessage `json:"value"`
	Function     *struct {
		Exec forerun.Function `json:"exec"`
	} `json:"function"`

	path  string // its place in the document, as composer labels it
	depth int
}

// compileComposition compiles a composer document.
func compileComposition(document json.RawMessage) (*Program, error) {
	var root node
	if err := json.Unmarshal(document, &root); err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "composition", "The annotation conductor is not a composition: %w", err)
	}
	c := &compiler{program: &Program{}}
	if err := c.compile(&root); err != nil {
		return nil, err
	}
	return c.program, nil
}

// compiler appends the rows of a composition to a program. Its methods are combinators of parts; the derived ones are
// spelled as composer lowers them.
type compiler struct {
	program   *Program
	functions int // so far
}

// part appends some rows.
type part func() error

func (c *compiler) compile(n *node) error {
	switch {
	case n.depth > maxNesting:
		return refuse(n, "The composition is nested more than %d deep: move a part of it into another composition.", maxNesting)
	case c.program.size > maxProgram:
		return refuse(n, "The composition takes more than %d MiB when it is compiled: move a part of it into another composition.", maxProgram>>20)
	}
	switch n.Type {
	case "action":
		if n.Name == "" {
			return refuse(n, "An action combinator needs a name.")
		}
		c.emit(row{op: opAction, action: n.Name})
		return nil
	case "dynamic":
		c.emit(row{op: opDynamic, path: n.path})
		return nil
	case "function":
		return c.function(n)
	case "parallel", "par":
		return c.parallel(n)
	case "map":
		fork := c.here()
		err := c.branch(n, opMap)
		c.program.rows[fork].strict = n.Needs != ""
		return err
	case "async":
		return c.branch(n, opAsync)
	case "literal", "value":
		return c.literal(n)
	case "sequence", "seq", "empty":
		return c.components(n)()
	case "let":
		return c.let(n.Declarations, c.components(n))()
	case "mask":
		return c.mask(c.components(n))()
	case "try":
		return c.try(c.child(n, n.Body, "body"), c.child(n, n.Handler, "handler"))()
	case "finally":
		return c.finally(c.child(n, n.Body, "body"), c.child(n, n.Finalizer, "finalizer"))()
	}
	return c.compileControl(n)
}

// compileControl compiles the combinators that branch, loop or keep parameters.
func (c *compiler) compileControl(n *node) error {
	switch n.Type {
	case "if", "if_nosave", "while", "while_nosave", "dowhile", "dowhile_nosave":
		if n.Test == nil {
			return refuse(n, "The combinator %s needs a test.", n.Type)
		}
	}
	test, body := c.child(n, n.Test, "test"), c.child(n, n.Body, "body")
	consequent, alternate := c.child(n, n.Consequent, "consequent"), c.child(n, n.Alternate, "alternate")
	switch n.Type {
	case "if_nosave":
		return c.ifNosave(test, consequent, alternate)()
	case "if":
		return c.ifSave(test, consequent, alternate)()
	case "while_nosave":
		return c.whileNosave(test, body)()
	case "while":
		return c.while(test, body)()
	case "dowhile_nosave":
		return c.dowhileNosave(body, test)()
	case "dowhile":
		return c.dowhile(body, test)()
	case "repeat":
		return c.let(counter(n), c.while(c.builtin(countDown), c.mask(c.components(n))))()
	case "retry":
		return c.retry(n)()
	case "retain":
		return c.retain(c.components(n))()
	case "retain_catch":
		return c.retainCatch(c.components(n))()
	case "merge":
		return c.seq(c.retain(c.components(n)), c.builtin(assignResult))()
	case "":
		return refuse(n, "A combinator needs a type.")
	}
	return forerun.Errorf(forerun.Unsupported, "composition"+n.path, "The combinator %q is not supported yet.", n.Type)
}

func refuse(n *node, format string, args ...any) error {
	return forerun.Errorf(forerun.Invalid, "composition"+n.path, format, args...)
}

// components are all of a node's, one after the other; where there is none, composer checks the value for an error.
func (c *compiler) components(n *node) part {
	if len(n.Components) == 0 {
		return c.row(row{op: opCheck})
	}
	parts := make([]part, len(n.Components))
	for i, component := range n.Components {
		parts[i] = c.child(n, component, fmt.Sprintf("[%d]", i))
	}
	return c.seq(parts...)
}

// child is a combinator within n; a missing one is empty.
func (c *compiler) child(n, child *node, place string) part {
	if child == nil {
		return c.row(row{op: opCheck})
	}
	if place[0] != '[' {
		place = "." + place
	}
	child.path, child.depth = n.path+place, n.depth+1
	return func() error { return c.compile(child) }
}

func (c *compiler) literal(n *node) error {
	if n.Value == nil {
		return refuse(n, "The combinator %s needs a value.", n.Type)
	}
	c.emit(row{op: opLiteral, value: n.Value})
	return nil
}

func (c *compiler) function(n *node) error {
	if n.Function == nil || n.Function.Exec.Code == "" {
		return refuse(n, "A function combinator needs code.")
	}
	if !strings.HasPrefix(n.Function.Exec.Kind, "nodejs") { // whatever it says: composer evaluates it as JavaScript
		n.Function.Exec.Kind = "nodejs:default"
	}
	c.functions++
	n.Function.Exec.Number = c.functions
	c.emit(row{op: opFunction, code: &n.Function.Exec, path: n.path})
	return nil
}

// parallel makes a row with the branches behind it, each ended by a stop.
func (c *compiler) parallel(n *node) error {
	fork := c.emit(row{op: opParallel, path: n.path})
	for i, component := range n.Components {
		c.program.rows[fork].forks = append(c.program.rows[fork].forks, c.here())
		if err := c.seq(c.child(n, component, fmt.Sprintf("[%d]", i)), c.row(row{op: opStop}))(); err != nil {
			return err
		}
	}
	c.program.rows[fork].to = c.here()
	return nil
}

// branch makes a row with the one branch behind it.
func (c *compiler) branch(n *node, o op) error {
	fork := c.emit(row{op: o, path: n.path})
	err := c.seq(c.components(n), c.row(row{op: opStop}))()
	c.program.rows[fork].to = c.here()
	return err
}

func counter(n *node) members {
	count, _ := json.Marshal(n.Count) // it was a JSON number
	return members{"count": count}
}

// emit appends a row and returns its place.
func (c *compiler) emit(r row) int {
	c.program.rows = append(c.program.rows, r)
	c.program.size += r.size()
	return c.here() - 1
}

// here is the place of the row to come.
func (c *compiler) here() int { return len(c.program.rows) }
