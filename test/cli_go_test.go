package test

import (
	"testing"

	"forerun.dev/forerun/test/server"
)

// TestGoSource: the command line compiles Go source, and the kinds of OpenWhisk's Go runtime are native.
func TestGoSource(t *testing.T) {
	t.Parallel()
	sh := newShell(t, start(t, server.Options{}))
	const function = "package main\n\nfunc Main(args map[string]any) map[string]any {\n\treturn map[string]any{\"hello\": args[\"name\"]}\n}\n"
	sh.save(t, map[string]string{
		"hello.go": function, "program": decoded(t, nativeProgram(t)), "source.txt": function,
		"forerun.yaml": "actions:\n  deployed: { file: hello.go, kind: go, inputs: { name: Ada } }\n",
	})
	sh.follow(t, []step{
		{"deploy", 0, "created    action   /_/deployed\n", ""},
		{"deploy", 0, "unchanged  action   /_/deployed\n", ""},
		{"invoke deployed -r -o jsonl", 0, `={"hello":"Ada"}` + "\n", ""},
		{"action create hello hello.go --kind go:default", 0, "", "ok: created action hello"},
		{"invoke hello -r -o jsonl -p name World", 0, `={"hello":"World"}` + "\n", ""},
		{"invoke hello -r -o jsonl -p name again", 0, `={"hello":"again"}` + "\n", ""},
		{"action create program program --kind go:1.22", 0, "", "ok: created action program"},
		{"invoke program -b", 0, `"success": true`, ""},
		{"action list -n", 0, "/guest/program   native", ""},
		{"action get hello", 0, `"kind": "native"`, ""},
		{"action get hello exec -o jsonl", 0, `={"kind":"native","binary":true}` + "\n", ""},
	})
}
