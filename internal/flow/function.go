package flow

import (
	_ "embed"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// A function of the document is given {"code": TEXT, "params": VALUE, "variables": {...}}, and gives back the last two:
// its result (or, where it returned nothing, the params) and what the variables are then. functionReturn is that.
type functionReturn struct {
	Params    json.RawMessage `json:"params"` // absent: it evaluated to a function
	Variables members         `json:"variables"`
}

//go:embed function.js
var functionWrapper string

// FunctionExec is the action that executes functions of compositions on what a walk's Stop gives them. It is the same
// for all of a kind, so that those of one composition share sandboxes, as they share composer's conductor.
func FunctionExec(kind string) forerun.Exec { return forerun.Exec{Kind: kind, Code: functionWrapper} }

// functionInput is what the function of row r is given here.
func (w *walk) functionInput(r *row) json.RawMessage {
	code, _ := json.Marshal(r.code.Code) // strings always marshal
	return members{"code": code, "params": w.value, "variables": w.stack.variables().object()}.object()
}

// returned takes over what the function of row r gave back.
func (w *walk) returned(r *row, result forerun.Result) {
	var back functionReturn
	ok := result.Status == forerun.Success && json.Unmarshal(result.Value, &back) == nil
	for name := range w.stack.variables() {
		ok = ok && back.Variables[name] != nil // composer fails at a variable that became undefined
	}
	switch {
	case !ok:
		w.value = refusal("Function combinator threw an exception at AST node root" + r.path + " (see log for details)")
	case back.Params == nil:
		w.value = refusal("Function combinator evaluated to a function type at AST node root" + r.path)
	default:
		w.value = back.Params
	}
	for name, v := range back.Variables {
		w.stack = w.stack.set(name, v)
	}
}

func refusal(message string) json.RawMessage {
	return forerun.Failure(forerun.ApplicationError, message).Value
}
