package project

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/docs"
	"forerun.dev/forerun/internal/cli/whisk"
)

// TestEnv: variables and secrets become parameters that say what they are.
func TestEnv(t *testing.T) {
	p, err := load(t, map[string]string{FileName: `
actions:
  a: {file: a.py, inputs: {x: 1}, env: {STAGE: blue, PORT: 80, KEY: "${WORD}"}, secrets: {TOKEN: "${WORD}"}}
packages:
  p: {env: {REGION: eu}, secrets: {OF: 1}}
`, "a.py": "def main(a): return a"})
	if err != nil {
		t.Fatal(err)
	}
	entities, err := p.Entities(func(string) string { return "word" })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		`[{"key":"REGION","value":"eu","init":true},{"key":"OF","value":1,"init":true,"secret":true}]`,
		`[{"key":"x","value":1},{"key":"KEY","value":"word","init":true},{"key":"PORT","value":80,"init":true},{"key":"STAGE","value":"blue","init":true},{"key":"TOKEN","value":"word","init":true,"secret":true}]`,
	} {
		var body struct{ Parameters json.RawMessage }
		if text, err := json.Marshal(entities[i].Body); err != nil || json.Unmarshal(text, &body) != nil || string(body.Parameters) != want {
			t.Errorf("%s has %s (%v), want %s", entities[i].Name, body.Parameters, err, want)
		}
	}
}

// What is wrong is told with its place.
func TestProblems(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"# nothing\n", ""},
		{"actions: {}\n", ""},
		{"- a\n", "1:1: The file must be an object, not a list."},
		{"acts: {}\n", "1:1: acts is not known; known are $schema, actions, compositions, packages, project, rules, sequences, triggers, workflows."},
		{"actions:\n  a: {file: 1}\n", "2:13: actions.a.file must be a string, not a number."},
		{"actions:\n  a:\n    file: \n", "3:11: actions.a.file must be a string, not empty."},
		{"actions:\n  a:\n    file: x\n    folder: y\n", "3:5: actions.a must have either file or folder."},
		{"actions:\n  a:\n    file: x\n    limits:\n      memory: 12.5\n", "5:15: actions.a.limits.memory must be an integer, not a number."},
		{"actions:\n  a:\n    file: x\n    limits: {timeout: 99}\n", "4:23: actions.a.limits.timeout is 99; at least 100 is allowed."},
		{"actions:\n  a:\n    file: x\n    web: maybe\n", "4:10: actions.a.web must be one of true, false, yes, no, raw."},
		{"sequences: {s: []}\n", "1:16: sequences.s must have at least 1 element."},
		{"sequences: {s: [1]}\n", "1:17: sequences.s[0] must be a string, not a number."},
		{"rules: {r: {trigger: t}}\n", `1:13: rules.r lacks "action".`},
		{"actions:\n  'a/b': {file: x}\n", "2:3: actions.a/b has characters that a name cannot have: use letters, digits and '_', and inside also '@', '.', '-' and spaces."},
		{"a: 1\na: 2\n", `2:1: mapping key "a" already defined at [1:1]`},
		{"a: [1\n", "1:4: sequence end token ']' not found"},
		{"a: *b\n", "1:4: No anchor above has this name: write &NAME before the value that is meant."},
		{"a: !!binary xx\n", "1:4: The tag !!binary is not known here: remove it."},
		{"triggers: {t: {inputs: {x: .inf}}}\n", "1:28: .inf is not a number in JSON: write a finite number, or put text in quotes."},
		{"---\na: 1\n---\nb: 1\n", "4:2: The file holds a second document: write one file for each project."},
		{"a: " + strings.Repeat("[", 1000), "1:1: The file is nested too deep."},
		{strings.Repeat("- ", 100) + "a", "1:131: The file is nested too deep or too large."},
		{strings.Repeat("#", maxFile+1), "1:1: The file is larger than 256 KiB: split it into several projects."},
		{bomb(), "7:10: The file is nested too deep or too large."},
	} {
		_, _, problems := read([]byte(c.text))
		got := ""
		if len(problems) > 0 {
			got = strings.TrimPrefix(described("f", problems[:1]).Error(), "f:")
		}
		if got != c.want {
			t.Errorf("%.60q: got %s, want %s", c.text, got, c.want)
		}
	}
}

// bomb is a short document that is very long when its aliases are resolved.
func bomb() string {
	text := "a0: &a0 [1]\n"
	for i := range 10 {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d,", i), 9), i)
	}
	return text
}

// YAML's own forms come out as JSON.
func TestValues(t *testing.T) {
	text := `
base: &base {a: 1, b: x}
merged: {<<: *base, b: y}
list: [1, -2, 0x10, 1.5, true, ~, "q", 'it''s', 12345678901234567890]
literal: |
  two
  lines
tagged: !!str 12
5: five
`
	root, wrong := parse([]byte(text))
	if wrong != nil {
		t.Fatal(wrong)
	}
	got, err := root.MarshalJSON()
	want := `{"base":{"a":1,"b":"x"},"merged":{"a":1,"b":"y"},"list":[1,-2,16,1.5,true,null,"q","it's",12345678901234567890],"literal":"two\nlines\n","tagged":"12","5":"five"}`
	if err != nil || !sameDocument(t, string(got), want) {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func sameDocument(t *testing.T, x, y string) bool {
	var a, b any
	if json.Unmarshal([]byte(x), &a) != nil || json.Unmarshal([]byte(y), &b) != nil {
		t.Fatalf("no JSON: %s, %s", x, y)
	}
	return reflect.DeepEqual(a, b)
}

// load writes files into a folder and reads the project in it.
func load(t *testing.T, files map[string]string) (*Project, error) {
	folder := t.TempDir()
	for name, content := range files {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(folder)
}

func TestEntityErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"actions: {a: {file: none.py}}", "actions.a.file: the function's code cannot be read"},
		{"actions: {a: {file: a.txt}}", "the kind of"},
		{"actions: {a: {file: a.jar}}", "does not name a main class"},
		{"actions: {a: {folder: sub}}", "the kind of the folder"},
		{"actions: {a: {file: a.py, inputs: {k: '${NONE}'}}}", "1:39: actions.a.inputs.k: the environment variable NONE is not set"},
		{"actions: {a: {file: a.py, inputs: {k: '${NONE'}}}", "no closing brace"},
		{"actions: {a: {file: a.py, env: {K: '${NONE}'}}}", "1:36: actions.a.env.K: the environment variable NONE is not set"},
		{"actions: {a: {file: a.py, secrets: {K: '${NONE}'}}}", "1:40: actions.a.secrets.K: the environment variable NONE is not set"},
		{"actions: {a: {file: a.py, env: {K: 1}, secrets: {K: 2}}}", `actions.a.secrets.K: "K" is a parameter already: choose one of inputs, env and secrets for it`},
		{"actions: {a: {file: a.py, env: {__OW_X: 1}}}", "choose a name that does not begin with __OW_"},
		{"actions: {a: {file: a.py}}\nsequences: {a: [b]}", "another action has this name: /_/a; rename one of them"},
		{"sequences: {a: [b], b: [c], c: [a]}", "the sequence runs itself (a > b > c > a)"},
		{"sequences: {a: ['/x']}", "is not a name"},
		{"packages: {p: {bind: /_/q, actions: {a: {file: a.py}}}}", "cannot have actions of its own"},
		{"packages: {p: {bind: a/b}}", "is not a package"},
		{"rules: {r: {trigger: a/b, action: c}}", "is not a trigger"},
		{"actions: {a: {file: a.py, annotations: {speculate: al}}}", `1:41: actions.a.annotations: The annotation 'speculate': "al" does not say`},
		{"actions: {a: {file: a.py, annotations: {pure-function: 'true'}}}", `The annotation 'pure-function' must be true or false, without quotes, not "true".`},
		{"sequences: {s: {actions: [/_/a], annotations: {read-hosts: [http://b]}}}", `The annotation 'read-hosts' has "http://b", which is not a host`},
		{"compositions: {c: inline.json}", "The annotation 'keep-process' must be true or false"},
		{"compositions: {c: a.py}", "is not a JSON object"},
		{"compositions: {c: none.json}", "composition cannot be read"},
		{"compositions: {c: other.json}", "is not a composition"},
	} {
		p, err := load(t, map[string]string{
			FileName: c.text, "a.py": "", "a.txt": "", "a.jar": "PK\x03\x04", "sub/x": "", "other.json": "{}",
			"inline.json": `{"type":"action","name":"/_/x","action":{"exec":{"kind":"nodejs:20","code":""},"annotations":[{"key":"keep-process","value":1}]}}`,
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Entities(func(string) string { return "" })
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), FileName+":1:") && !strings.Contains(err.Error(), FileName+":2:") {
			t.Errorf("%s: got %v, want %s", c.text, err, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	env := func(name string) string { return map[string]string{"A": "1", "B": "<&>"}[name] }
	b := &builder{getenv: env}
	got, err := b.expand(json.RawMessage(`{"${A}":["x${A}y${B}","$${A}","$",{"n":1}]}`))
	if want := `{"${A}":["x1y<&>","${A}","$",{"n":1}]}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

// A folder without a project file is a project of its functions.
func TestFolder(t *testing.T) {
	p, err := load(t, map[string]string{
		"hello.py": "x", "web.mjs": "y", "notes.txt": "", "tool": "\x7fELF", "empty": "", "need.jar": "PK", "a.zip": "PK",
		"pack/index.js": "z", "other/readme": "", ".hidden.py": "", "__pycache__/x.py": "",
	})
	if err != nil {
		t.Fatal(err)
	}
	entities, err := p.Entities(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entities {
		got = append(got, e.Name.Entity+" "+e.Body.(*whisk.ActionPut).Exec.Kind)
	}
	if want := []string{"hello python:3", "pack nodejs:20", "tool native", "web nodejs:20"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := load(t, map[string]string{"a.py": "", "a.js": ""}); err == nil || !strings.Contains(err.Error(), "two functions with the name a") {
		t.Errorf("two of one name: %v", err)
	}
}

// The same folder is the same archive, whenever and wherever it is made; executable bits count.
func TestArchive(t *testing.T) {
	archive := func(mode os.FileMode) string {
		folder := t.TempDir()
		for _, name := range []string{"b.py", "__main__.py", "a.pyc"} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(name), mode); err != nil {
				t.Fatal(err)
			}
		}
		exec, _, err := ReadCode(folder, "", "")
		if err != nil || exec.Kind != python || !exec.Binary {
			t.Fatalf("%v, %v", exec, err)
		}
		return *exec.Code
	}
	if archive(0o600) != archive(0o640) {
		t.Error("the same files made two archives")
	}
	if archive(0o600) == archive(0o700) {
		t.Error("the executable bit is lost")
	}
}

// TestArchiveFiles: an archive that another tool made is sent as it is.
func TestArchiveFiles(t *testing.T) {
	for name, content := range map[string]string{"a.zip": "PK\x03\x04\xff", "a.jar": "PK\x03\x04\xff", "a.tar.gz": "\x1f\x8b\x08\xff"} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		exec, _, err := ReadCode(path, python, "")
		if err != nil || !exec.Binary || *exec.Code != base64.StdEncoding.EncodeToString([]byte(content)) {
			t.Errorf("%s: %+v, %v", name, exec, err)
		}
	}
}

// Compositions are read as `compose` writes them, and their inline actions are deployed too.
func TestComposition(t *testing.T) {
	ast := `{"type":"seq","components":[{"type":"action","name":"/_/b","action":{"exec":{"kind":"nodejs:default","code":"const main = 1 < 2"}}},{"type":"value","value":{"type":"action","action":{}}}]}`
	for _, text := range []string{ast, `{"composition":{},"ast":` + ast + `,"version":"0.12.0"}`} {
		document, inline, err := parseComposition("c.json", []byte(text))
		if err != nil || string(document) != ast || len(inline) != 1 || inline[0].Name != "/_/b" || *inline[0].Action.Exec.Code != "const main = 1 < 2" {
			t.Errorf("got %s, %v, %v", document, inline, err)
		}
	}
}

// The project of docs/reference/cli.md can be deployed.
func TestDocumentedProject(t *testing.T) {
	text, err := os.ReadFile("../../../docs/reference/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "loads it -->\n\n")
	example, _, ok := strings.Cut(rest, "\n\n")
	if !ok {
		t.Fatal("the example is not where it was")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{
		FileName: strings.ReplaceAll("\n"+example, "\n    ", "\n"), "hello.py": "x", "report/index.js": "x", "page.js": "x", "price.py": "x",
		"order.json": `{"type":"value","value":1}`,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	entities, err := p.Entities(func(string) string { return "Hello" })
	if err != nil || len(entities) != 10 {
		t.Errorf("%d entities, %v", len(entities), err)
	}
}

// What the schema says and what the validator knows is the same.
func TestSchemaKeywords(t *testing.T) {
	var document any
	if err := json.Unmarshal(docs.Schema, &document); err != nil {
		t.Fatal(err)
	}
	known := []string{"$schema", "$id", "title", "description", "default"} // words, not rules
	for _, f := range reflect.VisibleFields(reflect.TypeFor[schema]()) {
		known = append(known, f.Tag.Get("json"))
	}
	walkSchema(document, func(s map[string]any) {
		for name := range s {
			if !slices.Contains(known, name) {
				t.Errorf("the validator does not know %q", name)
			}
		}
		if reference, ok := s["$ref"].(string); ok && (len(s) > 1 || document.(map[string]any)["$defs"].(map[string]any)[strings.TrimPrefix(reference, "#/$defs/")] == nil) {
			t.Errorf("the reference %q does not stand alone, or leads nowhere", reference)
		}
	})
}

// walkSchema calls visit for each schema in a schema.
func walkSchema(value any, visit func(map[string]any)) {
	s, ok := value.(map[string]any)
	if !ok {
		return
	}
	visit(s)
	for _, name := range []string{"properties", "$defs"} {
		below, _ := s[name].(map[string]any)
		for _, x := range below {
			walkSchema(x, visit)
		}
	}
	for _, name := range []string{"items", "additionalProperties", "propertyNames"} {
		walkSchema(s[name], visit)
	}
}

func FuzzProject(f *testing.F) {
	for _, text := range []string{
		"", "actions: {a: {file: a.py}}", "packages:\n  p:\n    bind: /_/q\n", "sequences: {s: [a, b]}", "a: &x [*x]", "x: |\n  a\n", "<<: {}", "? a\n: b", "- !!str", "{a: 1",
		"a: &a\nb: *a\n", "compositions: {c: {file: x}}", "rules: {r: {trigger: t, action: a, enabled: no}}", "%YAML 1.2\n---\n", "a: \"\\x\"", "\t", "actions: {a: {file: a, web: raw, limits: {memory: 1e2}}}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		content, root, problems := read(text)
		if len(problems) > 0 {
			for _, p := range problems {
				if p.line < 1 || p.message == "" {
					t.Errorf("a problem without a place or words: %+v", p)
				}
			}
			return
		}
		p := &Project{Path: "forerun.yaml", Folder: "/nonexistent", file: content, root: root}
		_, _ = p.Entities(func(string) string { return "" }) // an error or not, but no crash
		p.Folders()
	})
}

func FuzzComposition(f *testing.F) {
	f.Add([]byte(`{"type":"action","name":"/_/a"}`))
	f.Add([]byte(`{"ast":{"type":"seq","components":[{"type":"action","name":"a","action":{"exec":{"kind":"x"}}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		document, _, err := parseComposition("c.json", text)
		if err == nil && !json.Valid(document) {
			t.Errorf("%q became %q", text, document)
		}
	})
}
