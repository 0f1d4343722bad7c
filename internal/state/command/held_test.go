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
		"SORT k BY w_*":   "reads_unnamed(SORT)",
		"KEYS *":          "reads_unnamed(KEYS)",
		"SRANDMEMBER s":   "chance(SRANDMEMBER)",
		"BLPOP k 0":       "may_block(BLPOP)",
		"EVAL x 1 k":      "",
		"EVAL x 0":        "reads_unnamed(EVAL)",
		"EVAL_RO x 0":     "",
		"GET k, FLUSHALL": "deletes_unnamed(FLUSHALL)",
	} {
		var commands [][][]byte
		for command := range strings.SplitSeq(line, ", ") {
			var args [][]byte
			for word := range strings.FieldsSeq(command) {
				args = append(args, []byte(word))
			}
			commands = append(commands, args)
		}
		if s := newStep("", time.Now(), nil, commands); s.Held().String() != want || s.Holds() != (want != "") {
			t.Errorf("%s: %s", line, s.Held().String())
		}
	}
	if got := Held("publish").String(); got != "publishes(PUBLISH)" {
		t.Error(got)
	}
}
