// Package doctest holds parts of documents to the code that they describe. Only tests import it.
//
// A part begins with a comment in the document, <!-- NAME: ... -->, and ends with <!-- end of NAME -->.
package doctest

import (
	"os"
	"strings"
	"testing"
)

// Part checks that a document's part of a name has a text, which begins and ends with an empty line there.
// With update it writes the text instead.
func Part(t *testing.T, file, name, want string, update bool) {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(source)
	begin := strings.Index(text, "<!-- "+name+":")
	end := strings.Index(text, "<!-- end of "+name+" -->")
	if begin < 0 || end < begin {
		t.Fatalf("%s has no part %s", file, name)
	}
	begin += strings.Index(text[begin:], "\n") + 1
	want = "\n" + strings.TrimRight(want, "\n") + "\n\n"
	switch {
	case text[begin:end] == want:
	case update:
		if err := os.WriteFile(file, []byte(text[:begin]+want+text[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another part %s than the code; run the test with -update\nthe code has:\n%s", file, name, want)
	}
}
