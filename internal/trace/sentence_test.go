package trace

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

func TestSentence(t *testing.T) {
	a, b := forerun.SlotName{Number: 1, Action: "a"}, forerun.SlotName{Number: 2, Action: "b (inline 3)"}
	stale := &forerun.Reason{Code: forerun.ReasonStaleRead, Slot: b, Record: `{slot} \xff`}
	again := forerun.NewReason(forerun.ReasonRunsAgain, forerun.Detail{Of: stale})
	again.Slot = a
	failed := forerun.NewReason(forerun.ReasonRunsAgain, forerun.Detail{Of: forerun.Because(forerun.ReasonFailedEarly)})
	for _, c := range []struct {
		reason *forerun.Reason
		want   string
	}{
		{nil, ""},
		{forerun.Because(forerun.ReasonPure), "a pure function, and its output on this input is known"},
		{&forerun.Reason{Code: forerun.ReasonKnownOutput, Slot: a}, "a #1 gave this on the same input before"},
		{stale, `it had read "{slot} \xff" before b (inline 3) #2 wrote it`},
		{again, `a #1 runs again: it had read "{slot} \xff" before b (inline 3) #2 wrote it`},
		{failed, "what ran in parallel runs again: it failed before its turn"},
		{forerun.Because(forerun.ReasonFailedEarly), "it failed before its turn: it runs again in its turn"},
		{forerun.NewReason(forerun.ReasonManyRequests, forerun.Detail{Count: 1024}), "it asked for more than 1024 things that must wait: it runs again in its turn"},
		{forerun.NewReason(forerun.ReasonConflict, forerun.Detail{Records: []string{"k"}}), `what it read was written by others: ["k"]`},
		{forerun.NewReason(forerun.ReasonConflict, forerun.Detail{Records: []string{"k", "l", "m"}, Count: 2}), `what it read was written by others: ["k" "l" "m"] and 2 more`},
		{forerun.NewReason(forerun.ReasonMayBlock, forerun.Detail{Command: "BLPOP"}), "BLPOP waits for its turn: it may wait for what others write, so it cannot be buffered"},
		{forerun.NewReason(forerun.ReasonAPIRead, forerun.Detail{Command: "GET"}), "a GET of the API waits for its turn: what it tells may be something else by then"},
		{forerun.NewReason(forerun.ReasonStopped, forerun.Detail{Text: "The invocation was ended: {slot}."}), "The invocation was ended: {slot}."},
		{forerun.NewReason(forerun.ReasonText, forerun.Detail{Text: `lost #9 wrote "k #1"`}), `lost #9 wrote "k #1"`},
		{&forerun.Reason{Code: "of_tomorrow", Slot: a}, "of_tomorrow(a #1)"},
	} {
		if got := Sentence(c.reason); got != c.want {
			t.Errorf("%v: %s; want %s", c.reason, got, c.want)
		}
	}
}

// codes are the codes of internal/forerun/reason.go, by the names of their constants.
func codes(t *testing.T) map[string]forerun.ReasonCode {
	text, err := os.ReadFile("../forerun/reason.go")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]forerun.ReasonCode)
	for _, m := range regexp.MustCompile(`(?m)^(?:\t|const )(Reason\w+)\s+ReasonCode = "(\w+)"`).FindAllSubmatch(text, -1) {
		found[string(m[1])] = forerun.ReasonCode(m[2])
	}
	if len(found) < 80 {
		t.Fatalf("only %d codes are found", len(found))
	}
	return found
}

// TestEveryCodeHasASentence, and each code is given somewhere.
func TestEveryCodeHasASentence(t *testing.T) {
	source := source(t, "../speculate", "../controller", "../worker", "../gateway", "../state")
	known := codes(t)
	for name, code := range known {
		if _, ok := sentences[code]; !ok && code != forerun.ReasonText {
			t.Errorf("there is no sentence of %s", code)
		}
		if code != forerun.ReasonText && !regexp.MustCompile(`\bforerun\.`+name+`\b`).MatchString(source) {
			t.Errorf("no code gives %s", code)
		}
	}
	if len(sentences) != len(known)-1 {
		t.Errorf("there are %d sentences of %d codes", len(sentences), len(known)-1)
	}
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
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// TestReasonsAreDocumented: the tables of docs/reference/speculation.md and cache.md have each code in a row with its sentence, and
// nothing else.
func TestReasonsAreDocumented(t *testing.T) {
	tables := ""
	for _, page := range []string{"speculation.md", "cache.md"} {
		text, err := os.ReadFile("../../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n### Reasons\n")
		reasons, _, _ := strings.Cut(rest, "\n### ")
		tables += reasons
	}
	undocumented := maps.Clone(sentences)
	delete(undocumented, forerun.ReasonIrreversible) // every request says more
	for line := range strings.Lines(tables) {
		cells := strings.Split(line, " | ")
		if len(cells) < 3 || !strings.HasPrefix(cells[1], "`") {
			continue
		}
		patterns, listed := inCode(cells[0]), inCode(cells[1])
		for _, code := range listed {
			template, ok := sentences[forerun.ReasonCode(code)]
			if !ok || code != string(forerun.ReasonStopped) && !slices.ContainsFunc(patterns, func(p string) bool { return isSaid(p, template) }) {
				t.Errorf("%s is not said in its row: %q", code, patterns)
			}
			delete(undocumented, forerun.ReasonCode(code))
		}
		for _, p := range patterns {
			if !slices.ContainsFunc(listed, func(code string) bool { return isSaid(p, sentences[forerun.ReasonCode(code)]) }) {
				t.Errorf("no code of its row says %q", p)
			}
		}
	}
	for code := range undocumented {
		t.Errorf("%s is not documented", code)
	}
}

// inCode are the parts of a text in code font.
func inCode(text string) (parts []string) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			parts = append(parts, part)
		}
	}
	return parts
}

// isSaid reports whether a sentence is one that a document tells as "NAME gave this ...".
func isSaid(documented, template string) bool {
	for from, to := range map[string]string{
		"{slot}": "NAME", "{record}": `"key"`, "{records}": `["key"]`, "{command}": "COMMAND", "{count}": "1024", "{of}": "...", "{text}": "NAME",
	} {
		template = strings.ReplaceAll(template, from, to)
	}
	documented = strings.ReplaceAll(documented, "POST", "COMMAND")
	begin, open := strings.CutSuffix(documented, "...")
	return template == documented || open && strings.HasPrefix(template, begin)
}
