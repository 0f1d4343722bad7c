package canonical

import (
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestObjectKeepsNumbersAndSortsMembers(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : 1.0 , "a" : [ 9007199254740993 , 1e2 ] } `: `{"a":[9007199254740993,1e2],"b":1.0}`,
		`{"a":{"z":1,"y":"<é>"}}`:                            `{"a":{"y":"<é>","z":1}}`,
		`{"a":1,"b":2,"a":3}`:                                `{"a":1,"a":3,"b":2}`, // the last one counts, in every language's parser
		`{}`:                                                 `{}`,
	} {
		got, err := Object([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Object(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
}

func TestObjectRefuses(t *testing.T) {
	for _, in := range []string{``, `[]`, `1`, `null`, `{"a":NaN}`, `{"a":1`, `{"a":1}{}`, "{\"a\":\"\xff\"}"} {
		if got, err := Object([]byte(in)); forerun.KindOf(err) != forerun.Invalid {
			t.Errorf("Object(%q) = %s, %v; want an Invalid error", in, got, err)
		}
	}
	if _, err := Object([]byte(`[1]`)); !strings.Contains(err.Error(), "must be a JSON object") {
		t.Errorf("the error does not say what is wrong: %v", err)
	}
}

func TestObjectOrArray(t *testing.T) {
	for in, want := range map[string]string{` [ 1.0 , {"b":1,"a":2} ] `: `[1.0,{"a":2,"b":1}]`, `{ }`: `{}`, `[]`: `[]`} {
		if got, err := ObjectOrArray([]byte(in)); err != nil || string(got) != want {
			t.Errorf("ObjectOrArray(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{``, `1`, `null`, `"x"`, `[1`, `[1][2]`} {
		if got, err := ObjectOrArray([]byte(in)); forerun.KindOf(err) != forerun.Invalid {
			t.Errorf("ObjectOrArray(%q) = %s, %v; want an Invalid error", in, got, err)
		}
	}
}

func TestMerge(t *testing.T) {
	defaults := []forerun.KeyValue{{Key: "n", Value: []byte(`1.50`)}, {Key: "a", Value: []byte(`"x"`)}}
	got, err := Merge(defaults, []byte(`{"a":"<y>"}`))
	if err != nil || string(got) != `{"a":"<y>","n":1.50}` {
		t.Errorf("Merge = %s, %v", got, err)
	}
	if got, err := Merge(defaults, []byte(`["x"]`)); err != nil || string(got) != `["x"]` {
		t.Errorf("Merge with an array = %s, %v", got, err)
	}
}
