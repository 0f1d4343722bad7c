package flow

import (
	"encoding/json"
	"fmt"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// Conductor is OpenWhisk's conductor protocol as a program (docs/conductors.md): a conductor action is asked again and
// again what comes next. It answers {action, params, state}: that action is run on params, and its result, with the
// members of state laid over it, is what the conductor is asked with then. Without an action its params, or else all
// that it answered, are the result.
type Conductor struct{}

// conducting is where a conductor's program waits: for the conductor itself, or for a component.
type conducting struct {
	component bool
	state     json.RawMessage // that the conductor wants back, an object, or nil
}

// Start asks the conductor with the input.
func (Conductor) Start(input json.RawMessage) forerun.Stop { return ask(input, nil) }

// Resume goes on with what the conductor answered, or asks it with what a component gave.
func (Conductor) Resume(at forerun.Cursor, r forerun.Result) forerun.Stop {
	c := at.(conducting)
	if !isObject(r.Value) { // an array; OpenWhisk fails at it, too
		return forerun.Stop{End: true, Result: forerun.Failure(forerun.InternalError, "Activation failure during composition.")}
	}
	if c.component {
		return ask(r.Value, c.state)
	}
	answer := membersOf(r.Value)
	params, state, next := boxed(answer["params"], "value"), boxed(answer["state"], "state"), answer["action"]
	if next == nil {
		if params == nil {
			params = r.Value
		}
		return forerun.Stop{End: true, Result: forerun.Result{Status: r.Status, Value: params}}
	}
	name, ok := componentName(next)
	if !ok {
		return ask(refusal(unparsable(next)), state)
	}
	if params == nil {
		params = json.RawMessage("{}")
	}
	return forerun.Stop{Cursor: conducting{component: true, state: state}, Place: 1, Action: name, Input: params}
}

// Join is never called: a conductor has no branches.
func (Conductor) Join(forerun.Cursor, []forerun.Result) forerun.Stop { return forerun.Stop{End: true} }

// ask stops at the conductor.
func ask(input, state json.RawMessage) forerun.Stop {
	if state != nil {
		input = members{"params": input, "result": state}.assigned()
	}
	return forerun.Stop{Cursor: conducting{state: state}, Self: true, Input: input}
}

// unparsable is OpenWhisk's message for a text that cannot be the name of an action.
func unparsable(name json.RawMessage) string {
	return fmt.Sprintf("Failed to parse action name from json value %s during composition.", name)
}

// boxed is v, in an object under a name if it is none; nil stays nil.
func boxed(v json.RawMessage, name string) json.RawMessage {
	if v == nil || isObject(v) {
		return v
	}
	return object(name, v)
}

// componentName reads the name of an action as OpenWhisk does: it may lack its namespace, or the slash before it if it
// has a package, and empty segments are left out. ok is false if it can be none.
func componentName(v json.RawMessage) (name string, ok bool) {
	if json.Unmarshal(v, &name) != nil {
		return "", false
	}
	segments := strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
	absolute := strings.HasPrefix(name, "/")
	if absolute && len(segments) == 1 {
		return "", false
	}
	name = strings.Join(segments, "/")
	if absolute || len(segments) == 3 {
		name = "/" + name
	}
	_, err := forerun.ParseName(name, "_")
	return name, err == nil
}
