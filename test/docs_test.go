package test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

var update = flag.Bool("update", false, "rewrite what the documents say of the server")

// TestDocumentedCommands holds the list in docs/state.md against what the server says that it has.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../docs/state.md", "-update` -->\n", "<!-- end -->"
	r := redisClient(start(t, server.Options{Redis: true}))
	defer r.Close()
	commands, err := r.Do(t.Context(), "COMMAND", "LIST").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(commands)
	want := "\n    " + strings.Join(wrap(commands, 110), "\n    ") + "\n\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	listed, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the commands", file)
	}
	if *update {
		if err := os.WriteFile(file, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if listed != want {
		t.Errorf("%s lists other commands than the server has; run go test ./test -run Documented -update\nthe server has:%s", file, want)
	}
}

// wrap joins words with spaces into lines of at most width bytes.
func wrap(words []string, width int) (lines []string) {
	for _, w := range words {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(w) <= width {
			lines[last] += " " + w
		} else {
			lines = append(lines, w)
		}
	}
	return lines
}
