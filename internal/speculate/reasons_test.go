package speculate

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReasonsAreDocumented: each reason of the golden traces is in the tables of docs/reference/speculation.md, and each reason there is
// in the source.
func TestReasonsAreDocumented(t *testing.T) {
	documented := documentedReasons(t)
	if len(documented) < 40 {
		t.Fatalf("only %d reasons are documented", len(documented))
	}
	patterns := make([]*regexp.Regexp, len(documented))
	source := source(t, "../speculate", "../controller", "../worker", "../gateway", "../state")
	for i, reason := range documented {
		patterns[i] = patternOf(reason)
		if said := saidIn(reason); said == nil || !said.MatchString(source) {
			t.Errorf("nobody says %q", reason)
		}
	}
	for _, reason := range goldenReasons(t) {
		if !slices.ContainsFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(reason) }) {
			t.Errorf("%q is not documented", reason)
		}
	}
}

// filled matches the parts of a reason that are filled in when it is given.
var filled = regexp.MustCompile(`NAME|COMMAND|POST|1024|\.\.\.|\[?"key"\]?`)

// saidIn matches a line of source that says a reason: its parts, in their order. Shorter parts than 8 letters say nothing, and without
// any other it is nil.
func saidIn(reason string) *regexp.Regexp {
	var parts []string
	for _, part := range filled.Split(reason, -1) {
		if part = strings.TrimSpace(part); len(part) >= 8 {
			parts = append(parts, regexp.QuoteMeta(part))
		}
	}
	if parts == nil {
		return nil
	}
	return regexp.MustCompile(strings.Join(parts, ".*"))
}

// documentedReasons are the texts in code font of the tables.
func documentedReasons(t *testing.T) (reasons []string) {
	text, err := os.ReadFile("../../docs/reference/speculation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text2, _ := strings.Cut(string(text), "\n### Reasons\n")
	tables, _, _ := strings.Cut(text2, "\n### ")
	for line := range strings.SplitSeq(tables, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for i, part := range strings.Split(cells[1], "`") {
			if i%2 == 1 {
				reasons = append(reasons, part)
			}
		}
	}
	return reasons
}

// patternOf is the pattern of a documented reason.
func patternOf(reason string) *regexp.Regexp {
	p := regexp.QuoteMeta(reason)
	for from, to := range map[string]string{
		"NAME": `(\w+ #\d+|what ran in parallel)`, "COMMAND": `[A-Z]+`, `\.\.\.`: `.*`, `"key"`: `"[^"]*"( "[^"]*")*`, "1024": `\d+`,
	} {
		p = strings.ReplaceAll(p, from, to)
	}
	return regexp.MustCompile("^" + p + "$")
}

var (
	saidWhy   = regexp.MustCompile(`(?m)^(?:stall \d+, operation \d+: |squash \d+: |skip \d+: .*}, |launch .*, (?:speculative|in its turn): )(.*)$`)
	cancelled = regexp.MustCompile(`(?m)^cancelled reason=\(?([^)\n]*)`)
)

// goldenReasons are the reasons of the traces, but for reasons that a story itself gives.
func goldenReasons(t *testing.T) (reasons []string) {
	given := []string{"it waits for its turn: it cannot be undone"} // no reason was given
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range cancelled.FindAllSubmatch(text, -1) {
			given = append(given, string(m[1]))
		}
		for _, m := range saidWhy.FindAllSubmatch(text, -1) {
			if why := string(m[1]); !slices.Contains(given, why) {
				reasons = append(reasons, why)
			}
		}
		return err
	})
	if err != nil || len(reasons) < 200 {
		t.Fatalf("%d reasons, %v", len(reasons), err)
	}
	return reasons
}

// source is the code of packages, without tests.
func source(t *testing.T, folders ...string) string {
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.WriteString(strings.ReplaceAll(string(text), `\"`, `"`))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
