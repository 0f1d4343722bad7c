package project

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// schema is the part of JSON Schema (2020-12) that the project file's schema uses; a test holds that it uses no more.
type schema struct {
	Ref                  string             `json:"$ref"`
	Type                 types              `json:"type"`
	Enum                 []any              `json:"enum"`
	Properties           map[string]*schema `json:"properties"`
	PropertyNames        *schema            `json:"propertyNames"`
	AdditionalProperties *additional        `json:"additionalProperties"`
	Required             []string           `json:"required"`
	Items                *schema            `json:"items"`
	OneOf                []*schema          `json:"oneOf"`
	Minimum              *float64           `json:"minimum"`
	Maximum              *float64           `json:"maximum"`
	MinItems             int                `json:"minItems"`
	MinLength            int                `json:"minLength"`
	MaxLength            int                `json:"maxLength"`
	Pattern              string             `json:"pattern"`
	Definitions          map[string]*schema `json:"$defs"`
}

// types are one or several names of types.
type types []string

// UnmarshalJSON implements json.Unmarshaler.
func (t *types) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*t = make(types, 1)
		return json.Unmarshal(data, &(*t)[0])
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// additional is a schema for the members that are not named, or false: there may be none.
type additional struct{ schema *schema }

// UnmarshalJSON implements json.Unmarshaler.
func (a *additional) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &a.schema)
}

// validator holds a document against a schema.
type validator struct {
	root     *schema
	problems []problem
}

// validate lists what is wrong with a document.
func validate(root *schema, document *node) []problem {
	v := &validator{root: root}
	v.check(root, document, "")
	return v.problems
}

func (v *validator) wrong(n *node, path, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if path != "" {
		message = path + " " + message
	} else {
		message = "The file " + message
	}
	v.problems = append(v.problems, problem{n.line, n.column, message + "."})
}

func (v *validator) check(s *schema, n *node, path string) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		s = v.root.Definitions[name]
	}
	if len(s.Type) > 0 && !slices.ContainsFunc(s.Type, n.is) {
		v.wrong(n, path, "must be %s, not %s", either(s.Type), n.named())
		return
	}
	if s.Enum != nil && !slices.Contains(s.Enum, n.scalar) {
		v.wrong(n, path, "must be one of %s", listed(s.Enum))
	}
	switch n.shape {
	case object:
		v.object(s, n, path)
	case array:
		v.array(s, n, path)
	case text:
		v.text(s, n, path)
	case number:
		v.number(s, n, path)
	}
}

// is reports whether the node is of a JSON Schema type.
func (n *node) is(kind string) bool {
	if kind == "integer" {
		value, _ := n.scalar.(json.Number)
		return value != "" && !strings.ContainsAny(value.String(), ".eE")
	}
	return string(n.shape) == kind
}

// named is what a person calls the node's type.
func (n *node) named() string {
	if n.shape == null {
		return "empty"
	}
	return either([]string{string(n.shape)})
}

// either lists types with their articles; an array is a list for people.
func either(kinds []string) string {
	words := make([]string, len(kinds))
	for i, kind := range kinds {
		switch kind {
		case "array":
			words[i] = "a list"
		case "object", "integer":
			words[i] = "an " + kind
		case "null":
			words[i] = "empty"
		default:
			words[i] = "a " + kind
		}
	}
	return strings.Join(words, " or ")
}

func listed(values []any) string {
	words := make([]string, len(values))
	for i, value := range values {
		words[i] = fmt.Sprint(value)
	}
	return strings.Join(words, ", ")
}

func (v *validator) object(s *schema, n *node, path string) {
	for _, m := range n.members {
		below := strings.TrimPrefix(path+"."+m.name, ".")
		if s.PropertyNames != nil {
			v.check(s.PropertyNames, &node{line: m.key.line, column: m.key.column, shape: text, scalar: m.name}, below)
		}
		switch property, ok := s.Properties[m.name]; {
		case ok:
			v.check(property, m.value, below)
		case s.AdditionalProperties == nil:
		case s.AdditionalProperties.schema == nil:
			v.wrong(m.key, below, "is not known; known are %s", strings.Join(sortedKeys(s.Properties), ", "))
		default:
			v.check(s.AdditionalProperties.schema, m.value, below)
		}
	}
	for _, name := range s.Required {
		if n.member(name) == nil {
			v.wrong(n, path, "lacks %q", name)
		}
	}
	v.oneOf(s, n, path)
}

// oneOf checks that exactly one set of required members is there: it is used for nothing else.
func (v *validator) oneOf(s *schema, n *node, path string) {
	var there int
	var choices []string
	for _, choice := range s.OneOf {
		choices = append(choices, strings.Join(choice.Required, " and "))
		if !slices.ContainsFunc(choice.Required, func(name string) bool { return n.member(name) == nil }) {
			there++
		}
	}
	if len(choices) > 0 && there != 1 {
		v.wrong(n, path, "must have either %s", strings.Join(choices, " or "))
	}
}

func (v *validator) array(s *schema, n *node, path string) {
	if len(n.items) < s.MinItems {
		v.wrong(n, path, "must have at least %d element", s.MinItems)
	}
	for i, item := range n.items {
		if s.Items != nil {
			v.check(s.Items, item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

func (v *validator) text(s *schema, n *node, path string) {
	value, _ := n.scalar.(string)
	switch length := utf8.RuneCountInString(value); {
	case length < s.MinLength:
		v.wrong(n, path, "must not be empty")
	case s.MaxLength > 0 && length > s.MaxLength:
		v.wrong(n, path, "is %d characters long; at most %d are allowed", length, s.MaxLength)
	case s.Pattern != "" && !regexp.MustCompile(s.Pattern).MatchString(value):
		v.wrong(n, path, "has characters that a name cannot have: use letters, digits and '_', and inside also '@', '.', '-' and spaces")
	}
}

func (v *validator) number(s *schema, n *node, path string) {
	value, shown := n.float()
	switch {
	case s.Minimum != nil && value < *s.Minimum:
		v.wrong(n, path, "is %s; at least %v is allowed", shown, *s.Minimum)
	case s.Maximum != nil && value > *s.Maximum:
		v.wrong(n, path, "is %s; at most %v is allowed", shown, *s.Maximum)
	}
}

// float is the node's number, and how it is shown.
func (n *node) float() (float64, string) {
	value, _ := n.scalar.(json.Number)
	f, _ := value.Float64() // an integer may be beyond all doubles: it is infinite then
	return f, value.String()
}
