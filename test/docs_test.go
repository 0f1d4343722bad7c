package test

import (
	"flag"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/test/server"
	"forerun.dev/forerun/tools/doctest"
)

var update = flag.Bool("update", false, "rewrite what the documents say of the server")

// TestDocumentedCommands holds the list in docs/reference/state.md against what the server says that it has.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	r := redisClient(start(t, server.Options{Redis: true}))
	defer r.Close()
	commands, err := r.Do(t.Context(), "COMMAND", "LIST").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(commands)
	want := "    " + strings.Join(wrap(commands, 110), "\n    ")
	doctest.Part(t, "../docs/reference/state.md", "commands", want, *update)
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

// TestDocumentedLinks: a link from one document to another, or to a heading of it, leads there.
func TestDocumentedLinks(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"../*.md", "../docs/*.md", "../docs/*/*.md", "../examples/*/*.md", "../sdk/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	fences := regexp.MustCompile("(?s)```.*?```")
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	followed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			followed++
			name, heading, _ := strings.Cut(link[1], "#")
			target := file
			if name != "" {
				target = filepath.Join(filepath.Dir(file), name)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", file, link[1], err)
			} else if heading != "" && !slices.Contains(headings(t, target), heading) {
				t.Errorf("%s links to %s, where there is no such heading", file, link[1])
			}
		}
	}
	if followed < 60 {
		t.Errorf("only %d links are there", followed)
	}
}

// TestServedLinks: each document that the server serves links to documents that it serves, or to other servers.
func TestServedLinks(t *testing.T) {
	t.Parallel()
	s := start(t, server.Options{})
	links := regexp.MustCompile(`\]\(([^)\s#]+)[^)]*\)`)
	followed := 0
	get := func(path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, answer.Status, err)
		}
		return string(text)
	}
	for _, document := range regexp.MustCompile(`href="(/docs/[^"]+)"`).FindAllStringSubmatch(get("/"), -1) {
		for _, link := range links.FindAllStringSubmatch(get(document[1]), -1) {
			if !strings.Contains(link[1], "://") {
				followed++
				get(path.Join(path.Dir(document[1]), link[1]))
			}
		}
	}
	if followed < 40 {
		t.Errorf("only %d links are there", followed)
	}
}

// headings are the anchors of a document's headings, as GitHub makes them.
func headings(t *testing.T, file string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	left := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(left.ReplaceAllString(strings.ToLower(heading[1]), ""), " ", "-"))
	}
	return all
}
