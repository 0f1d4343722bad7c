// Package words holds the texts that users read in the program, which are its
// string literals, to the words of the field.
package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// avoided are words that only this project had for something, and forms that readers stumble over, with what to write.
var avoided = []struct{ pattern, write string }{
	{`\bahead\b`, "speculative, speculation, or before its turn"},
	{`\b(box|boxes|cells?)\b`, "sandbox"},
	{`\btolls?\b`, "cost"},
	{`\bvain\b`, "wasted, or squashed"},
	{`\bhungry\b`, "waiting"},
	{`\b(is|are|was|were) no\b`, `"is not a"`},
	{`\b(nobody|somebody)\b`, "the actor: the client, the caller, the server"},
	{`\b(that|those) of\b`, "the thing again"},
	{`\b(anew|likewise|of late)\b`, "again, also, recently"},
}

// fine are phrases that an avoided form is part of.
var fine = strings.NewReplacer(
	"there is no", "", "There is no", "", "there are no", "", "There are no", "", "there was no", "", "there were no", "",
	"is no longer", "", "are no longer", "", "was no longer", "", "were no longer", "",
)

// allowed are texts that have such a word for a reason.
var allowed = map[string]string{}

// rooms are the folders whose texts are held; unread are the ones below them that users never see.
var (
	rooms  = []string{"cmd", "internal"}
	unread = []string{
		"internal/speculate/simulation", "internal/speculate/oracle", // tools of tests
		"internal/sandbox/sandboxtest", "internal/state/statetest",
	}
)

func TestWordsOfTheField(t *testing.T) {
	patterns := make([]*regexp.Regexp, len(avoided))
	for i, a := range avoided {
		patterns[i] = regexp.MustCompile(`(?i)` + a.pattern)
	}
	count, used := 0, make(map[string]bool)
	for _, room := range rooms {
		eachLiteral(t, filepath.Join("../..", room), func(at token.Position, text string) {
			if !strings.Contains(text, " ") {
				return // a name, not a text
			}
			count++
			if allowed[text] != "" {
				used[text] = true
				return
			}
			for i, p := range patterns {
				if word := p.FindString(fine.Replace(text)); word != "" {
					t.Errorf("%s: %q in %q: write %s", at, word, text, avoided[i].write)
				}
			}
		})
	}
	if count < 1000 {
		t.Errorf("only %d texts were found", count)
	}
	for text := range allowed {
		if !used[text] {
			t.Errorf("%q is allowed and not there", text)
		}
	}
}

// eachLiteral visits the string literals below a folder, without imports, tags and tests.
func eachLiteral(t *testing.T, folder string, visit func(token.Position, string)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && leftOut(path):
			return filepath.SkipDir
		case entry.IsDir(), filepath.Ext(path) != ".go", strings.HasSuffix(path, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				n.Tag = nil
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					visit(files.Position(n.Pos()), text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func leftOut(path string) bool {
	for _, folder := range unread {
		if path == filepath.Join("../..", folder) {
			return true
		}
	}
	return false
}
