package speculate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// story is a machine with its tables, and the world that it runs in.
type story struct {
	machine   *Machine
	rows      map[string]*forerun.Row
	predictor *Predictor
	programs  map[string]table
	actions   map[string]Resolved // that are not plain functions, by name
	ops       map[SlotID]OpID     // that were given out
	asked     map[asked]question
	inFlight  []Promote
	clock     int  // seconds
	equals    bool // there are equal executions: events tell whether slots wait for them

	store   map[forerun.Key]Record // nil: events give the store's answers
	version forerun.Version
}

type asked struct {
	slot SlotID
	op   OpID
}

// question is a Read or a Write. A slow one is done in the store when an event says so.
type question struct {
	event Event
	slow  bool
}

func newStory() *story {
	return &story{
		rows: make(map[string]*forerun.Row), predictor: NewPredictor(), programs: make(map[string]table),
		actions: make(map[string]Resolved),
	}
}

// learns reads a story's knowledge before an invocation; ok is false for anything else.
func (s *story) learns(t *testing.T, d *datadriven.TestData) (ok bool) {
	switch d.Cmd {
	case "program":
		s.programs[word(t, d, "name")] = readProgram(d.Input)
	case "action":
		s.actions[word(t, d, "name")] = s.readAction(t, d)
	case "row":
		s.rows[rowKey(digest(word(t, d, "code")), word(t, d, "input"))] = readRow(t, d)
	case "rows":
		for _, line := range strings.Split(d.Input, "\n") {
			of := lineOf(t, d, line)
			s.rows[rowKey(s.action(of.Cmd).Code, word(t, of, "input"))] = readRow(t, of)
		}
	case "outcome":
		for range number(t, d, "times") {
			s.predictor.Learn(readOutcome(t, d))
		}
	case "blame":
		for range number(t, d, "times") {
			s.predictor.Blame(readBlame(t, d))
		}
	case "stalled":
		for range number(t, d, "times") {
			b := readBlame(t, d)
			s.predictor.spend(blame{b.Producer, b.Consumer, b.Key, b.Others})
		}
	case "trusted":
		for range number(t, d, "times") {
			b := readBlame(t, d)
			s.predictor.trust(blame{b.Producer, b.Consumer, b.Key, b.Others})
		}
	case "clock":
		s.clock = number(t, d, "at")
	case "store":
		s.store = make(map[forerun.Key]Record)
		for _, record := range strings.Fields(d.Input) {
			r := readRecord(t, record)
			s.store[r.Key] = r
			s.version = max(s.version, r.Version)
		}
	default:
		return false
	}
	return true
}

func novelty(d *datadriven.TestData) Novelty {
	switch {
	case d.HasArg("unseen"):
		return Unseen
	case d.HasArg("seen"):
		return Seen
	}
	return Unasked
}

// readOutcome reads which way a branch went, after a walk by the places of path.
func readOutcome(t *testing.T, d *datadriven.TestData) Outcome {
	o := Outcome{
		Branch: Branch{Program: digest(word(t, d, "program")), Place: number(t, d, "place"), Input: novelty(d)}, Path: firstPath,
		Next: number(t, d, "next"), Value: json.RawMessage(word(t, d, "value")), Likely: 0.5 + DefaultBand,
	}
	for _, text := range list(d, "path") {
		place, err := strconv.Atoi(text)
		if err != nil {
			d.Fatalf(t, "%q is no place", text)
		}
		o.Path = mixPath(o.Path, place)
	}
	return o
}

func readBlame(t *testing.T, d *datadriven.TestData) Blame {
	b := Blame{Consumer: digest(word(t, d, "consumer")), Key: key(word(t, d, "key")), Others: d.HasArg("others")}
	if d.HasArg("producer") {
		b.Producer = digest(word(t, d, "producer"))
	}
	return b
}

// lineOf reads a line of a command's input like a command of its own.
func lineOf(t *testing.T, d *datadriven.TestData, line string) *datadriven.TestData {
	cmd, args, err := datadriven.ParseLine(line)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return &datadriven.TestData{Pos: d.Pos, Cmd: cmd, CmdArgs: args}
}

// nonSpeculative is why an action waits for its turn.
var nonSpeculative = forerun.Because(forerun.ReasonNonSpeculative)

// readAction reads the kind of an action, beside a name. A late one is not resolved before an event says so.
func (s *story) readAction(t *testing.T, d *datadriven.TestData) Resolved {
	a := Resolved{Code: digest(word(t, d, "name")), Cached: d.HasArg("cached"), Open: d.HasArg("open"), Stray: d.HasArg("stray")}
	if d.HasArg("alone") {
		a.Alone, a.InTurn = nonSpeculative, true
	}
	if d.HasArg("code") {
		a.Code = digest(word(t, d, "code"))
	}
	if d.HasArg("ttl") {
		a.Until = time.Unix(int64(s.clock+number(t, d, "ttl")), 0)
	}
	if d.HasArg("late") {
		a.Slot = None
	}
	return a
}

func (s *story) action(name string) Resolved {
	if a, ok := s.actions[name]; ok {
		return a
	}
	return Resolved{Code: digest(name)}
}

func (s *story) invoke(t *testing.T, d *datadriven.TestData) []Action {
	s.ops, s.asked, s.inFlight = make(map[SlotID]OpID), make(map[asked]question), nil
	var options []Option
	if d.HasArg("mode") {
		mode, ok := ParseMode(word(t, d, "mode"))
		if !ok {
			d.Fatalf(t, "no mode")
		}
		options = append(options, Speculate(mode, s, s.predictor, strs{}))
	}
	if d.HasArg("mode") || d.HasArg("cache") {
		options = append(options, Cache(s, d.HasArg("bypass")), Now(func() time.Time { return time.Unix(int64(s.clock), 0) }))
	}
	if d.HasArg("rehearse") {
		options = append(options, Rehearse())
	}
	s.equals = d.HasArg("equals")
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

// carryOut carries out the machine's actions, as far as the story can, and shows them.
func (s *story) carryOut(actions []Action) string {
	text := ""
	var events []Event
	for _, a := range actions {
		line := describe(a) + "\n"
		switch a := a.(type) {
		case Resolve:
			if e := s.resolve(a); e != nil {
				events = append(events, e)
				line = ""
			}
		case Await:
			if !s.equals {
				events = append(events, Awaited{Slot: a.Slot})
				line = ""
			}
		case Fetch:
			if s.store != nil {
				f := s.fetch(a)
				events = append(events, f)
				line = fmt.Sprintf("%d reads%s from the store\n", a.Slot, recordNames(f.Records))
			}
		case Reply:
			if q := s.asked[asked{a.Slot, a.Op}]; s.store != nil && a.Direct && !q.slow && q.event != nil {
				e, reply := s.direct(q.event)
				events = append(events, e)
				line = fmt.Sprintf("%s: %v\n", describe(a), reply)
			}
		case Promote:
			if len(a.Expect) > 0 || len(a.Commands) > 0 {
				s.inFlight = append(s.inFlight, a)
			}
		case Learn:
			s.learn(a.Lesson)
		case Blame:
			s.predictor.Blame(a)
		}
		text += line
	}
	if text == "" && len(events) == 0 {
		return "nothing\n"
	}
	for _, e := range events {
		if more := s.carryOut(s.machine.Step(e)); more != "nothing\n" || text == "" && len(events) == 1 {
			text += more
		}
	}
	return text
}

func (s *story) resolve(a Resolve) Event {
	what := s.action(a.Action)
	if what.Slot == None {
		return nil
	}
	if p, ok := s.programs[a.Action]; ok {
		return Entered{Slot: a.Slot, Program: p, Code: what.Code, Input: a.Input}
	}
	what.Slot, what.Input = a.Slot, a.Input
	return what
}

func (s *story) learn(l *Lesson) {
	if l == nil {
		return
	}
	if l.Row != nil {
		s.rows[rowKey(l.Code, string(l.Input))] = l.Row
	}
	if l.Outcome != nil {
		s.predictor.Learn(*l.Outcome)
	}
}

// record is a record in the store.
func (s *story) record(key forerun.Key) Record {
	if r, ok := s.store[key]; ok {
		return r
	}
	return Record{Key: key, Image: str("-")}
}

func (s *story) fetch(a Fetch) Fetched {
	f := Fetched{Slot: a.Slot, Op: a.Op}
	for _, key := range a.Keys {
		f.Records = append(f.Records, s.record(key))
	}
	return f
}

// direct carries out a head's request in the store.
func (s *story) direct(q Event) (done Done, reply any) {
	switch q := q.(type) {
	case Read:
		done = Done{Slot: q.Slot, Op: q.Op, Exact: true}
		reply, done.Reads, _ = s.execute(q.Command, q.Keys, nil)
	case Write:
		s.version++
		done = Done{Slot: q.Slot, Op: q.Op, Exact: true}
		reply, done.Reads, done.Wrote = s.execute(q.Command, q.Reads, q.Keys)
	}
	return done, reply
}

// execute runs a command on the store; its writes get the story's version.
func (s *story) execute(command any, reads, writes []forerun.Key) (reply any, seen []forerun.Seen, wrote []forerun.Key) {
	var images []Image
	for _, key := range reads {
		r := s.record(key)
		images = append(images, r.Image)
		seen = append(seen, forerun.Seen{Key: key, Version: r.Version})
	}
	reply, made := strs{}.Execute(command, images)
	for i, image := range made {
		s.store[writes[i]] = Record{Key: writes[i], Image: image, Version: s.version}
		if image.Absent() {
			delete(s.store, writes[i])
		}
		wrote = append(wrote, writes[i])
	}
	return reply, seen, wrote
}

// others runs commands of another client on the store.
func (s *story) others(t *testing.T, d *datadriven.TestData) string {
	for _, line := range strings.Split(d.Input, "\n") {
		s.version++
		if w, ok := readWords(t, d, line, 0, 0).(Write); ok {
			s.execute(w.Command, w.Reads, w.Keys)
		}
	}
	return s.drawStore()
}

// apply has the store decide on the first promotion that is under way.
func (s *story) apply() string {
	p := s.inFlight[0]
	s.inFlight = s.inFlight[1:]
	var changed []forerun.Key
	for _, seen := range p.Expect {
		if s.record(seen.Key).Version != seen.Version {
			changed = append(changed, seen.Key)
		}
	}
	if changed != nil {
		return "refused: others wrote " + keyNames(changed) + "\n" + s.carryOut(s.machine.Step(Conflict{Slots: p.Slots, Keys: changed}))
	}
	s.version++
	for _, command := range p.Commands {
		w := writeOf(command.([]string))
		s.execute(command, w.Reads, w.Keys)
	}
	return s.drawStore() + strings.TrimPrefix(s.carryOut(s.machine.Step(Promoted{Slots: p.Slots, Version: s.version})), "nothing\n")
}

func (s *story) drawStore() string {
	var records []Record
	for _, r := range s.store {
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Key.Name, b.Key.Name) })
	return "the store has" + recordNames(records) + "\n"
}

func recordNames(records []Record) (text string) {
	for _, r := range records {
		text += fmt.Sprintf(" %s@%d:%v", r.Key.Name, r.Version, r.Image)
	}
	return text
}

// drawBuffer draws the columns of the slots in program order, as the paper's figure 9 does: R, W and the slot's view of the record.
func (s *story) drawBuffer() string {
	var slots []*slot
	for _, x := range s.machine.slots.rest {
		if x != nil && x.kind == function && !x.head && (x.caller == nil || !slices.Contains(x.caller.merged, x)) {
			slots = append(slots, x)
		}
	}
	slices.SortFunc(slots, func(a, b *slot) int { return int(a.id - b.id) })
	text, rows := fmt.Sprintf("%-10s", ""), []string{}
	for _, x := range slots {
		text += fmt.Sprintf("%-14v", x.named())
		for _, e := range x.column.order {
			if !slices.Contains(rows, e.key.Name) {
				rows = append(rows, e.key.Name)
			}
		}
	}
	slices.Sort(rows)
	text = strings.TrimRight(text, " ") + "\n"
	for _, name := range rows {
		line := fmt.Sprintf("%-10s", name)
		for _, x := range slots {
			line += fmt.Sprintf("%-14s", cell(x.column.at(key(name))))
		}
		text += strings.TrimRight(line, " ") + "\n"
	}
	return text
}

func cell(e *entry) string {
	switch {
	case e == nil:
		return "."
	case e.read && e.wrote:
		return fmt.Sprintf("R W %v", e.value)
	case e.wrote:
		return fmt.Sprintf("  W %v", e.value)
	case e.seen == nil:
		return fmt.Sprintf("R   @%d", e.version)
	}
	return fmt.Sprintf("R   %v", e.seen)
}

func readRecord(t *testing.T, text string) Record {
	name, value, _ := strings.Cut(text, ":")
	s := seen(t, name)
	return Record{Key: s.Key, Image: str(value), Version: s.Version}
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
