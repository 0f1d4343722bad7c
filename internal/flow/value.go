package flow

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"

	"forerun.dev/forerun/internal/canonical"
)

func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// object makes a JSON object of one member.
func object(name string, value json.RawMessage) json.RawMessage {
	return members{name: value}.object()
}

// members are the members of a JSON object; an absent one is undefined, as JavaScript would say.
type members map[string]json.RawMessage

// object is the canonical JSON of m: names sorted, values as they are.
func (m members) object() json.RawMessage {
	maps.DeleteFunc(m, func(_ string, v json.RawMessage) bool { return v == nil })
	text, err := canonical.Marshal(m)
	if err != nil { // values are canonical JSON already
		return json.RawMessage(`{"error":"A value of the composition is not JSON."}`)
	}
	return text
}

// quoted is a string as JSON.
func quoted(s string) json.RawMessage {
	text, _ := canonical.Marshal(s) // strings always marshal
	return text
}

// membersOf are the members of v; none if it is not an object.
func membersOf(v json.RawMessage) members {
	m := make(members)
	if isObject(v) && json.Unmarshal(v, &m) != nil {
		return members{}
	}
	return m
}

// memberOf returns one member of v, or nil.
func memberOf(v json.RawMessage, name string) json.RawMessage {
	if !bytes.Contains(v, []byte(`"`+name+`"`)) {
		return nil // spares almost every value the parse; canonical JSON has no escapes in such a name
	}
	return membersOf(v)[name]
}

// isTrue is JavaScript's truth of a JSON value, nil being undefined.
func isTrue(v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	switch {
	case len(v) == 0, bytes.Equal(v, []byte("false")), bytes.Equal(v, []byte("null")), bytes.Equal(v, []byte(`""`)):
		return false
	case v[0] == '-' || v[0] >= '0' && v[0] <= '9':
		return number(v) != 0
	}
	return true
}

// number is a JSON number as JavaScript has it; one out of range is infinite, and a text that is not a number is 0.
func number(v json.RawMessage) float64 {
	n, _ := strconv.ParseFloat(string(v), 64)
	return n
}
