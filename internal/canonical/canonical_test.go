package canonical

import (
	"encoding/json"
	"errors"
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

func TestMergeLeavesTheEnvironmentOut(t *testing.T) {
	defaults := []forerun.KeyValue{
		{Key: "STAGE", Value: []byte(`"blue"`), Init: true},
		{Key: "plain", Value: []byte("1")},
		forerun.Hide("TOKEN", []byte(`"t"`), true), forerun.Hide("pin", []byte("7"), false),
	}
	for object, want := range map[string]string{
		`{}`:                       `{"pin":7,"plain":1}`,
		`{"STAGE":"green","x":2}`:  `{"pin":7,"plain":1,"x":2}`,
		`{"TOKEN":1,"plain":null}`: `{"pin":7,"plain":null}`,
		`[{"STAGE":"green"}]`:      `[{"STAGE":"green"}]`,
	} {
		if got, err := Merge(defaults, []byte(object)); err != nil || string(got) != want {
			t.Errorf("%s becomes %s (%v), want %s", object, got, err, want)
		}
	}
	failed := []forerun.KeyValue{{Key: "k", Secret: true, Hidden: forerun.Unsealed("guest", "x", nil, errors.New("it is gone"))}}
	if got, err := Merge(failed, []byte("{}")); err == nil || !strings.Contains(err.Error(), "it is gone") {
		t.Errorf("a secret that cannot be read: %s %v", got, err)
	}
}

// nested is an object with arrays in it, so many levels in all.
func nested(levels int) string {
	return `{"a":` + strings.Repeat("[", levels-1) + `"]]\\[[\""` + strings.Repeat("]", levels-1) + `}`
}

func TestBounds(t *testing.T) {
	digits := strings.Repeat("7", maxDigits)
	for _, in := range []string{
		nested(MaxDepth), `{"a":` + digits + `}`, `{"a":-1.7e308,"b":1e-999,"c":` + digits[:400] + `}`, `{"a":"1e999"}`, `{"1e999":"\\"}`,
		`{"a":[` + strings.Repeat("[],", 2*MaxDepth) + `[]]}`,
	} {
		if got, err := Object([]byte(in)); err != nil || string(got) != in {
			t.Errorf("Object(%.60s) = %.60s, %v", in, got, err)
		}
	}
	for in, want := range map[string]string{
		nested(MaxDepth + 1): "more than 512 deep", nested(1 << 20): "more than 512 deep",
		strings.Repeat(`{"a":`, 1<<20): "more than 512 deep", `{"a":` + digits + `7}`: "has 4301 digits",
		`{"a":1e400}`: "The number 1e400 is beyond", `{"a":[-1` + digits[:400] + `.5]}`: "is beyond the range",
	} {
		if _, err := Object([]byte(in)); forerun.KindOf(err) != forerun.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("Object(%.60s): %v; want %s", in, err, want)
		}
	}
	if err := Bounds([]byte(nested(MaxDepth)), 1); err == nil {
		t.Error("a level around it is not counted")
	}
}

func FuzzObject(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e-3,"\u00e9\\"],"b":{"c":null}}`, `{"a":1e400}`, `{"a":"\`, `[[[`, `{"a":"\\\""}`, nested(3), `{"":01}`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := Object(data)
		if err != nil {
			if forerun.KindOf(err) != forerun.Invalid || len(err.Error()) > 1000+6*len(data) {
				t.Errorf("%q: %.1000v", data, err)
			}
			return
		}
		if !json.Valid(data) {
			t.Errorf("%q is no JSON", data)
		}
		if again, err := Object(got); err != nil || string(again) != string(got) {
			t.Errorf("%q became %q, and that %q (%v)", data, got, again, err)
		}
	})
}
