// Package canonical gives every JSON object one form, made once at the door:
// members sorted, no white space, number literals kept as they were written
// (RFC 8785 would merge 1 with 1.0 and 2^53 with 2^53+1). The bytes it returns
// are the bytes that a function is given and that a memo key hashes.
package canonical

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"forerun.dev/forerun/internal/forerun"
)

var form = []jsontext.Options{
	jsontext.CanonicalizeRawInts(false),
	jsontext.CanonicalizeRawFloats(false),
	jsontext.ReorderRawObjects(true),
	jsontext.AllowDuplicateNames(true), // kept in order: the last one counts in every language's parser
	jsontext.AllowInvalidUTF8(false),
	jsontext.SpaceAfterComma(false),
	jsontext.SpaceAfterColon(false),
	jsontext.Multiline(false),
}

// Object returns the canonical form of a JSON object. data is not changed. The error is forerun.Invalid and says where
// data is no JSON, that it is JSON but no object, or which of the Bounds it is over.
func Object(data []byte) (json.RawMessage, error) {
	v, err := value(data)
	if err == nil && v[0] != '{' {
		return nil, forerun.Errorf(forerun.Invalid, "JSON", "The content must be a JSON object, not %s.", kind(v))
	}
	return v, err
}

// ObjectOrArray is Object for what a function may return, which can be an array too.
func ObjectOrArray(data []byte) (json.RawMessage, error) {
	v, err := value(data)
	if err == nil && v[0] != '{' && v[0] != '[' {
		return nil, forerun.Errorf(forerun.Invalid, "JSON", "The content must be a JSON object or array, not %s.", kind(v))
	}
	return v, err
}

// kind is what a value is, in words.
func kind(v json.RawMessage) string {
	switch v[0] {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

func value(data []byte) (json.RawMessage, error) {
	if err := Bounds(data, 0); err != nil {
		return nil, err
	}
	return format(data)
}

func format(data []byte) (json.RawMessage, error) {
	v := jsontext.Value(bytes.Clone(data))
	if err := v.Format(form...); err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "JSON", "The content is not valid JSON: %s", strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	return json.RawMessage(v), nil
}

// Merge lays the members of object over the defaults and returns the canonical result. Defaults that are variables of the environment are
// not among the members, even if object has one of their names. object must be canonical; if it is an array, which one function can pass
// to the next, it takes no defaults. Both were within their Bounds when they came in. The error is that of forerun.KeyValue.Reveal, too.
func Merge(defaults []forerun.KeyValue, object json.RawMessage) (json.RawMessage, error) {
	if len(defaults) == 0 || object[0] == '[' {
		return object, nil
	}
	merged := make(map[string]json.RawMessage, len(defaults))
	for i := range defaults {
		if defaults[i].Init {
			continue
		}
		value, err := defaults[i].Reveal()
		if err != nil {
			return nil, err
		}
		merged[defaults[i].Key] = value
	}
	if err := json.Unmarshal(object, &merged); err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "parameters", "The parameters cannot be merged: %w", err)
	}
	for i := range defaults {
		if defaults[i].Init {
			delete(merged, defaults[i].Key)
		}
	}
	data, err := json.Marshal(merged)
	if err != nil {
		return nil, forerun.Errorf(forerun.Invalid, "parameters", "The parameters cannot be merged: %w", err)
	}
	return format(data)
}
