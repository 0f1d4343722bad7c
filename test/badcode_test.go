package test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

// file is one of an archive.
type file struct {
	name, text string
	mode       fs.FileMode
}

// zipped is the base64 of a zip archive.
func zipped(t *testing.T, files ...file) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(f.mode | 0o755)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(w, f.text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// bomb is a zip archive of half a megabyte with 600 MB in it.
func bomb(t *testing.T, others ...file) string {
	t.Helper()
	zeros := strings.Repeat("\x00", 100<<20)
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		others = append(others, file{name: name, text: zeros})
	}
	return zipped(t, others...)
}

// TestBadCode deploys what cannot be loaded, in each language, and looks at what its invoker is told.
func TestBadCode(t *testing.T) {
	t.Parallel()
	needNode(t)
	c := client(t, start(t, server.Options{}))
	python := file{name: "__main__.py", text: "def main(args):\n    return {}\n"}
	node := file{name: "index.js", text: "exports.main = () => ({})\n"}
	program := file{name: "exec", text: "#!/bin/sh\nwhile read -r line; do echo '{}' >&3; done\n"}
	const unsafe, link, main = "safe name", "leads to", "main"
	for _, bad := range []struct{ name, kind, code, says string }{
		{"python: syntax", "python:3", "def main(args)\n", "SyntaxError"},
		{"python: no main", "python:3", "def other(args): pass\n", "no function named 'main'"},
		{"python: odd bytes", "python:3", "def main(args): return {'\x00': 1}\n", "has failed"},
		{"python: deep", "python:3", "def main(args): return " + strings.Repeat("(", 5000) + strings.Repeat(")", 5000), "has failed"},
		{"python: no main file", "python:3", zipped(t, node), "no file __main__.py"},
		{"python: path", "python:3", zipped(t, python, file{name: "../../tmp/x"}), unsafe},
		{"python: absolute", "python:3", zipped(t, python, file{name: "/tmp/x"}), unsafe},
		{"python: link", "python:3", zipped(t, python, file{name: "x", text: "/etc/passwd", mode: fs.ModeSymlink}), link},
		{"python: bomb", "python:3", bomb(t, python), ""},
		{"python: no archive", "python:3", base64.StdEncoding.EncodeToString([]byte("nothing to see")), "zip file"},
		{"node: syntax", "nodejs:20", "function main (", "SyntaxError"},
		{"node: no main", "nodejs:20", "function other () {}", main},
		{"node: no main file", "nodejs:20", zipped(t, python), ""},
		{"node: path", "nodejs:20", zipped(t, node, file{name: "../../tmp/x"}), unsafe},
		{"node: absolute", "nodejs:20", zipped(t, node, file{name: "/tmp/x"}), unsafe},
		{"node: link", "nodejs:20", zipped(t, node, file{name: "x", text: "/etc/passwd", mode: fs.ModeSymlink}), link},
		{"node: bomb", "nodejs:20", bomb(t, node), ""},
		{"native: no program", "native", "neither a script nor a program", ""},
		{"native: no exec", "native", zipped(t, python), "exec"},
		{"native: path", "native", zipped(t, program, file{name: "../../tmp/x"}), unsafe},
		{"native: link", "native", zipped(t, program, file{name: "x", text: "../../etc/passwd", mode: fs.ModeSymlink}), link},
	} {
		t.Run(bad.name, func(t *testing.T) {
			put(t, c, "bad", map[string]any{"exec": map[string]any{"kind": bad.kind, "code": bad.code}, "limits": map[string]int{"memory": 512}})
			r := invoke(t, c, "bad", nil)
			if r.Response.Status != "action developer error" || !strings.Contains(string(r.Response.Result), bad.says) {
				t.Errorf("%s %s; want %q", r.Response.Status, r.Response.Result, bad.says)
			}
		})
	}
	for _, good := range []struct{ kind, code string }{{"python:3", zipped(t, python)}, {"nodejs:20", zipped(t, node)}, {"native", zipped(t, program)}} {
		put(t, c, "good", map[string]any{"exec": map[string]any{"kind": good.kind, "code": good.code}})
		equalJSON(t, invoke(t, c, "good", nil).Response.Result, `{}`)
	}
}

// A misdeed is what a function does that means harm: each has its branch in the functions actions/bad.*.
type misdeed struct {
	do    string
	says  []string // what invokers are told: one of them, by language and chance
	log   string   // is in the log
	ok    bool     // the activation succeeds
	lasts bool     // the activation may go on until its time limit
}

var misdeeds = []misdeed{
	{do: "loop", says: []string{"exceeded its time limits of 10000 milliseconds"}, lasts: true},
	{do: "fork", says: []string{"exceeded its time limits", "exhausted its memory", "exited unexpectedly with status 2"}, lasts: true}, // a shell that cannot fork exits
	{do: "memory", says: []string{"exhausted its memory"}},
	{do: "disk", says: []string{"exhausted its memory"}},
	{do: "flood", says: []string{`{"ok":true}`}, log: "Logs were truncated because the total bytes size exceeds the limit of 1048576 bytes.", ok: true},
	{do: "signal", says: []string{"killed by signal 11 (segmentation fault)"}},
	{do: "exit", says: []string{"exited unexpectedly with status 3"}},
	{do: "close", says: []string{"exited unexpectedly", "killed"}},
	{do: "noise", says: []string{"did not return a dictionary", "exceeded the allowed length", "exited unexpectedly"}},
	{do: "number", says: []string{"did not return a dictionary"}},
	{do: "no JSON", says: []string{"is not JSON", "not valid JSON", "did not return a dictionary"}},
	{do: "long", says: []string{"exceeded the allowed length"}},
	{do: "deep", says: []string{"more than 512 deep"}},
	{do: "children", says: []string{`{"ok":true}`}, ok: true},
	{do: "threads", says: []string{`{"ok":true}`}, ok: true},
}

// limit is the time limit of the action, in milliseconds.
func (m *misdeed) limit() int {
	if m.lasts {
		return 10_000
	}
	return 55_000
}

// TestMisdeeds: a function that misbehaves hurts its own activation, which tells how; the next finds nothing of it.
func TestMisdeeds(t *testing.T) {
	t.Parallel()
	needNode(t)
	for kind, path := range map[string]string{"python:3": "actions/bad.py", "nodejs:20": "actions/bad.js", "native": "actions/bad.sh"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := client(t, start(t, server.Options{Args: room(1)})) // one sandbox: the next activation finds what the last one left
			code, limit := source(path)(t), 0
			for _, m := range misdeeds {
				// Only misdeeds that last get a short limit: a busy machine may take seconds for each of the others.
				if next := m.limit(); next != limit {
					limit = next
					put(t, c, "bad", map[string]any{
						"exec":        map[string]any{"kind": kind, "code": code},
						"limits":      map[string]int{"timeout": limit, "logs": 1},
						"annotations": []any{map[string]any{"key": "fresh-process", "value": true}}, // a kept process keeps its environment
					})
				}
				r := invoke(t, c, "bad", map[string]any{"do": m.do})
				says := func(part string) bool { return strings.Contains(string(r.Response.Result), part) }
				if r.Response.Success != m.ok || !slices.ContainsFunc(m.says, says) {
					t.Errorf("%s: %s %.300s", m.do, r.Response.Status, r.Response.Result)
				}
				if log := strings.Join(stored(t, c, r.ActivationID).Logs, "\n"); !strings.Contains(log, m.log) {
					t.Errorf("%s: the log ends with %q", m.do, log[max(0, len(log)-300):])
				}
				found := invoke(t, c, "bad", map[string]any{"do": "look"})
				equalJSON(t, found.Response.Result, `{"environment":0,"files":0,"processes":0}`)
				if t.Failed() {
					t.Fatalf("that was after %s", m.do)
				}
			}
		})
	}
}
