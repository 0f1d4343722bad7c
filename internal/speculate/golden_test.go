package speculate

import (
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// TestGolden replays the traces of testdata: each file is one story, each command an event, its output the actions
// that the machine answered with. Run with -rewrite to write them anew, and review the difference.
//
// Before `invoke`, `row` and `outcome` say what the memo table and the predictor know. Records are strings; the commands are
// get, set, incr, mget and del.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		s := newStory()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "story":
				s = newStory()
				return ""
			case "row":
				s.rows[rowKey(digest(word(t, d, "code")), word(t, d, "input"))] = readRow(t, d)
				return ""
			case "outcome":
				for range number(t, d, "times") {
					s.predictor.Learn(Outcome{
						Branch: Branch{digest(word(t, d, "program")), number(t, d, "place")}, Next: number(t, d, "next"),
						Value: json.RawMessage(word(t, d, "value")),
					})
				}
				return ""
			case "blame":
				for range number(t, d, "times") {
					s.predictor.Blame(Blame{Producer: digest(word(t, d, "producer")), Consumer: digest(word(t, d, "consumer")), Key: key(word(t, d, "key"))})
				}
				return ""
			case "invoke":
				return show(s.invoke(t, d))
			}
			return show(s.machine.Step(readEvent(t, d)))
		})
	})
}

// story is a machine with its tables.
type story struct {
	machine   *Machine
	rows      map[string]*forerun.Row
	predictor *Predictor
}

func newStory() *story {
	return &story{rows: make(map[string]*forerun.Row), predictor: NewPredictor()}
}

func (s *story) invoke(t *testing.T, d *datadriven.TestData) []Action {
	var options []Option
	if d.HasArg("mode") {
		mode, ok := ParseMode(word(t, d, "mode"))
		if !ok {
			d.Fatalf(t, "no mode")
		}
		options = append(options, Speculate(mode, s, s.predictor, strs{}))
	}
	if d.HasArg("depth") {
		options = append(options, Depth(number(t, d, "depth")))
	}
	var first []Action
	s.machine, first = New(word(t, d, "action"), json.RawMessage(word(t, d, "input")), options...)
	return first
}

func rowKey(code forerun.Digest, input string) string { return string(code[:]) + input }

// Find implements Memo.
func (s *story) Find(code forerun.Digest, input json.RawMessage) *forerun.Row {
	return s.rows[rowKey(code, string(input))]
}

func digest(name string) (d forerun.Digest) {
	if name == "" {
		return d
	}
	return sha256.Sum256([]byte(name))
}

func key(name string) forerun.Key { return forerun.Key{Name: name} }

// str is a record of these tests; nothing is "-".
type str string

func (s str) Absent() bool { return s == "-" }
func (s str) Size() int    { return len(s) }

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
	case "del":
		return !reads[0].Absent(), []Image{str("-")}
	}
	var values []string
	for _, r := range reads {
		values = append(values, string(r.(str)))
	}
	return strings.Join(values, " "), nil
}

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

// seen reads record@version.
func seen(t *testing.T, s string) forerun.Seen {
	name, version, _ := strings.Cut(s, "@")
	v, err := strconv.Atoi(version)
	if err != nil {
		t.Fatalf("%q is no record@version", s)
	}
	return forerun.Seen{Key: key(name), Version: forerun.Version(v)}
}

func list(d *datadriven.TestData, name string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return a.Vals
		}
	}
	return nil
}

func readEvent(t *testing.T, d *datadriven.TestData) Event {
	slot := SlotID(number(t, d, "slot"))
	op := OpID(number(t, d, "op"))
	switch d.Cmd {
	case "resolved":
		e := Resolved{Slot: slot, Code: digest(word(t, d, "code")), Input: json.RawMessage(word(t, d, "input"))}
		e.Pure, e.Cached, e.Alone = d.HasArg("pure"), d.HasArg("cached"), d.HasArg("alone")
		return e
	case "entered":
		e := Entered{Slot: slot, Program: readProgram(d.Input), Input: json.RawMessage(word(t, d, "input"))}
		if d.HasArg("code") {
			e.Code = digest(word(t, d, "code"))
		}
		return e
	case "output":
		return Output{Slot: slot, Result: forerun.Result{Value: json.RawMessage(word(t, d, "value"))}, Outside: d.HasArg("outside")}
	case "error":
		return Output{Slot: slot, Result: forerun.Failure(forerun.ApplicationError, word(t, d, "message"))}
	case "failed":
		return Failed{Slot: slot, Result: forerun.Failure(forerun.DeveloperError, word(t, d, "message"))}
	case "hold":
		return Hold{Slot: slot, Op: op}
	case "call":
		e := Call{Slot: slot, Op: op, Action: word(t, d, "action"), Input: json.RawMessage(word(t, d, "input"))}
		e.Code = digest(e.Action)
		return e
	case "cancelled":
		return Cancelled{Reason: word(t, d, "reason")}
	case "load":
		return LoadChanged{Depth: number(t, d, "depth")}
	}
	return readStateEvent(t, d, slot, op)
}

func readStateEvent(t *testing.T, d *datadriven.TestData, slot SlotID, op OpID) Event {
	switch d.Cmd {
	case "do":
		return readCommand(t, d, slot, op)
	case "fetched":
		e := Fetched{Slot: slot, Op: op}
		for _, r := range list(d, "records") {
			name, value, _ := strings.Cut(r, ":")
			s := seen(t, name)
			e.Records = append(e.Records, Record{Key: s.Key, Image: str(value), Version: s.Version})
		}
		return e
	case "done":
		e := Done{Slot: slot, Op: op, Exact: !d.HasArg("inexact")}
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

// readCommand reads the command that is the input: a Read, or a Write with what it depends on.
func readCommand(t *testing.T, d *datadriven.TestData, slot SlotID, op OpID) Event {
	words := strings.Fields(d.Input)
	var keys []forerun.Key
	switch words[0] {
	case "get", "mget":
		for _, name := range words[1:] {
			keys = append(keys, key(name))
		}
		return Read{Slot: slot, Op: op, Keys: keys, Command: words}
	case "set":
		return Write{Slot: slot, Op: op, Keys: []forerun.Key{key(words[1])}, Command: words}
	case "incr", "del":
		return Write{Slot: slot, Op: op, Keys: []forerun.Key{key(words[1])}, Reads: []forerun.Key{key(words[1])}, Command: words}
	}
	d.Fatalf(t, "unknown command %q", d.Input)
	return nil
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
