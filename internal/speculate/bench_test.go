package speculate

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
)

// workloads are applications that the benchmarks run: one with a branch, a call, reads, writes and counts.
var workloads = []struct {
	name   string
	mode   Mode
	inputs int
}{
	{"known", All, 100},       // inputs that were seen before: everything is speculative
	{"new", All, 1 << 30},     // no input is seen twice
	{"branches", Branches, 1}, // outputs are not guessed
	{"off", Off, 1},
}

// heldBack is the memory that the server's garbage collector counts as in use from the start (internal/service). So it runs as rarely
// here.
const heldBack = 64 << 20

// BenchmarkStep counts the events that the machine handles in one second of processor time. It replays the recorded
// events of a hundred invocations.
func BenchmarkStep(b *testing.B) {
	defer runtime.KeepAlive(make([]byte, heldBack))
	for _, w := range workloads {
		b.Run(w.name, func(b *testing.B) {
			d := newDrive(w.mode, w.inputs)
			d.run(10_000)
			d.learns = false
			notes := make([][]Event, 100)
			inputs := make([]json.RawMessage, len(notes))
			for i := range notes {
				inputs[i] = d.nextInput()
				d.invoke(inputs[i])
				notes[i] = d.heard
			}
			events, used := 0, processor()
			b.ReportAllocs()
			for i := 0; b.Loop(); i = (i + 1) % len(notes) {
				machine, actions := d.begin(inputs[i])
				for _, e := range notes[i] {
					actions = machine.Step(e)
				}
				if _, ok := actions[len(actions)-1].(Finish); !ok {
					b.Fatal("it went another way than before")
				}
				events += len(notes[i])
			}
			report(b, events, processor()-used)
		})
	}
}

// BenchmarkInvocation is the same with the tables, that learn, and with the world that answers.
func BenchmarkInvocation(b *testing.B) {
	for _, w := range workloads {
		b.Run(w.name, func(b *testing.B) {
			d := newDrive(w.mode, w.inputs)
			d.run(10_000)
			from, used := d.events, processor()
			b.ReportAllocs()
			for b.Loop() {
				d.invoke(d.nextInput())
			}
			report(b, d.events-from, processor()-used)
		})
	}
}

// BenchmarkFork is an invocation that forks into many branches at once. The cost of one event must not grow with the
// number of branches. This also holds where all branches are known and only a few may be speculative.
func BenchmarkFork(b *testing.B) {
	for _, w := range workloads[1:] {
		for _, width := range []int{10, 1000, 8000} {
			b.Run(fmt.Sprintf("%s/%d", w.name, width), func(b *testing.B) { benchmarkFork(b, w.mode, w.inputs, width) })
		}
	}
	b.Run("known/1000", func(b *testing.B) { benchmarkFork(b, All, 1, 1000) })
	b.Run("known/8000", func(b *testing.B) { benchmarkFork(b, All, 1, 8000) })
}

func benchmarkFork(b *testing.B, mode Mode, inputs, width int) {
	d := newDrive(mode, inputs)
	d.program = readProgram(strings.Repeat("rate book done |", width) + " done")
	d.invoke(d.nextInput())
	from, used := d.events, processor()
	for b.Loop() {
		d.invoke(d.nextInput())
	}
	report(b, d.events-from, processor()-used)
}

// report writes events in a second of a processor, whatever other processes did, and in a second of the clock.
func report(b *testing.B, events int, used time.Duration) {
	b.ReportMetric(float64(events)/used.Seconds(), "events/cpu-s")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}

// BenchmarkMemory plays ten million events with inputs that are never the same. It fails if the memory grows once the tables are full.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		d := newDrive(All, 1<<30)
		d.run(1_000_000)
		before := held()
		d.run(10_000_000)
		after := held()
		b.ReportMetric(float64(before)/(1<<20), "MB-after-1M")
		b.ReportMetric(float64(after)/(1<<20), "MB-after-10M")
		if after > before+before/20+1<<20 {
			b.Fatalf("%d bytes were held after a million events, %d after ten", before, after)
		}
		runtime.KeepAlive(d)
	}
}

// processor is the processor time of this process. Other processes do not count.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// held is how many bytes are in use after a collection.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// drive plays invocations, one after the other, and answers the machine's requests at once.
type drive struct {
	mode      Mode
	inputs    int // how many there are
	tenant    *memo.Tenant
	predictor *Predictor
	program   table
	steps     map[string][]command // of a function
	output    map[string]json.RawMessage
	codes     map[string]forerun.Digest

	learns  bool
	heard   []Event  // by the machine, and to be heard
	played  []played // by slot
	number  int      // of the invocation
	version forerun.Version
	events  int
}

// played is where a slot's function is.
type played struct {
	action string
	at     int
}

// command is a function's next request: it reads, writes or counts a record, or calls.
type command struct {
	read  *Read
	write *Write
	call  *Call
}

func newDrive(mode Mode, inputs int) *drive {
	d := &drive{
		mode: mode, inputs: inputs, learns: true, tenant: memo.New(memo.Options{}).Tenant("t"), predictor: NewPredictor(),
		program: readProgram("check ? charge : refuse\nbook\nnotify\ndone"),
		steps: map[string][]command{
			"check":  {get("account"), get("limit")},
			"charge": {get("account"), count("account"), count("charges")},
			"book":   {get("seat"), call("rate"), set("seat"), count("booked")},
			"rate":   {get("rates")},
			"notify": {get("charges"), set("message")},
			"done":   {get("message"), count("served")},
		},
		output: make(map[string]json.RawMessage), codes: make(map[string]forerun.Digest),
	}
	for _, name := range []string{"charge", "refuse", "book", "rate", "notify", "done"} {
		d.output[name] = json.RawMessage(fmt.Sprintf(`{"%s":"done"}`, name))
	}
	for _, name := range []string{"app", "check", "charge", "refuse", "book", "rate", "notify", "done"} {
		d.codes[name] = digest(name)
	}
	d.output["check"] = json.RawMessage(`{"value":true}`)
	return d
}

func get(name string) command {
	return command{read: &Read{Keys: []forerun.Key{key(name)}, Command: []string{"get", name}}}
}

func set(name string) command {
	return command{write: &Write{Keys: []forerun.Key{key(name)}, Command: []string{"set", name, "1"}}}
}

func count(name string) command {
	return command{write: &Write{Keys: []forerun.Key{key(name)}, Reads: []forerun.Key{key(name)}, Command: []string{"incr", name}}}
}

func call(action string) command {
	return command{call: &Call{Action: action, Input: json.RawMessage(`{}`), Code: digest(action)}}
}

// run plays invocations until so many events have been.
func (d *drive) run(events int) {
	for d.events < events {
		d.invoke(d.nextInput())
	}
}

func (d *drive) nextInput() json.RawMessage {
	d.number++
	return json.RawMessage(`{"n":` + strconv.Itoa(d.number%d.inputs) + `}`)
}

func (d *drive) begin(input json.RawMessage) (*Machine, []Action) {
	if d.mode == Off {
		return New("app", input)
	}
	return New("app", input, Speculate(d.mode, d.tenant, d.predictor, strs{}))
}

func (d *drive) invoke(input json.RawMessage) {
	d.played = d.played[:0]
	machine, actions := d.begin(input)
	d.heard = nil
	d.carryOut(actions)
	for i := 0; i < len(d.heard); i++ {
		d.events++
		d.carryOut(machine.Step(d.heard[i]))
	}
}

func (d *drive) tell(e Event) { d.heard = append(d.heard, e) }

func (d *drive) carryOut(actions []Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case Resolve:
			d.resolve(a)
		case Launch:
			d.launch(a)
		case Fetch:
			f := Fetched{Slot: a.Slot, Op: a.Op}
			for _, k := range a.Keys {
				f.Records = append(f.Records, Record{Key: k, Image: str("1"), Version: d.version})
			}
			d.tell(f)
		case Reply:
			if a.Direct {
				d.direct(a)
			}
			d.goOn(a.Slot)
		case Promote:
			if len(a.Commands) > 0 {
				d.version++
			}
			if len(a.Commands) > 0 || len(a.Expect) > 0 {
				d.tell(Promoted{Slots: a.Slots, Version: d.version})
			}
		case Learn:
			d.learn(a.Lesson)
		}
	}
}

func (d *drive) resolve(a Resolve) {
	if a.Action == "app" {
		d.tell(Entered{Slot: a.Slot, Program: d.program, Code: d.codes["app"], Input: a.Input})
		return
	}
	d.tell(Resolved{Slot: a.Slot, Code: d.codes[a.Action], Input: a.Input})
}

func (d *drive) launch(a Launch) {
	if a.Action == "app" {
		d.tell(Entered{Slot: a.Slot, Program: d.program, Code: d.codes["app"], Input: a.Input})
		return
	}
	for len(d.played) <= int(a.Slot) {
		d.played = append(d.played, played{})
	}
	d.played[a.Slot] = played{action: a.Action, at: -1}
	d.goOn(a.Slot)
}

// goOn has a function do the next thing.
func (d *drive) goOn(slot SlotID) {
	r := &d.played[slot]
	r.at++
	steps := d.steps[r.action]
	if r.at == len(steps) {
		d.tell(Output{Slot: slot, Result: forerun.Result{Value: d.output[r.action]}})
		return
	}
	switch c := steps[r.at]; {
	case c.read != nil:
		e := *c.read
		e.Slot, e.Op = slot, OpID(r.at+1)
		d.tell(e)
	case c.write != nil:
		e := *c.write
		e.Slot, e.Op = slot, OpID(r.at+1)
		d.tell(e)
	default:
		e := *c.call
		e.Slot, e.Op = slot, OpID(r.at+1)
		d.tell(e)
	}
}

// direct executes a head's request.
func (d *drive) direct(a Reply) {
	r := &d.played[a.Slot]
	e := Done{Slot: a.Slot, Op: a.Op, Exact: true}
	switch c := d.steps[r.action][r.at]; {
	case c.read != nil:
		e.Reads = []forerun.Seen{{Key: c.read.Keys[0], Version: d.version}}
	default:
		for _, k := range c.write.Reads {
			e.Reads = append(e.Reads, forerun.Seen{Key: k, Version: d.version})
		}
		d.version++
		e.Wrote = c.write.Keys
	}
	d.tell(e)
}

func (d *drive) learn(l *Lesson) {
	if l == nil || !d.learns {
		return
	}
	if l.Row != nil {
		d.tenant.Learn(l.Code, l.Input, l.Row)
	}
	if l.Outcome != nil {
		d.predictor.Learn(*l.Outcome)
	}
}
