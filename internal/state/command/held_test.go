package command

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHeldCommands: each command that cannot be buffered says why it waits, and no other does, but for those that the door executes.
func TestHeldCommands(t *testing.T) {
	times := make(map[string]int)
	for _, h := range held {
		for _, name := range h.names {
			times[name]++
			first, sub, _ := strings.Cut(name, " ")
			spec := table[first]
			if sub != "" && !slices.Contains(spec.Subcommands(), sub) {
				t.Errorf("%s is said to wait and is not there", name)
			}
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
