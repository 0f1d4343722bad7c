package speculate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/memo"
)

// TestPredictorIsBounded teaches the predictor very many branches, paths, outcomes and early reads, as a hostile client
// could.
func TestPredictorIsBounded(t *testing.T) {
	p := NewPredictor()
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 50_000 {
		branches := 10 * maxBranches
		if n%2 == 0 {
			branches = 10 // these get many paths
		}
		p.Learn(Outcome{
			Branch: Branch{Program: forerun.Digest{byte(random.IntN(256))}, Place: random.IntN(branches)},
			Path:   random.Uint64() % 100_000, Next: random.IntN(100),
		})
		p.Blame(Blame{Consumer: forerun.Digest{byte(n), byte(n >> 8)}, Key: key(strings.Repeat("k", n%(2*maxName)))})
	}
	paths := 0
	for _, b := range p.branches {
		paths += len(b.paths)
		if len(b.paths) > maxPaths || len(b.all.counts) > maxWays {
			t.Fatalf("a branch has %d paths and %d ways", len(b.paths), len(b.all.counts))
		}
	}
	if len(p.branches) > maxBranches || paths > maxAllPaths || paths != p.paths || len(p.blamed) > maxBlames {
		t.Errorf("%d branches, %d paths (%d were counted), %d early reads", len(p.branches), paths, p.paths, len(p.blamed))
	}
	if n := int(p.own.Load() + p.others.Load()); n != len(p.blamed) {
		t.Errorf("%d early reads are kept, and %d counted", len(p.blamed), n)
	}
	for b := range p.blamed {
		if len(b.key.Name) > maxName {
			t.Fatalf("a name of %d bytes is kept", len(b.key.Name))
		}
	}
}

// TestConditionsAreSmall: a branch may test a text of megabytes. The shortened value leads the same way.
func TestConditionsAreSmall(t *testing.T) {
	for _, c := range []struct{ output, kept string }{
		{`{"value":true,"more":1}`, `{"value":true}`},
		{`{"value":0}`, `{"value":0}`},
		{`{"value":null}`, `{}`},
		{`{"more":1}`, `{}`},
		{`{"Value":true}`, `{}`},
		{`[]`, `{"value":[]}`},
		{`{"value":"` + strings.Repeat("x", 1<<20) + `"}`, `{"value":true}`},
	} {
		if got := bare(json.RawMessage(c.output)); string(got) != c.kept {
			t.Errorf("%.40s: %.40s", c.output, got)
		}
	}
}

func isAnswered(actions []Action) bool {
	return slices.ContainsFunc(actions, func(a Action) bool { _, is := a.(Reply); return is })
}

// TestColumnIsBounded has a speculative slot read absent records and overwrite one record without end. It is stopped
// soon after its column reaches the bound.
func TestColumnIsBounded(t *testing.T) {
	for _, c := range []struct {
		name    string
		request func(n int) Event
		most    int // that may be answered
		full    bool
	}{
		{"absent records", func(n int) Event {
			return Read{Slot: 2, Op: OpID(n), Keys: []forerun.Key{{Name: strings.Repeat("k", 16<<10) + string(rune(n))}}, Command: []string{"get", "k"}}
		}, maxColumn >> 14, false},
		{"one record", func(n int) Event {
			return Write{Slot: 2, Op: OpID(n), Keys: []forerun.Key{key("k")}, Command: []string{"set", "k", "1"}, Size: 1 << 20}
		}, maxColumn >> 20, false},
		{"one record, while the server has no room", func(n int) Event {
			return Write{Slot: 2, Op: OpID(n), Keys: []forerun.Key{key("k")}, Command: []string{"set", "k", "1"}, Size: 1 << 16}
		}, largeSize >> 16, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := ahead()
			m.Step(LoadChanged{Depth: DefaultDepth, Full: c.full})
			for n := 1; n <= c.most+1; n++ {
				for _, a := range m.Step(c.request(n)) {
					switch a := a.(type) {
					case Fetch:
						m.Step(Fetched{Slot: a.Slot, Op: a.Op, Records: []Record{{Key: a.Keys[0], Image: str("-")}}})
					case Stall:
						if c.full && !isAnswered(m.Step(LoadChanged{Depth: DefaultDepth})) {
							t.Error("it waits on when there is room again")
						}
						return
					}
				}
			}
			t.Errorf("%d requests are answered in a column", c.most+1)
		})
	}
}

// TestFetchesAreBounded has a speculative slot read very many large records at once. Few are copied at a time. A record
// without room in the column is not copied.
func TestFetchesAreBounded(t *testing.T) {
	const asked = 500
	m := ahead()
	large := str(strings.Repeat("x", 30<<20))
	var underWay []Fetch
	most, answered := 0, 0
	hear := func(actions []Action) {
		for _, a := range actions {
			switch a := a.(type) {
			case Fetch:
				underWay = append(underWay, a)
			case Reply:
				answered++
			}
		}
		most = max(most, len(underWay))
	}
	for n := 1; n <= asked; n++ {
		hear(m.Step(Read{Slot: 2, Op: OpID(n), Keys: []forerun.Key{key("k" + strconv.Itoa(n))}, Command: []string{"get"}}))
	}
	for len(underWay) > 0 {
		f := underWay[0]
		underWay = underWay[1:]
		hear(m.Step(Fetched{Slot: f.Slot, Op: f.Op, Records: []Record{{Key: f.Keys[0], Image: large}}}))
	}
	if most > maxFetches || answered < maxColumn/(30<<20) {
		t.Errorf("%d records are copied at a time, and %d operations are answered", most, answered)
	}
	s := m.at(2)
	if s.column.size > maxColumn+maxFetches*(31<<20) || len(s.requests) != asked-answered {
		t.Errorf("the column takes %d bytes, and %d operations wait", s.column.size, len(s.requests))
	}
	for _, r := range s.requests {
		if r.records != nil {
			t.Fatalf("operation %d waits for its turn, with a copy", r.op)
		}
	}
}

// TestTooLargeForCopies has records that cannot be copied be read by the head, and not keep others from being copied.
func TestTooLargeForCopies(t *testing.T) {
	m := ahead()
	for n := 1; n <= 2*maxFetches; n++ {
		read := m.Step(Read{Slot: 2, Op: OpID(n), Keys: []forerun.Key{key("large")}, Command: []string{"get"}})
		if _, ok := read[0].(Fetch); !ok {
			t.Fatalf("operation %d: %+v", n, read)
		}
		failed := m.Step(Fetched{Slot: 2, Op: OpID(n), Failed: true})
		if s, ok := failed[0].(Stall); !ok || len(failed) != 1 || s.Op != OpID(n) {
			t.Errorf("operation %d: %+v", n, failed)
		}
	}
	answers := m.Step(Output{Slot: 1, Result: forerun.Result{Value: json.RawMessage(`{"f":1}`)}})
	direct := 0
	for _, a := range answers {
		if r, ok := a.(Reply); ok && r.Direct {
			direct++
		}
	}
	if direct != 2*maxFetches {
		t.Errorf("as the head it is told %+v", answers)
	}
}

// TestRequestsAreBounded has a speculative slot make 100,000 requests that must wait, or call without end. It is
// squashed at the bound and runs again as the head, which is answered.
func TestRequestsAreBounded(t *testing.T) {
	for name, request := range map[string]func(n int) Event{
		"holds": func(n int) Event { return Hold{Slot: 2, Op: OpID(n)} },
		"calls": func(n int) Event { return Call{Slot: 2, Op: OpID(n), Action: "h", Input: json.RawMessage(`{}`)} },
	} {
		t.Run(name, func(t *testing.T) {
			m := ahead()
			squashed := 0
			for n := 1; n <= 100_000; n++ {
				for _, a := range m.Step(request(n)) {
					if s, ok := a.(Squash); ok && s.Slot == 2 {
						squashed = n
					}
				}
				if s := m.at(2); s != nil && len(s.requests) > maxRequests {
					t.Fatalf("%d requests wait", len(s.requests))
				}
			}
			if squashed < maxRequests || squashed > maxRequests+2 {
				t.Errorf("the slot was squashed at request %d", squashed)
			}
			m.Step(Output{Slot: 1, Result: forerun.Result{Value: json.RawMessage(`{"f":1}`)}})
			again := m.root.branches[0].steps[0]
			answers := m.Step(Resolved{Slot: again.id, Code: digest("g"), Input: json.RawMessage(`{"f":1}`)})
			answers = append(answers, m.Step(Hold{Slot: again.id, Op: 1})...)
			launch, launched := answers[0].(Launch)
			if last, ok := answers[len(answers)-1].(Reply); !ok || !last.Direct || !launched || launch.Speculative {
				t.Errorf("as the head it is told %+v", answers)
			}
		})
	}
}

// TestCallsAreBounded has a head call repeatedly, with more than a megabyte of input in all. The inputs are not kept
// until its end, and it gets no row. Each callee still has a path of its own.
func TestCallsAreBounded(t *testing.T) {
	if maxAsked != memo.MaxRow {
		t.Error("calls make a row that is not kept, or none although it would be")
	}
	for _, c := range []struct {
		mode        Mode
		size, times int
	}{{Off, 1 << 20, 50}, {All, 1 << 20, 50}, {All, 1 << 10, 1500}} {
		t.Run(fmt.Sprintf("%v, %d bytes", c.mode, c.size), func(t *testing.T) {
			mode, paths := c.mode, make(map[uint64]bool)
			input := json.RawMessage(strings.Repeat("1", c.size))
			m, _ := New("f", json.RawMessage(`{}`), Speculate(mode, memo.New(memo.Options{}).Tenant("t"), NewPredictor(), strs{}))
			m.Step(Resolved{Code: digest("f"), Input: json.RawMessage(`{}`)})
			for n := 1; n <= c.times; n++ {
				m.Step(Call{Op: OpID(n), Action: "g", Code: digest("g"), Input: input})
				m.Step(Resolved{Slot: SlotID(n), Code: digest("g"), Input: input})
				paths[m.at(SlotID(n)).path] = true
				actions := m.Step(Output{Slot: SlotID(n), Result: forerun.Result{Value: json.RawMessage(`{}`)}})
				if _, ok := actions[len(actions)-1].(Reply); !ok {
					t.Fatalf("call %d: %+v", n, actions)
				}
				kept := 0
				for _, c := range slices.Concat(m.root.calls, m.root.below) {
					kept += len(c.Input)
				}
				if kept > maxAsked || mode == Off && len(m.root.calls)+len(m.root.below) > 0 {
					t.Fatalf("%d bytes are kept of %d calls", kept, n)
				}
			}
			if mode != Off && len(paths) != c.times {
				t.Errorf("%d calls are on %d paths", c.times, len(paths))
			}
			for _, a := range m.Step(Output{Result: forerun.Result{Value: json.RawMessage(`{}`)}}) {
				if l, ok := a.(Learn); ok && l.Lesson != nil && l.Lesson.Row != nil {
					t.Error("it has a row, without all that it called")
				}
			}
		})
	}
}

// growing is a loop of one function whose input grows to three times its size with each turn. The table has a row of less than maxInput,
// and its output is larger.
type growing struct{ table }

func (growing) Start(input json.RawMessage) forerun.Stop {
	return forerun.Stop{Action: "f", Input: input, Branch: true}
}

func (growing) Resume(_ forerun.Cursor, r forerun.Result) forerun.Stop {
	return forerun.Stop{Action: "f", Input: slices.Concat(r.Value, r.Value, r.Value), Branch: true}
}

// TestGrowingLoopIsBounded: a predicted iteration of a loop is not launched speculatively once its input is large.
func TestGrowingLoopIsBounded(t *testing.T) {
	tenant := memo.New(memo.Options{}).Tenant("t")
	input := json.RawMessage("1")
	for range 30 {
		tenant.Learn(digest("f"), input, &forerun.Row{Output: input})
		if input = slices.Concat(input, input, input); len(input) > maxInput {
			break
		}
	}
	m, _ := New("app", json.RawMessage(`1`), Speculate(All, tenant, NewPredictor(), strs{}), Depth(64))
	largest := 0
	for actions := m.Step(Entered{Program: growing{}, Input: json.RawMessage("1")}); len(actions) > 0; {
		var next []Action
		for _, a := range actions {
			if r, ok := a.(Resolve); ok {
				largest = max(largest, len(r.Input))
				next = append(next, m.Step(Resolved{Slot: r.Slot, Code: digest("f"), Input: r.Input})...)
			}
		}
		actions = next
	}
	if largest > maxInput || 3*largest <= maxInput {
		t.Errorf("what runs ahead gets %d bytes of input", largest)
	}
}

// ahead returns a machine whose slot 2 is speculative, behind slot 1.
func ahead() *Machine {
	tenant := memo.New(memo.Options{}).Tenant("t")
	tenant.Learn(digest("f"), json.RawMessage(`{}`), &forerun.Row{Output: json.RawMessage(`{"f":1}`)})
	m, _ := New("app", json.RawMessage(`{}`), Speculate(All, tenant, NewPredictor(), strs{}))
	m.Step(Entered{Slot: 0, Program: readProgram("f\ng"), Input: json.RawMessage(`{}`)})
	m.Step(Resolved{Slot: 1, Code: digest("f"), Input: json.RawMessage(`{}`)})
	m.Step(Resolved{Slot: 2, Code: digest("g"), Input: json.RawMessage(`{"f":1}`)})
	return m
}

// TestNamesInReasonsAreShort: records keep many reasons, and a name has no bound of its own.
func TestNamesInReasonsAreShort(t *testing.T) {
	long := strings.Repeat("k", 1<<20)
	if got := conflictOf([]forerun.Key{key(long), key("b"), key("a" + long), key("c")}).String(); got != fmt.Sprintf("conflict(%q, %q, %q, 1)", "a"+long[:59]+"...", "b", "c") {
		t.Errorf("%.300s", got)
	}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "Record:") && !strings.Contains(line, "ShownName") && !strings.HasSuffix(file, "_test.go") {
				t.Errorf("%s keeps a whole name: %s", file, line)
			}
		}
	}
}
