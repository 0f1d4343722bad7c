package canonical

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestMarshal compares with encoding/json, without what it escapes for HTML.
func TestMarshal(t *testing.T) {
	type part struct {
		Name string          `json:"name"`
		Raw  json.RawMessage `json:"raw,omitempty"`
		List []string        `json:"list"`
		Not  *part           `json:"not,omitempty"`
		Map  map[string]int  `json:"map"`
	}
	for _, v := range []any{
		"<a href=\"b\">&\x00", json.RawMessage("{\"a\":\"\u2028\"}"), 1.0, 1e21, nil, []byte("bytes"), json.RawMessage(`{"b":1.0,"a":"<\u003c"}`),
		part{Name: "&", Raw: json.RawMessage(`[9007199254740993]`), Map: map[string]int{"z": 1, "a": 2}},
		part{List: []string{}, Not: new(part)},
		map[string]any{"b": "<", "a": []any{true, nil}},
	} {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got, err := Marshal(v); err != nil || string(got)+"\n" != want.String() {
			t.Errorf("%#v: %s, %v; want %s", v, got, err, want.String())
		}
	}
	var back string
	if got, err := Marshal("\xff"); err != nil || json.Unmarshal(got, &back) != nil || back != "\ufffd" {
		t.Errorf("what is no UTF-8 was written as %s, %v", got, err)
	}
	if _, err := Marshal(json.RawMessage(`{`)); err == nil {
		t.Error("what is no JSON was written")
	}
}
