package command

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite what docs/reference/state.md says of commands that wait")

// TestHeldCommands: each command that cannot be buffered says why it waits, and no other does, but for those that the door executes.
func TestHeldCommands(t *testing.T) {
	times := make(map[string]int)
	for _, h := range held {
		for _, name := range h.names {
			times[name]++
			spec := table[name]
			if spec == nil || spec.Implemented() && spec.Flags&Unbufferable == 0 {
				t.Errorf("%s is said to wait and does not", name)
			}
		}
	}
	for name, spec := range table {
		if waits := spec.Implemented() && spec.Flags&Unbufferable != 0; waits && times[name] != 1 || times[name] > 1 {
			t.Errorf("%s is said to wait %d times", name, times[name])
		}
	}
}

func TestHeld(t *testing.T) {
	for line, want := range map[string]string{
		"GET k":           "",
		"SORT k":          "",
		"SORT k BY w_*":   "SORT waits for its turn: it reads records that it does not name, which cannot be checked by versions",
		"KEYS *":          "KEYS waits for its turn: it reads records that it does not name, which cannot be checked by versions",
		"SRANDMEMBER s":   "SRANDMEMBER waits for its turn: it depends on chance, and done again it would do something else, so it cannot be buffered",
		"BLPOP k 0":       "BLPOP waits for its turn: it may wait for what others write, so it cannot be buffered",
		"GET k, FLUSHALL": "FLUSHALL waits for its turn: it deletes records that it does not name, so it cannot be buffered",
	} {
		var commands [][][]byte
		for command := range strings.SplitSeq(line, ", ") {
			var args [][]byte
			for word := range strings.FieldsSeq(command) {
				args = append(args, []byte(word))
			}
			commands = append(commands, args)
		}
		if s := newStep("", time.Now(), nil, commands); s.Held() != want || s.Holds() != (want != "") {
			t.Errorf("%s: %q", line, s.Held())
		}
	}
	if got := Held("publish"); got != "PUBLISH waits for its turn: whoever listens hears it at once, which cannot be undone" {
		t.Error(got)
	}
}

// TestDocumentedHeld holds the table in docs/reference/state.md against the code.
func TestDocumentedHeld(t *testing.T) {
	const file, begin, end = "../../../docs/reference/state.md", "<!-- held: written by `go test ./internal/state/command -run Documented -update` -->\n", "<!-- end of held -->"
	want := "\n| command | why it waits |\n| --- | --- |\n"
	for _, h := range held {
		names := make([]string, len(h.names))
		for i, name := range h.names {
			names[i] = "`" + strings.ToUpper(name) + "`"
		}
		want += fmt.Sprintf("| %s | %s |\n", strings.Join(names, " "), h.why)
	}
	want += "\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	listed, tail, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no place for the commands that wait", file)
	case *update:
		err = os.WriteFile(file, slices.Concat([]byte(head+begin+want+end), []byte(tail)), 0o644)
	case listed != want:
		t.Errorf("%s lists something else; run go test ./internal/state/command -run Documented -update\nthe code has:%s", file, want)
	}
	if err != nil {
		t.Error(err)
	}
}
