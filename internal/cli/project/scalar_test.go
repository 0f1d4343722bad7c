package project

import (
	"strings"
	"testing"
)

// TestScalars holds plain scalars to the core schema of YAML 1.2; "refused" are the ones that YAML 1.1 reads otherwise.
func TestScalars(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", "-1": "-1", "+1": "1", "-0": "-0", "0": "0", "0o17": "15", "0x1F": "31", "12345678901234567890123": "12345678901234567890123",
		"-9223372036854775809": "-9223372036854775809", "0xFFFFFFFFFFFFFFFFFF": "4722366482869645213695",
		"1e3": "1e3", "1E5": "1E5", ".5": "0.5", "-.5": "-0.5", "+.5": "0.5", "1.": "1.0", "1.5e+3": "1.5e+3", "1.e2": "1e2", "01.5": "1.5", "-00.50": "-0.50",
		"~": "null", "": "null", "Null": "null", "NULL": "null", "nULL": `"nULL"`, "true": "true", "True": "true", "FALSE": "false", "tRue": `"tRue"`,
		"yes": `"yes"`, "no": `"no"`, "on": `"on"`, "y": `"y"`, "2020-01-01": `"2020-01-01"`, "12:30": `"12:30"`, "1.2.3": `"1.2.3"`, "0o9": `"0o9"`, "0x": `"0x"`, "1e": `"1e"`, "_1": `"_1"`,
		"'1e3'": `"1e3"`, `"0123"`: `"0123"`, "'yes'": `"yes"`, "a # b": `"a"`, "1e3 # c": "1e3", "{a: 1e3}": `{"a":1e3}`, "[.5,1_0a]": `[0.5,"1_0a"]`, "&a 1e3": "1e3",
		"!!str 0123": `"0123"`, "!!str": `""`, "!!str |\n  0123": `"0123\n"`, "!!int '5'": "5", "!!float 5": "5", "!!bool 'true'": "true", "!!null ''": "null",
		"0123": "refused", "-012": "refused", "08": "refused", "1_000": "refused", "0_1": "refused", "0b11": "refused", "0x_1": "refused", "1e400": "refused",
		".inf": "refused", "-.INF": "refused", ".NaN": "refused", "[0123]": "refused", "!!int x": "refused", "!!bool 1": "refused", "{a: 1_0}": "refused",
	} {
		root, wrong := parse([]byte("k: " + text + "\n"))
		if want == "refused" {
			if wrong == nil || wrong.line != 1 || wrong.column < 4 || !strings.HasSuffix(wrong.message, ".") {
				t.Errorf("%s: got %+v, want a refusal with its place", text, wrong)
			}
			continue
		}
		if wrong != nil {
			t.Errorf("%s: %+v", text, wrong)
			continue
		}
		if got, err := root.MarshalJSON(); string(got) != `{"k":`+want+`}` || err != nil {
			t.Errorf("%s: got %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestIntegers: a limit is an integer, of any notation that the core schema has.
func TestIntegers(t *testing.T) {
	for text, want := range map[string]string{
		"0x200": "", "0o1000": "", "512": "", "512.0": "must be an integer", "5e2": "must be an integer", "99999999999999999999999": "at most",
	} {
		content, _, problems := read([]byte("actions: {a: {file: x, limits: {memory: " + text + "}}}"))
		switch {
		case want == "" && (len(problems) > 0 || *content.Actions["a"].Limits.Memory != 512):
			t.Errorf("%s: %v, %v", text, content, problems)
		case want != "" && (len(problems) != 1 || !strings.Contains(problems[0].message, want)):
			t.Errorf("%s: %v, want %s", text, problems, want)
		}
	}
}

// TestMarks: editors and shells of Windows put byte order marks before text.
func TestMarks(t *testing.T) {
	p, err := load(t, map[string]string{
		FileName: "\xef\xbb\xbfactions: {a: {folder: f}}\ncompositions: {c: c.json}\n", "f/package.json": "\xef\xbb\xbf{}",
		"c.json": "\xef\xbb\xbf" + `{"type":"value","value":1}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	if entities, err := p.Entities(func(string) string { return "" }); len(entities) != 2 || err != nil {
		t.Errorf("%d entities, %v", len(entities), err)
	}
	wide := "\xff\xfe"
	for _, b := range []byte("actions: 1") {
		wide += string([]byte{b, 0})
	}
	if _, err := load(t, map[string]string{FileName: wide}); err == nil || !strings.Contains(err.Error(), FileName+":1:10: actions must be an object") {
		t.Errorf("UTF-16: %v", err)
	}
}
