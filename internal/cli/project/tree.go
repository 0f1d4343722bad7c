package project

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of a project file, against one that was made to hurt.
const (
	maxFile  = 1 << 18 // bytes
	maxDepth = 64
	maxNodes = 1 << 18 // with those that aliases repeat
)

// node is a value of a YAML document with its place: an object, a list or a scalar, as in JSON.
type node struct {
	line, column int
	members      []member // of an object
	items        []*node  // of a list
	scalar       any      // string, bool, json.Number or nil
	shape        shape
}

type member struct {
	name  string
	key   *node
	value *node
}

// shape is the JSON type of a node.
type shape string

const (
	object  shape = "object"
	array   shape = "array"
	text    shape = "string"
	boolean shape = "boolean"
	number  shape = "number"
	null    shape = "null"
)

// problem is something wrong at a place of the file.
type problem struct {
	line, column int
	message      string
}

// member is the value under a name, or nil.
func (n *node) member(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// child is the member of a name, or the item of an index in brackets; nil if it is not there.
func (n *node) child(name string) *node {
	index, ok := strings.CutPrefix(name, "[")
	if !ok {
		return n.member(name)
	}
	i, err := strconv.Atoi(strings.TrimSuffix(index, "]"))
	if err != nil || i >= len(n.items) {
		return nil
	}
	return n.items[i]
}

// find is the node at a path; nil if it is not there.
func (n *node) find(path []string) *node {
	for _, name := range path {
		if n = n.child(name); n == nil {
			return nil
		}
	}
	return n
}

// parse reads a YAML document. An empty one is an empty object.
func parse(data []byte) (root *node, wrong *problem) {
	if len(data) > maxFile {
		return nil, &problem{1, 1, fmt.Sprintf("The file is larger than %d KiB: split it into several projects.", maxFile>>10)}
	}
	if wrong := checkNesting(data); wrong != nil {
		return nil, wrong
	}
	file, wrong := parseYAML(data)
	if wrong != nil {
		return nil, wrong
	}
	body, wrong := onlyDocument(file)
	if wrong != nil || body == nil {
		return &node{line: 1, column: 1, shape: object}, wrong
	}
	c := &converter{anchors: make(map[string]*node)}
	root = c.convert(body, 0)
	if c.wrong == nil && root.shape == null {
		root.shape = object
	}
	return root, c.wrong
}

// onlyDocument is the content of a file's document; nil if there is none.
func onlyDocument(file *ast.File) (body ast.Node, wrong *problem) {
	for _, document := range file.Docs {
		if _, directive := document.Body.(*ast.DirectiveNode); directive || document.Body == nil {
			continue
		}
		if body != nil {
			at := position(document.Body)
			return nil, &problem{at.line, at.column, "The file holds a second document: write one file for each project."}
		}
		body = document.Body
	}
	return body, nil
}

// checkNesting refuses flow collections that are nested so deep that reading them would take very long.
func checkNesting(data []byte) *problem {
	depth := 0
	for i, b := range data {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '\n':
			if i+1 < len(data) && data[i+1] != ' ' && data[i+1] != '\n' {
				depth = 0
			}
		}
		if depth > 4*maxDepth {
			return &problem{1 + bytes.Count(data[:i], []byte("\n")), 1, "The file is nested too deep."}
		}
	}
	return nil
}

// parseYAML calls the library. It has crashed on broken documents before, and a crash is no message.
func parseYAML(data []byte) (file *ast.File, wrong *problem) {
	defer func() {
		if r := recover(); r != nil {
			wrong = &problem{1, 1, fmt.Sprintf("The file cannot be read as YAML (%v).", r)}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err == nil {
		return file, nil
	}
	wrong = &problem{1, 1, firstLine(err.Error())}
	if e, ok := err.(interface {
		GetToken() *token.Token
		GetMessage() string
	}); ok && e.GetToken() != nil {
		at := e.GetToken().Position
		wrong = &problem{at.Line, at.Column, e.GetMessage()}
	}
	return nil, wrong
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// converter makes nodes of the library's, with aliases resolved.
type converter struct {
	anchors map[string]*node
	count   int
	wrong   *problem // the first
}

func (c *converter) fail(n ast.Node, format string, args ...any) *node {
	at := position(n)
	if c.wrong == nil {
		c.wrong = &problem{at.line, at.column, fmt.Sprintf(format, args...)}
	}
	return at
}

// position makes a node of the place of one; its value is null.
func position(n ast.Node) *node {
	at := &node{line: 1, column: 1, shape: null}
	if n == nil {
		return at
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		at.line, at.column = t.Position.Line, t.Position.Column
	}
	return at
}

func (c *converter) convert(n ast.Node, depth int) *node {
	c.count++
	switch {
	case c.wrong != nil:
		return position(n)
	case depth > maxDepth || c.count > maxNodes:
		return c.fail(n, "The file is nested too deep or too large.")
	}
	at := position(n)
	switch n := n.(type) {
	case *ast.MappingNode:
		return c.object(at, n.Values, depth)
	case *ast.MappingValueNode:
		return c.object(at, []*ast.MappingValueNode{n}, depth)
	case *ast.SequenceNode:
		at.shape = array
		for _, item := range n.Values {
			at.items = append(at.items, c.convert(item, depth+1))
		}
		return at
	case *ast.AnchorNode:
		value := c.convert(n.Value, depth+1)
		c.anchors[n.Name.GetToken().Value] = value
		return value
	case *ast.AliasNode:
		return c.alias(n)
	case *ast.TagNode:
		return c.tagged(n, depth)
	}
	return c.scalar(at, n)
}

func (c *converter) object(at *node, values []*ast.MappingValueNode, depth int) *node {
	at.shape = object
	var merges []*ast.MappingValueNode
	seen := make(map[string]bool, len(values))
	for i, v := range values {
		if i == 0 {
			at.line, at.column = position(v.Key).line, position(v.Key).column
		}
		if v.Key.IsMergeKey() {
			merges = append(merges, v)
			continue
		}
		key := c.convert(v.Key, depth+1)
		name, ok := key.scalar.(string)
		if !ok {
			name = strings.TrimSpace(v.Key.String())
		}
		if seen[name] {
			return c.fail(v.Key, "%q is here twice: remove one of the two.", name)
		}
		seen[name] = true
		at.members = append(at.members, member{name, key, c.convert(v.Value, depth+1)})
	}
	for _, v := range merges {
		c.merge(at, v, depth)
	}
	return at
}

// merge puts in the members of the object that "<<" names, where they are not there by themselves.
func (c *converter) merge(at *node, v *ast.MappingValueNode, depth int) {
	from := c.convert(v.Value, depth+1)
	if c.wrong == nil && from.shape != object {
		c.fail(v.Key, "The value of << must be an object.")
	}
	for _, m := range from.members {
		if at.member(m.name) == nil {
			at.members = append(at.members, m)
		}
	}
}

func (c *converter) alias(n *ast.AliasNode) *node {
	value, ok := c.anchors[n.Value.GetToken().Value]
	if !ok {
		return c.fail(n, "No anchor above has this name: write &NAME before the value that is meant.")
	}
	c.count += size(value)
	if c.count > maxNodes {
		return c.fail(n, "The file is nested too deep or too large.")
	}
	return value
}

// size counts a node and all below it.
func size(n *node) int {
	count := 1
	for _, m := range n.members {
		count += size(m.value)
	}
	for _, item := range n.items {
		count += size(item)
	}
	return count
}

// tagged reads what has a type written before it: those of JSON.
func (c *converter) tagged(n *ast.TagNode, depth int) *node {
	switch tag := n.Start.Value; tag {
	case "!!str":
		if _, ok := n.Value.(ast.ScalarNode); !ok {
			return c.fail(n, "The value after !!str is not a string: put it in quotes.")
		}
		if literal, ok := n.Value.(*ast.LiteralNode); ok {
			return c.convert(literal, depth+1)
		}
		at := position(n.Value)
		at.shape, at.scalar = text, n.Value.GetToken().Value
		if n.Value.GetToken().Type == token.ImplicitNullType {
			at.scalar = ""
		}
		return at
	case "!!int", "!!float", "!!bool", "!!null":
		return c.core(n, tag)
	case "!!map", "!!seq":
		return c.convert(n.Value, depth+1)
	default:
		return c.fail(n, "The tag %s is not known here: remove it.", tag)
	}
}

// core reads a scalar whose tag says its type, quoted or not.
func (c *converter) core(n *ast.TagNode, tag string) *node {
	at := position(n.Value)
	is, value, err := resolve(n.Value.GetToken().Value)
	switch {
	case err != nil:
		return c.fail(n.Value, "%s.", err)
	case is != map[string]shape{"!!int": number, "!!float": number, "!!bool": boolean, "!!null": null}[tag]:
		return c.fail(n.Value, "This is not of the type %s.", tag)
	}
	at.shape, at.scalar = is, value
	return at
}

func (c *converter) scalar(at *node, n ast.Node) *node {
	switch n := n.(type) {
	case nil:
	case *ast.LiteralNode:
		at.shape, at.scalar = text, n.Value.Value
	case *ast.StringNode:
		if t := n.GetToken().Type; t == token.SingleQuoteType || t == token.DoubleQuoteType {
			at.shape, at.scalar = text, n.Value
			break
		}
		return c.plain(at, n, n.Value)
	case ast.ScalarNode:
		return c.plain(at, n, n.GetToken().Value)
	default:
		return c.fail(n, "JSON has no value of this form: write a string, a number, true, false, null, a list or an object.")
	}
	return at
}

// plain reads a scalar without quotes. The library's own reading is ignored, because it follows YAML 1.1 in part.
func (c *converter) plain(at *node, n ast.Node, value string) *node {
	var err error
	if at.shape, at.scalar, err = resolve(value); err != nil {
		return c.fail(n, "%s.", err)
	}
	return at
}

// MarshalJSON writes the node as JSON, members in their order.
func (n *node) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	switch n.shape {
	case object:
		b.WriteByte('{')
		for i, m := range n.members {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := appendJSON(&b, m.name); err != nil {
				return nil, err
			}
			b.WriteByte(':')
			if err := appendJSON(&b, m.value); err != nil {
				return nil, err
			}
		}
		b.WriteByte('}')
	case array:
		return json.Marshal(append([]*node{}, n.items...))
	default:
		return json.Marshal(n.scalar)
	}
	return b.Bytes(), nil
}

func appendJSON(b *bytes.Buffer, value any) error {
	encoded, err := json.Marshal(value)
	b.Write(encoded)
	return err
}
