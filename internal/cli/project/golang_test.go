package project

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestGo: source is compiled to the same program each time; a function of OpenWhisk's Go runtime gets a main.
func TestGo(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"function.go": "package main\n\nfunc Main(args map[string]any) map[string]any { return map[string]any{\"got\": args[\"n\"]} }\n",
		"named.go":    "package main\n\nfunc Hello(args map[string]any) map[string]any { return args }\n",
		"library.go":  "package library\n",
		"wrong.go":    "package main\n\nfunc main() { nothing() }\n",
		"context.go":  "package main\n\nimport \"context\"\n\nfunc Main(_ context.Context, args map[string]any) (map[string]any, error) { return args, nil }\n",
		"app/main.go": "package main\n\nfunc main() { help() }\n",
		"app/help.go": "package main\n\nfunc help() {}\n",
		"app/go.mod":  "module app\n\ngo 1.21\n",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first, err := buildGo(filepath.Join(folder, "function.go"), "")
	if err != nil {
		t.Fatal(err)
	}
	if second, err := buildGo(filepath.Join(folder, "function.go"), "Main"); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same source made another program, %v", err)
	}
	program := filepath.Join(folder, "program")
	if err := os.WriteFile(program, first, 0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("sh", "-c", program+" 3>&1")
	run.Stdin = strings.NewReader(`{"value":{"n":5},"activation_id":"x"}` + "\n")
	if out, err := run.Output(); string(out) != `{"got":5}`+"\n" {
		t.Errorf("it answered %q, %v", out, err)
	}
	for _, c := range []struct{ path, kind, main, want string }{
		{"app", "", "", ""},
		{"named.go", "go:1.22", "Hello", ""},
		{"named.go", "", "", "has neither a function main nor a function Main"},
		{"library.go", "", "", "is not in package main"},
		{"wrong.go", "go", "", "undefined: nothing"},
		{"context.go", "go", "", "write it as func(args map[string]any) map[string]any"},
	} {
		code, _, err := ReadCode(filepath.Join(folder, c.path), c.kind, c.main)
		if c.want == "" && (err != nil || code.Kind != native || !code.Binary || code.Main != "") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := ReadCode(filepath.Join(folder, "function.go"), "", ""); err == nil || !strings.Contains(err.Error(), "CGO_ENABLED=0 go build -o NAME function.go") {
		t.Errorf("without a compiler: %v", err)
	}
}
