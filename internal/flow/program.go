// Package flow is the workflow language: one Program, the sequence table of
// SpecFaaS (section V.A), to which sequences and composer documents compile, and
// the pure interpreter that walks it. A walk does no I/O: it goes from one
// action to the next and leaves running them to its caller.
//
// Composer's combinators mean what npm openwhisk-composer's conductor makes of
// them: the rows below are the states of its machine, and its small built-in
// functions (saving the parameters of an if, counting a retry down) are rows too.
package flow

import (
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// Program is a compiled workflow. It is immutable and may be walked by many at once.
type Program struct {
	rows []row
	size int // of the rows, in bytes
	// asIs hands an action's result on as it is, a failed one's or an array too, as OpenWhisk's sequences do;
	// composer keeps an error alone, and wraps a value that is not an object.
	asIs bool
	// parameters are laid under what actions give and branches begin with: in OpenWhisk all of that comes to composer's
	// conductor as an input.
	parameters []forerun.KeyValue
}

// row is one line of the sequence table. Control falls through to the next row unless the row says otherwise.
type row struct {
	op      op
	code    *forerun.Function // of opFunction
	forks   []int             // of opParallel: where its branches begin; those of opMap and opAsync do behind it
	action  string            // of opAction: a name as the document has it
	to      int               // of opJump; of opBranch, where the condition is false; of opTry, where an error is caught; of a fork, behind it
	strict  bool              // of opMap: fail if the member "value" is not a list
	vars    *vars             // of opLet: its variables
	value   json.RawMessage   // of opLiteral
	builtin builtin           // of opBuiltin
	path    string            // the place in the document, which errors name
}

type op byte

const (
	opAction   op = iota // run an action on the value; its output becomes the value
	opDynamic            // run the action that the value names, on the parameters that it holds
	opFunction           // run code of the document on the value and the visible variables
	opParallel           // run several branches on the value; theirs become the elements of a new value
	opMap                // run one branch on each element of the value's member "value"
	opAsync              // begin one branch as an invocation of its own
	opStop               // end a branch
	opBranch             // go on if the value's member "value" is true in JavaScript's sense, else jump
	opJump               // go to another row
	opTry                // from here to its opExit, an error goes to another row
	opLet                // from here to its opExit, there are more variables
	opMask               // from here to its opExit, the variables of the let around are hidden
	opExit               // leave the innermost of these three
	opLiteral            // make this the value
	opBuiltin            // one of composer's own small functions
	opCheck              // composer's empty: wrap a value that is not an object, and act on an error in it
)

// Actions lists the names of the actions that the program can run, in the order of its rows, each once; those that a
// dynamic combinator names are not known before it runs.
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
	p := &Program{asIs: true}
	for _, name := range components {
		r := row{op: opAction, action: name}
		p.rows, p.size = append(p.rows, r), p.size+r.size()
	}
	return p
}

// argumentsOf are the parameters that are arguments, with the values of the secret ones.
func argumentsOf(parameters []forerun.KeyValue) ([]forerun.KeyValue, error) {
	var arguments []forerun.KeyValue
	for i := range parameters {
		kv := &parameters[i]
		if kv.Init {
			continue
		}
		value, err := kv.Reveal()
		if err != nil {
			return nil, err
		}
		arguments = append(arguments, forerun.KeyValue{Key: kv.Key, Value: value})
	}
	return arguments, nil
}

// Of compiles what action a is, or returns nil for a single function, which is not a workflow. The error is
// forerun.Invalid and names the place in the document.
func Of(a *forerun.Action) (forerun.Program, error) {
	if a.Exec.Kind == "sequence" {
		return Sequence(a.Exec.Components), nil
	}
	conductor := forerun.Lookup(a.Annotations, "conductor")
	switch {
	case !isTrue(conductor):
		return nil, nil
	case memberOf(conductor, "type") == nil:
		return Conductor{}, nil
	}
	p, err := compileComposition(conductor)
	switch {
	case err == nil:
		p.parameters, err = argumentsOf(a.Parameters)
		return p, err
	case forerun.KindOf(err) == forerun.Unsupported:
		return Conductor{}, nil // combinators of the user's own: the code that composer generated knows what they mean
	}
	return nil, err
}
