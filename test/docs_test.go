package test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
)

var update = flag.Bool("update", false, "rewrite what the documents say of the server")

// TestDocumentedCommands holds the list in docs/reference/state.md against what the server says that it has.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../docs/reference/state.md", "-update` -->\n", "<!-- end -->"
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

// TestDocumentedPromises: the tests that docs/reference/security.md names for its promises are there.
func TestDocumentedPromises(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/reference/security.md")
	if err != nil {
		t.Fatal(err)
	}
	folder, named := "", 0
	for _, word := range regexp.MustCompile("`[a-z/]+`|(?:suite/|Test|Fuzz)[A-Za-z]+").FindAllString(string(text), -1) {
		if strings.HasPrefix(word, "`") {
			folder = strings.Trim(word, "`")
			continue
		}
		place, what := folder, "func "+word+"("
		if part, ok := strings.CutPrefix(word, "suite/"); ok {
			place, what = "internal/sandbox/sandboxtest", `{"`+part+`", `
		}
		if named++; !contains(t, "../"+place, what) {
			t.Errorf("%s is named, but is not in %s", word, place)
		}
	}
	if named < 60 {
		t.Errorf("only %d tests are named", named)
	}
}

// contains reports whether a Go file of a folder contains a text.
func contains(t *testing.T, folder, text string) bool {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(source), text)
	})
}
