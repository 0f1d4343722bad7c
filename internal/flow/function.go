package flow

import (
	_ "embed"
	"encoding/json"

	"forerun.dev/forerun/internal/forerun"
)

// A function of the document is given {"code": TEXT, "params": VALUE, "variables": {...}}, and gives back the last two:
// its result (or, where it returned nothing, the params) and what the variables are then. functionReturn is that; Within of a Stop names the first.
type functionReturn struct {
	Params    json.RawMessage `json:"params"`
	Outcome   string          `json:"outcome"` // "threw"; "function": it evaluated to one; "broke": its result has no JSON, as the message says
	Message   string          `json:"message"`
	Variables members         `json:"variables"`
}

//go:embed function.js
var functionWrapper string

// FunctionExec is the action that executes functions of compositions on what a walk's Stop gives them. It is the same
// for all of a kind, so that those of one composition share sandboxes, as they share composer's conductor.
func FunctionExec(kind string) forerun.Exec { return forerun.Exec{Kind: kind, Code: functionWrapper} }

// functionInput is what the function of row r is given here.
func (w *walk) functionInput(r *row) json.RawMessage {
	return members{"code": quoted(r.code.Code), "params": w.value, "variables": w.stack.variables().object()}.object()
}

// returned takes over what the function of row r gave back.
func (w *walk) returned(r *row, result forerun.Result) {
	back := functionReturn{Outcome: "threw"} // if its process did not live to tell
	if result.Status == forerun.Success {
		back.Outcome = ""
		_ = json.Unmarshal(result.Value, &back) // the wrapper writes nothing else
	}
	w.stack = w.stack.set(back.Variables)
	switch back.Outcome {
	case "threw":
		w.value = refusal("Function combinator threw an exception at AST node root" + r.path + " (see log for details)")
	case "function":
		w.value = refusal("Function combinator evaluated to a function type at AST node root" + r.path)
	case "broke": // for composer that is a defect of its own, which nothing catches
		w.value, w.stack = refusal("Internal error: "+back.Message), w.stack.outside()
	default:
		w.value = back.Params
	}
}

func refusal(message string) json.RawMessage {
	return forerun.Failure(forerun.ApplicationError, message).Value
}
