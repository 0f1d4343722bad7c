package flow

import (
	"bytes"
	"encoding/json"
	"strconv"

	"forerun.dev/forerun/internal/forerun"
)

// cursor is a place in a walk and the data that flows there.
type cursor struct {
	at    int // the row of the action that runs
	stack *saved
}

// saved is a value pushed by opSave, with those below it.
type saved struct {
	value json.RawMessage
	below *saved
}

// Start walks to the first action, or to the end of a program that has none.
func (p *Program) Start(input json.RawMessage) forerun.Stop { return p.walk(0, input, nil) }

// Resume goes on behind the action where the walk stopped, with its result.
func (p *Program) Resume(at forerun.Cursor, r forerun.Result) forerun.Stop {
	if problem := memberOf(r.Value, "error"); problem != nil || r.Status != forerun.Success {
		return forerun.Stop{End: true, Result: p.failed(r, problem)}
	}
	c := at.(cursor)
	return p.walk(c.at+1, r.Value, c.stack)
}

// failed is the result of a program in which an action ended with an error that nothing catches.
func (p *Program) failed(r forerun.Result, problem json.RawMessage) forerun.Result {
	if p.passError || problem == nil {
		return r
	}
	value, err := json.Marshal(map[string]json.RawMessage{"error": problem})
	if err != nil {
		return forerun.Failure(forerun.InternalError, "The error of an action is not JSON: "+err.Error())
	}
	return forerun.Result{Status: forerun.ApplicationError, Value: value}
}

func (p *Program) walk(at int, value json.RawMessage, stack *saved) forerun.Stop {
	for at < len(p.rows) {
		r := &p.rows[at]
		switch r.op {
		case opAction:
			return forerun.Stop{Cursor: cursor{at, stack}, Action: r.action, Input: value}
		case opBranch:
			if !isTrue(memberOf(value, "value")) {
				at = r.to
				continue
			}
		case opJump:
			at = r.to
			continue
		case opSave:
			stack = &saved{value, stack}
		case opRestore:
			value, stack = stack.value, stack.below
		}
		at++
	}
	return forerun.Stop{End: true, Result: forerun.Result{Status: forerun.Success, Value: value}}
}

// memberOf returns the member of a JSON object, or nil.
func memberOf(object json.RawMessage, name string) json.RawMessage {
	if !bytes.Contains(object, []byte(`"`+name+`"`)) {
		return nil // spares the parse of almost every value; names have no escapes in canonical JSON
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	return members[name]
}

// isTrue is JavaScript's truth of a JSON value, nil being undefined: composer tests params.value so.
func isTrue(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	switch {
	case len(v) == 0, bytes.Equal(v, []byte("false")), bytes.Equal(v, []byte("null")), bytes.Equal(v, []byte(`""`)):
		return false
	case v[0] == '-' || v[0] >= '0' && v[0] <= '9':
		n, _ := strconv.ParseFloat(string(v), 64) // out of range is infinite, and so true
		return n != 0
	}
	return true
}
