package canonical

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

var marshaling = json.JoinOptions(v1.DefaultOptionsV1(), jsontext.EscapeForHTML(false), jsontext.EscapeForJS(false))

// Marshal writes a value as JSON like encoding/json does, but sooner and without escaping what only HTML or JavaScript needs escaped:
// code and results stay as they were written.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, marshaling) }

// MarshalTo appends to a buffer what Marshal returns.
func MarshalTo(b *bytes.Buffer, v any) error { return json.MarshalWrite(b, v, marshaling) }
