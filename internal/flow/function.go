package flow

import (
	_ "embed"
	"encoding/json"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// A function of the document is given {"params": VALUE, "variables": {...}}, and gives back the same: its result (or,
// where it returned nothing, the params) and what the variables are then. functionReturn is the latter.
type functionReturn struct {
	Params    json.RawMessage `json:"params"` // absent: it evaluated to a function
	Variables members         `json:"variables"`
}

//go:embed function.js
var functionWrapper string

// FunctionExec is the action that executes a function of a composition on what a walk's Stop gives it.
func FunctionExec(f *forerun.Function) forerun.Exec {
	source, _ := json.Marshal(f.Code) // strings always marshal
	return forerun.Exec{Kind: f.Kind, Code: strings.Replace(functionWrapper, "${SOURCE}", "${"+string(source)+"}", 1)}
}

// functionInput is what the function is given here.
func (w *walk) functionInput() json.RawMessage {
	return members{"params": w.value, "variables": w.stack.variables().object()}.object()
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
