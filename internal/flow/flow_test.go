package flow

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// TestWalks replays testdata: `compile` takes a composer document, `sequence` a list of names, `walk` a table of what
// each action answers; the output shows what ran on what. Run with -rewrite to write it anew.
func TestWalks(t *testing.T) {
	datadriven.Walk(t, "testdata/walks", func(t *testing.T, path string) {
		var p *Program
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "compile":
				var err error
				if p, err = compileComposition(json.RawMessage(d.Input)); err != nil {
					return fmt.Sprintf("%v: %v\n", forerun.KindOf(err).HTTPStatus(), err)
				}
				return strings.Join(p.Actions(), " ") + "\n"
			case "sequence":
				p = Sequence(strings.Fields(d.Input))
				return strings.Join(p.Actions(), " ") + "\n"
			case "walk":
				var input string
				d.ScanArgs(t, "input", &input)
				return walkWith(t, p, json.RawMessage(input), d.Input)
			}
			t.Fatalf("unknown command %q", d.Cmd)
			return ""
		})
	})
}

// walkWith walks p, each action answering as the lines of answers say: "name {json}" or "name ! {json}" for a failure.
func walkWith(t *testing.T, p *Program, input json.RawMessage, answers string) string {
	results := make(map[string]forerun.Result)
	for _, line := range strings.Split(answers, "\n") {
		name, value, _ := strings.Cut(line, " ")
		status := forerun.Success
		if rest, failed := strings.CutPrefix(value, "! "); failed {
			status, value = forerun.DeveloperError, rest
		} else if strings.HasPrefix(value, `{"error"`) {
			status = forerun.ApplicationError
		}
		results[name] = forerun.Result{Status: status, Value: json.RawMessage(value)}
	}
	w := walker{t: t, program: p, results: results}
	end := w.walk(p.Start(input))
	return fmt.Sprintf("%s%s: %s\n", w.shown.String(), end.Status, end.Value)
}

// walker goes from stop to stop.
type walker struct {
	t       *testing.T
	program *Program
	results map[string]forerun.Result // by action, or by the code of a function
	shown   strings.Builder
}

func (w *walker) walk(stop forerun.Stop) forerun.Result {
	for !stop.End {
		next := func() forerun.Stop { return w.program.Resume(stop.Cursor, w.answer(stop)) }
		if stop.Join {
			branches := make([]forerun.Result, len(stop.Fork))
			for i, branch := range stop.Fork {
				fmt.Fprintf(&w.shown, "branch %d\n", i)
				branches[i] = w.walk(branch)
			}
			fmt.Fprintf(&w.shown, "join\n")
			next = func() forerun.Stop { return w.program.Join(stop.Cursor, branches) }
		} else {
			if stop.Detach != nil {
				fmt.Fprintf(&w.shown, "apart\n")
				apart := w.walk(stop.Detach.Start(stop.Input))
				fmt.Fprintf(&w.shown, "gave %s: %s\n", apart.Status, apart.Value)
			}
			fmt.Fprintf(&w.shown, "%s(%s) = %s\n", what(stop), stop.Input, w.answer(stop).Value)
		}
		first, second := next(), next() // a cursor is immutable: going on twice is the same
		if !reflect.DeepEqual(first, second) {
			w.t.Errorf("%s: resumed twice: %v, then %v", what(stop), first, second)
		}
		stop = first
	}
	return stop.Result
}

func (w *walker) answer(stop forerun.Stop) forerun.Result {
	r, ok := w.results[what(stop)]
	if !ok {
		w.t.Fatalf("no answer for %s", what(stop))
	}
	return r
}

func what(stop forerun.Stop) string {
	switch {
	case stop.Function != nil:
		return stop.Function.Code
	case stop.Detach != nil:
		return "async"
	}
	return stop.Action
}

// TestFunctionsAreNumbered: they have no names by which a trace could tell them apart.
func TestFunctionsAreNumbered(t *testing.T) {
	const function = `{"type":"function","function":{"exec":{"kind":"nodejs:default","code":"x => x"}}}`
	p, err := compileComposition(json.RawMessage(`{"type":"sequence","components":[` + function + `,{"type":"action","name":"/_/a"},` + function + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, r := range p.rows {
		if r.code != nil {
			numbers = append(numbers, r.code.Number)
		}
	}
	if !slices.Equal(numbers, []int{1, 2}) {
		t.Errorf("the functions have the numbers %v", numbers)
	}
}

func TestOf(t *testing.T) {
	conducted := func(value string) *forerun.Action {
		return &forerun.Action{Exec: forerun.Exec{Kind: "python:3"}, Annotations: []forerun.KeyValue{{Key: "conductor", Value: json.RawMessage(value)}}}
	}
	for _, value := range []string{"false", "null", `""`, "0"} {
		if p, err := Of(conducted(value)); p != nil || err != nil {
			t.Errorf("conductor %s: %v, %v", value, p, err)
		}
	}
	for _, value := range []string{"true", `"yes"`, "1", "[]", "{}", `{"note":"mine"}`, `{"type":"my.own"}`} {
		if p, err := Of(conducted(value)); p != (Conductor{}) || err != nil {
			t.Errorf("conductor %s: %v, %v", value, p, err)
		}
	}
	if p, err := Of(conducted(`{"type":1}`)); p != nil || err == nil {
		t.Errorf("what is no composition: %v, %v", p, err)
	}
	sequence := &forerun.Action{Exec: forerun.Exec{Kind: "sequence", Components: []string{"/ns/a"}}}
	if p, err := Of(sequence); err != nil || p.(*Program).Actions()[0] != "/ns/a" {
		t.Errorf("a sequence compiled to %v, %v", p, err)
	}
}

func TestConductor(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`{"action":"next","params":{"a":1},"state":{"s":2}}`, `next({"a":1}), then self({"out":1,"s":2})`},
		{`{"action":"/ns/pkg/next","params":5,"state":6}`, `/ns/pkg/next({"value":5}), then self({"out":1,"state":6})`},
		{`{"action":"next","state":{"out":"mine"}}`, `next({}), then self({"out":"mine"})`},
		{`{"action":"next"}`, `next({}), then self({"out":1})`},
		{`{"params":{"a":1},"state":{"s":2}}`, `end {"a":1}`},
		{`{"params":[1]}`, `end {"value":[1]}`},
		{`{"b":1}`, `end {"b":1}`},
		{`{"error":"no"}`, `end {"error":"no"}`},
		{`{"action":"a/b/c/d","params":{},"state":{"s":1}}`, `self({"error":"Failed to parse action name from json value \"a/b/c/d\" during composition.","s":1})`},
		{`{"action":"/a"}`, `self({"error":"Failed to parse action name from json value \"/a\" during composition."})`},
		{`{"action":"a//b"}`, `a/b({}), then self({"out":1})`},
		{`{"action":"ns/a/b"}`, `/ns/a/b({}), then self({"out":1})`},
		{`[1]`, `end {"error":"Activation failure during composition."}`},
		{`{"action":7}`, `self({"error":"Failed to parse action name from json value 7 during composition."})`},
	} {
		p := Conductor{}
		first := p.Start(json.RawMessage(`{"x":1}`))
		if !first.Self || string(first.Input) != `{"x":1}` {
			t.Fatalf("the conductor is begun with %+v", first)
		}
		second := p.Resume(first.Cursor, forerun.Result{Value: json.RawMessage(c.answer)})
		got := shown(second)
		if !second.End && !second.Self {
			got += ", then " + shown(p.Resume(second.Cursor, forerun.Result{Value: json.RawMessage(`{"out":1}`)}))
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", c.answer, got, c.want)
		}
	}
}

func shown(s forerun.Stop) string {
	switch {
	case s.End:
		return fmt.Sprintf("end %s", s.Result.Value)
	case s.Self:
		return fmt.Sprintf("self(%s)", s.Input)
	}
	return fmt.Sprintf("%s(%s)", s.Action, s.Input)
}

func TestTruth(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "true": true, "false": false, "null": false, `""`: false, `"0"`: true, "0": false, "-0": false, "0.0": false,
		"0e5": false, "1": true, "-1.5": true, "1e999": true, "[]": true, "{}": true,
	} {
		if got := isTrue(json.RawMessage(value)); got != want {
			t.Errorf("isTrue(%s) = %v; JavaScript says %v", value, got, want)
		}
	}
}

// TestWorkOnLargeValueEnds: steps without an action between them hold up the server, each for as long as its value is large.
func TestWorkOnLargeValueEnds(t *testing.T) {
	step := `{"type":"mask","components":[{"type":"empty"}]}`
	p, err := compileComposition(json.RawMessage(`{"type":"sequence","components":[` + strings.Repeat(step+",", 40) + step + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	for size, fine := range map[int]bool{1: true, 20 << 20: false} {
		stop := p.Start(json.RawMessage(`{"x":"` + strings.Repeat("y", size) + `"}`))
		if ended := strings.Contains(string(stop.Result.Value), "did too much with a large one"); !stop.End || ended == fine {
			t.Errorf("%d bytes: ended as too much: %v", size, ended)
		}
	}
}

// TestManyBranchesEnd: maps in maps, each with few elements, are more branches than there is memory for; and so are parameters that each
// branch has a copy of.
func TestManyBranchesEnd(t *testing.T) {
	action := `{"type":"action","name":"/_/a"}`
	nested := func(depth int) string {
		text := action
		for range depth {
			text = `{"type":"sequence","components":[{"type":"literal","value":{"value":[` + strings.Repeat("0,", 49) + `0]}},{"type":"map","components":[` + text + `]}]}`
		}
		return text
	}
	for name, c := range map[string]struct {
		composition, input string
		fits               bool
	}{
		"2,500 branches in 50":  {nested(2), "{}", true},
		"125,000 in 2,500":      {nested(3), "{}", false},
		"10,001 of one":         {`{"type":"map","components":[` + action + `]}`, `{"value":[` + strings.Repeat("0,", 10_000) + `0]}`, false},
		"much for each of 1000": {`{"type":"map","components":[{"type":"literal","value":{"x":"` + strings.Repeat("y", 1<<20) + `"}}]}`, `{"value":[` + strings.Repeat("0,", 999) + `0]}`, false},
	} {
		p, err := compileComposition(json.RawMessage(c.composition))
		if err != nil {
			t.Fatal(name, err)
		}
		stop := p.Start(json.RawMessage(c.input))
		if tooMany := strings.Contains(string(stop.Result.Value), "would begin more than"); tooMany == c.fits || stop.Join != c.fits {
			t.Errorf("%s: %.200s", name, stop.Result.Value)
		}
	}
}

// TestBranchesTogetherEnd: each branch may walk as far as one walk may, but not each of thousands.
func TestBranchesTogetherEnd(t *testing.T) {
	p, err := compileComposition(json.RawMessage(`{"type":"map","components":[{"type":"mask","components":[{"type":"empty"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	elements := json.RawMessage(`{"value":[` + strings.Repeat("0,", 99) + `0]}`)
	for _, c := range []struct {
		done effort
		want string // "": it goes on
	}{
		{effort{}, ""},
		{effort{rows: manyWalks*maxSteps - 200}, "went on without an action for too long"},
		{effort{work: manyWalks*maxWork - 1000}, "did too much with a large one"},
	} {
		w := walk{program: p, value: elements, made: &made{effort: c.done}}
		stop := w.run()
		if goesOn := stop.Join && len(stop.Fork) == 100; goesOn != (c.want == "") || !strings.Contains(string(stop.Result.Value), c.want) {
			t.Errorf("%+v: %d branches, %s", c.done, len(stop.Fork), stop.Result.Value)
		}
	}
}

// TestRowsThatReadNothingTakeNoWork: branches begin with the value of the fork, and those that hand it on go over none of it.
func TestRowsThatReadNothingTakeNoWork(t *testing.T) {
	p, err := compileComposition(json.RawMessage(`{"type":"let","declarations":{},"components":[{"type":"mask","components":[{"type":"try","body":{"type":"action","name":"/_/a"},"handler":{"type":"empty"}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	w := walk{program: p, value: json.RawMessage(`{"large":"value"}`), made: new(made)}
	if stop := w.run(); stop.Action != "/_/a" || w.made.rows < 4 || w.made.work != 0 {
		t.Errorf("at %q it has gone over %d bytes in %d rows", stop.Action, w.made.work, w.made.rows)
	}
}

// TestForksWithoutAnythingToRunEnd: what was walked before such a fork counts behind it, until something runs.
func TestForksWithoutAnythingToRunEnd(t *testing.T) {
	nothing := `{"type":"map","components":[{"type":"empty"}]}`
	p, err := compileComposition(json.RawMessage(`{"type":"while_nosave","test":{"type":"literal","value":{"value":true}},"body":{"type":"sequence","components":[` +
		`{"type":"parallel","components":[` + nothing + `]},` + nothing + `,{"type":"action","name":"/_/a"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	empty := forerun.Result{Value: json.RawMessage(`{"value":[]}`)}
	join := func(stop forerun.Stop) forerun.Stop { return p.Join(stop.Cursor, []forerun.Result{empty}) }
	first := p.Start(json.RawMessage("{}"))
	second := join(first)
	before, behind := first.Cursor.(cursor).done, second.Cursor.(cursor).done
	if before.rows == 0 || behind.rows <= before.rows || behind.work <= before.work {
		t.Errorf("done before a fork: %+v, and before the next: %+v", before, behind)
	}
	action := join(second)
	if action.Action != "/_/a" {
		t.Fatalf("the walk stops at %+v", action)
	}
	if again := p.Resume(action.Cursor, empty).Cursor.(cursor).done; again.rows >= behind.rows {
		t.Errorf("done behind an action: %+v, no less than before it: %+v", again, behind)
	}
	at := first.Cursor.(cursor)
	at.done.rows = manyWalks * maxSteps
	if stop := p.Join(at, []forerun.Result{empty}); !stop.End || stop.Result.Status != forerun.ApplicationError {
		t.Errorf("it goes on with %+v", stop)
	}
}

// TestManyVariablesAreSetTogether: one by one each would copy all, for minutes.
func TestManyVariablesAreSetTogether(t *testing.T) {
	const many = 20_000
	declared, given := make(members), make(members)
	for i := range many {
		name := fmt.Sprint("v", i)
		declared[name], given[name] = json.RawMessage("0"), json.RawMessage("1")
	}
	given["unknown"] = json.RawMessage("1")
	outer := &frame{kind: opLet, vars: &vars{members{"v0": json.RawMessage("0"), "outer": json.RawMessage("0")}}}
	given["outer"] = json.RawMessage("1")
	before := &frame{kind: opLet, vars: &vars{declared}, below: outer}
	behind := before.set(given)
	for _, name := range []string{"v0", "v19999", "outer"} {
		if was, is := string(before.get(name)), string(behind.get(name)); was != "0" || is != "1" {
			t.Errorf("%s was %s and is %s", name, was, is)
		}
	}
	if v := behind.below.vars.values["v0"]; string(v) != "0" || len(behind.variables()) != many+1 || behind.get("unknown") != nil {
		t.Errorf("the outer v0 is %s; there are %d variables", v, len(behind.variables()))
	}
}

// TestGrowingValueEnds: retain doubles the value with each turn of a loop.
func TestGrowingValueEnds(t *testing.T) {
	p, err := compileComposition(json.RawMessage(`{"type":"repeat","count":60,"components":[{"type":"retain","components":[{"type":"empty"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if stop := p.Start(json.RawMessage(`{"x":"y"}`)); !stop.End || !strings.Contains(string(stop.Result.Value), "grew beyond 32 MiB") {
		t.Errorf("it ends with %.200s", stop.Result.Value)
	}
}

// FuzzComposition: no document makes the compiler or a walk panic, or run for ever between two actions.
func FuzzComposition(f *testing.F) {
	f.Add([]byte(`{"type":"if","test":{"type":"action","name":"/_/a"},"consequent":{"type":"sequence","components":[{"type":"action","name":"/_/b"}]},"alternate":{"type":"empty"}}`), []byte(`{"value":true}`))
	f.Add([]byte(`{"type":"sequence","components":[null]}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, document, value []byte) {
		p, err := compileComposition(document)
		if err != nil {
			return
		}
		stop := p.Start(value)
		for range 100 { // a loop may go on for ever, if its actions want it
			if stop.End {
				return
			}
			stop = p.Resume(stop.Cursor, forerun.Result{Value: value})
		}
	})
}
