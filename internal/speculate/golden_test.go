package speculate

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// TestGolden replays the traces of testdata. Each file begins with a description. Each command is an event or an order,
// and its output is the machine's answer. Run with -rewrite to write the outputs again, and review the difference.
//
// Records are strings; the commands are get, set, incr, mget and del. `program`, `action`, `rows`, `outcome`, `blame`
// and `store` give a story its knowledge before the invocation. Lessons of committed slots are learnt automatically, and
// actions are resolved automatically. With a `store`, fetches and the operations of heads are performed at once too; a
// promotion waits for `apply`. `buffer` draws the columns. `story` begins a new story.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "story" {
				s = newStory()
				return ""
			}
			if s.learns(t, d) {
				return ""
			}
			switch d.Cmd {
			case "invoke":
				return s.carryOut(s.invoke(t, d))
			case "buffer":
				return s.drawBuffer()
			case "others":
				return s.others(t, d)
			case "apply":
				return s.apply()
			}
			return s.carryOut(s.machine.Step(s.readEvent(t, d)))
		})
	})
}

// TestEveryRuleHasATrace looks for the files of the figures, the rules, the counterexamples and the data buffer.
func TestEveryRuleHasATrace(t *testing.T) {
	for _, rule := range []string{"raw_in_order", "raw_out_of_order", "raw_scan_ends", "war", "waw", "stall_after_three"} {
		if _, err := os.Stat("testdata/buffer/" + rule); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		pattern  string
		from, to int
	}{{"figures/%02d_*", 5, 6}, {"figures/%02d_*", 8, 10}, {"rules/R%02d_*", 1, 12}, {"counterexamples/%02d_*", 1, 16}} {
		for n := c.from; n <= c.to; n++ {
			pattern := fmt.Sprintf("testdata/"+c.pattern, n)
			if files, err := filepath.Glob(pattern); err != nil || len(files) == 0 {
				t.Errorf("there is no %s: %v", pattern, err)
			}
		}
	}
}

func digest(name string) (d forerun.Digest) {
	if name == "" {
		return d
	}
	return sha256.Sum256([]byte(name))
}

func key(name string) forerun.Key { return forerun.Key{Name: name} }

// str is a record of these tests; nothing is "-", and one is more than a column has room for.
type str string

func (s str) Absent() bool { return s == "-" }

func (s str) Size() int {
	if s == "64MiB" {
		return maxColumn + 1
	}
	return len(s)
}

// strs executes commands on them.
type strs struct{}

func (strs) Execute(command any, reads []Image) (reply any, writes []Image) {
	words := command.([]string)
	switch words[0] {
	case "set":
		return "OK", []Image{str(words[2])}
	case "incr":
		n := 0
		if !reads[0].Absent() {
			var err error
			if n, err = strconv.Atoi(string(reads[0].(str))); err != nil {
				return "not a number", nil
			}
		}
		n++
		return n, []Image{str(strconv.Itoa(n))}
	case "lcs":
		return Later{Why: forerun.NewReason(forerun.ReasonTakesLong, forerun.Detail{Command: "LCS"})}, nil
	case "del":
		return !reads[0].Absent(), []Image{str("-")}
	}
	var values []string
	for _, r := range reads {
		values = append(values, string(r.(str)))
	}
	return strings.Join(values, " "), nil
}

// Over is for records that were set to live for a while.
func (strs) Over(i Image) bool { return i.(str) == "brief" }

func readRow(t *testing.T, d *datadriven.TestData) *forerun.Row {
	r := &forerun.Row{Output: json.RawMessage(word(t, d, "output")), Exact: d.HasArg("exact"), Effects: d.HasArg("effects")}
	for _, read := range list(d, "reads") {
		r.Reads = append(r.Reads, seen(t, read))
	}
	for _, callee := range list(d, "callees") {
		action, input, _ := strings.Cut(callee, ":")
		r.Callees = append(r.Callees, forerun.Callee{Action: action, Input: json.RawMessage(input), Code: digest(action)})
	}
	return r
}

// inexact is the name of a command whose reply depends on more than versions.
func inexact(d *datadriven.TestData) string {
	if d.HasArg("inexact") {
		return "inexact"
	}
	return ""
}

func readReach(d *datadriven.TestData) forerun.Reach {
	switch {
	case d.HasArg("outside"):
		return forerun.Outside
	case d.HasArg("hosts"):
		return forerun.ReadHosts
	}
	return forerun.Inside
}

func list(d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

func (s *story) readEvent(t *testing.T, d *datadriven.TestData) Event {
	slot := SlotID(number(t, d, "slot"))
	op := OpID(number(t, d, "op"))
	if !d.HasArg("op") && (d.Cmd == "do" || d.Cmd == "call" || d.Cmd == "hold") {
		s.ops[slot]++
		op = s.ops[slot]
	}
	switch d.Cmd {
	case "resolved":
		e := Resolved{Slot: slot, Code: digest(word(t, d, "code")), Input: json.RawMessage(word(t, d, "input"))}
		e.Cached, e.Open, e.Stray = d.HasArg("cached"), d.HasArg("open"), d.HasArg("stray")
		if d.HasArg("alone") {
			e.Alone, e.InTurn = nonSpeculative, true
		}
		return e
	case "entered":
		e := Entered{Slot: slot, Program: readProgram(d.Input), Input: json.RawMessage(word(t, d, "input"))}
		if d.HasArg("code") {
			e.Code = digest(word(t, d, "code"))
		}
		return e
	case "output":
		return Output{Slot: slot, Result: forerun.Result{Value: json.RawMessage(word(t, d, "value"))}, Reach: readReach(d), Remembers: d.HasArg("remembers")}
	case "error":
		return Output{Slot: slot, Result: forerun.Failure(forerun.ApplicationError, word(t, d, "message"))}
	case "failed":
		return Failed{Slot: slot, Result: forerun.Failure(forerun.DeveloperError, word(t, d, "message"))}
	case "hold":
		h := Hold{Slot: slot, Op: op, First: d.HasArg("first")}
		if d.HasArg("why") {
			h.Why = forerun.NewReason(forerun.ReasonCode(word(t, d, "why")), forerun.Detail{Command: word(t, d, "command")})
		}
		return h
	case "withdrawn":
		return Withdrawn{Slot: slot, Op: op}
	case "call":
		e := Call{Slot: slot, Op: op, Action: word(t, d, "action"), Input: json.RawMessage(word(t, d, "input"))}
		e.Code, e.Known = s.action(e.Action).Code, d.HasArg("known")
		return e
	case "cancelled":
		return Cancelled{Error: word(t, d, "reason")}
	case "load":
		return LoadChanged{Depth: number(t, d, "depth")}
	}
	e := readStateEvent(t, d, slot, op)
	if d.Cmd == "do" {
		s.asked[asked{slot, op}] = question{e, d.HasArg("slow")}
	}
	return e
}

func readStateEvent(t *testing.T, d *datadriven.TestData, slot SlotID, op OpID) Event {
	switch d.Cmd {
	case "do":
		return readWords(t, d, d.Input, slot, op)
	case "fetched":
		e := Fetched{Slot: slot, Op: op}
		for _, r := range list(d, "records") {
			e.Records = append(e.Records, readRecord(t, r))
		}
		return e
	case "done":
		e := Done{Slot: slot, Op: op, Exact: !d.HasArg("inexact"), Refused: d.HasArg("refused")}
		for _, r := range list(d, "reads") {
			e.Reads = append(e.Reads, seen(t, r))
		}
		for _, w := range list(d, "wrote") {
			e.Wrote = append(e.Wrote, key(w))
		}
		return e
	case "checked":
		e := Checked{Slot: slot, Current: !d.HasArg("updated")}
		for _, v := range list(d, "versions") {
			e.Versions = append(e.Versions, seen(t, "@"+v).Version)
		}
		return e
	case "awaited":
		return Awaited{Slot: slot, Number: uint64(number(t, d, "number")), Waited: d.HasArg("waited"), Look: d.HasArg("look")}
	case "renewed":
		return Renewed{Slots: slots(t, d)}
	case "promoted":
		return Promoted{Slots: slots(t, d), Version: forerun.Version(number(t, d, "version"))}
	case "conflict":
		e := Conflict{Slots: slots(t, d)}
		for _, k := range list(d, "keys") {
			e.Keys = append(e.Keys, key(k))
		}
		return e
	}
	d.Fatalf(t, "unknown event %q", d.Cmd)
	return nil
}

// readWords reads a command: a Read, or a Write with its dependences.
func readWords(t *testing.T, d *datadriven.TestData, line string, slot SlotID, op OpID) Event {
	words := strings.Fields(line)
	switch words[0] {
	case "get", "mget", "lcs":
		r := Read{Slot: slot, Op: op, Command: words, Inexact: inexact(d)}
		for _, name := range words[1:] {
			r.Keys = append(r.Keys, key(name))
		}
		return r
	case "set", "incr", "del":
		w := writeOf(words)
		w.Slot, w.Op, w.Inexact = slot, op, inexact(d)
		return w
	}
	d.Fatalf(t, "unknown command %q", line)
	return nil
}

func writeOf(words []string) Write {
	w := Write{Keys: []forerun.Key{key(words[1])}, Command: words}
	if words[0] != "set" {
		w.Reads = w.Keys
	}
	return w
}

func slots(t *testing.T, d *datadriven.TestData) (ids []SlotID) {
	for _, s := range list(d, "slots") {
		n, err := strconv.Atoi(s)
		if err != nil {
			d.Fatalf(t, "%q is no slot", s)
		}
		ids = append(ids, SlotID(n))
	}
	return ids
}

func word(t *testing.T, d *datadriven.TestData, key string) string {
	var v string
	d.ScanArgs(t, key, &v)
	return v
}

func number(t *testing.T, d *datadriven.TestData, key string) (n int) {
	if d.HasArg(key) {
		d.ScanArgs(t, key, &n)
	}
	return n
}
