package controller

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reasonSaid is a line that says why something does not run ahead.
var reasonSaid = regexp.MustCompile(`(?m)(?:return|why =|off =) .*"([a-z][^" ]* [^"]*)"$`)

// TestReasonsAreDocumented: each reason that the machine is given is in the tables of docs/reference/speculation.md; speculate's test looks for its own.
func TestReasonsAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/speculation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(text), "\n### Reasons\n")
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	said := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reasonSaid.FindAllSubmatch(source, -1) {
			if said++; !strings.Contains(tables, "`"+string(m[1])+"`") {
				t.Errorf("%s: %q is not documented", file, m[1])
			}
		}
	}
	if said < 11 {
		t.Errorf("only %d reasons were found", said)
	}
}
