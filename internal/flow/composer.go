package flow

import (
	"encoding/json"
	"fmt"

	"forerun.dev/forerun/internal/forerun"
)

// maxNesting bounds the depth of a composition, so that a hostile document cannot exhaust the stack.
const maxNesting = 100

// node is one combinator of a composer document: the value of the "conductor" annotation that npm
// openwhisk-composer writes (the composition before it is lowered).
type node struct {
	Type       string  `json:"type"`
	Name       string  `json:"name"`
	Components []*node `json:"components"`
	Test       *node   `json:"test"`
	Consequent *node   `json:"consequent"`
	Alternate  *node   `json:"alternate"`
}

// compileComposition compiles a composer document.
func compileComposition(document json.RawMessage) (*Program, error) {
	var root node
	if err := json.Unmarshal(document, &root); err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "composition", "The annotation conductor holds no composition: %w", err)
	}
	c := &compiler{program: &Program{}}
	if err := c.compile(&root, "composition", 0); err != nil {
		return nil, err
	}
	return c.program, nil
}

// compiler appends the rows of a composition to a program.
type compiler struct{ program *Program }

func (c *compiler) compile(n *node, path string, depth int) error {
	switch {
	case n == nil:
		return nil // a missing branch is empty
	case depth > maxNesting:
		return forerun.Errorf(forerun.Invalid, path, "The composition is nested more than %d deep.", maxNesting)
	}
	switch n.Type {
	case "action":
		if n.Name == "" {
			return forerun.Errorf(forerun.Invalid, path, "An action combinator needs a name.")
		}
		c.emit(row{op: opAction, action: n.Name})
	case "sequence", "seq":
		return c.compileAll(n.Components, path+".components", depth)
	case "empty":
	case "if":
		return c.compileIf(n, path, depth)
	case "":
		return forerun.Errorf(forerun.Invalid, path, "A combinator needs a type.")
	default:
		return forerun.Errorf(forerun.Unsupported, path, "The combinator %q is not supported; sequence, if, empty and action are.", n.Type)
	}
	return nil
}

func (c *compiler) compileAll(nodes []*node, path string, depth int) error {
	for i, n := range nodes {
		if err := c.compile(n, fmt.Sprintf("%s[%d]", path, i), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// compileIf makes composer's `if`: the test and the branch taken both see the value that came in.
//
//	save; test; branch to E; restore; consequent; jump to X; E: restore; alternate; X:
func (c *compiler) compileIf(n *node, path string, depth int) error {
	if n.Test == nil {
		return forerun.Errorf(forerun.Invalid, path, "An if combinator needs a test.")
	}
	c.emit(row{op: opSave})
	if err := c.compile(n.Test, path+".test", depth+1); err != nil {
		return err
	}
	branch := c.emit(row{op: opBranch})
	c.emit(row{op: opRestore})
	if err := c.compile(n.Consequent, path+".consequent", depth+1); err != nil {
		return err
	}
	jump := c.emit(row{op: opJump})
	c.program.rows[branch].to = c.emit(row{op: opRestore})
	if err := c.compile(n.Alternate, path+".alternate", depth+1); err != nil {
		return err
	}
	c.program.rows[jump].to = len(c.program.rows)
	return nil
}

// emit appends a row and returns its place.
func (c *compiler) emit(r row) int {
	c.program.rows = append(c.program.rows, r)
	return len(c.program.rows) - 1
}
