// Package flow is the workflow language: one Program, the sequence table of
// SpecFaaS (section V.A), to which sequences and composer documents compile, and
// the pure interpreter that walks it. A walk does no I/O: it goes from one
// action to the next and leaves running them to its caller.
package flow

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Program is a compiled workflow. It is immutable and may be walked by many at once.
type Program struct {
	rows []row
	// passError hands a failed action's result on as it is, as OpenWhisk's sequences do;
	// composer keeps its error member alone.
	passError bool
}

// row is one line of the sequence table. Control falls through to the next row unless the row says otherwise.
type row struct {
	op     op
	action string // of opAction: a name as the document has it
	to     int    // of opJump; of opBranch, where the condition is false
}

type op byte

const (
	opAction  op = iota // run an action on the value; its output becomes the value
	opBranch            // go on if the value's member "value" is true in JavaScript's sense, else jump
	opJump              // go to another row
	opSave              // push the value
	opRestore           // pop the value
)

// Actions lists the names of the actions that the program can run, in the order of its rows, each once.
func (p *Program) Actions() []string {
	var names []string
	seen := make(map[string]bool)
	for _, r := range p.rows {
		if r.op == opAction && !seen[r.action] {
			seen[r.action] = true
			names = append(names, r.action)
		}
	}
	return names
}

// Sequence compiles OpenWhisk's `kind: sequence`: the actions one after the other.
func Sequence(components []string) *Program {
	p := &Program{passError: true}
	for _, name := range components {
		p.rows = append(p.rows, row{op: opAction, action: name})
	}
	return p
}

// Of compiles what action a is, or returns nil if it is no workflow but a single function. The error is
// forerun.Invalid and names the place in the document.
func Of(a *forerun.Action) (*Program, error) {
	if a.Exec.Kind == "sequence" {
		return Sequence(a.Exec.Components), nil
	}
	document := forerun.Lookup(a.Annotations, "conductor")
	if !isObject(document) {
		return nil, nil
	}
	return compileComposition(document)
}

func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }
