package oracle

import (
	"slices"
	"strconv"
	"testing"

	"forerun.dev/forerun/internal/forerun"
)

// A function that reads r0 twice, and one that writes it and then says so outside.
var actions = map[string]*Action{
	"twice": {Versions: []Code{{Script: []Instruction{{Command: Command{Verb: Get}}, {Command: Command{Verb: Get}}}, Range: 97}}},
	"say":   {Versions: []Code{{Script: []Instruction{{Command: Command{Verb: Incr}}, {Command: Command{Verb: Effect}}}, Range: 97}}},
}

// gives is what "twice" gives that reads these.
func gives(first, second Value) forerun.Result {
	return actions["twice"].Versions[0].Return(Mix(Mix(0, first.String()), second.String()), Object(0))
}

func incr(reply string) Event { return Event{Kind: Other, Command: Command{Verb: Incr}, Reply: reply} }

func TestCheck(t *testing.T) {
	none, one, two := Value{}, Value{'s', "1"}, Value{'s', "2"}
	begin := Event{Kind: Begin, Action: "twice", Input: Object(0)}
	end := func(first, second Value) Event { return Event{Kind: End, Result: gives(first, second)} }
	said := Event{Kind: Outside, Reply: Text("say", Command{Argument: Mix(0, "1") % 5})}
	saying := []Event{{Kind: Begin, Action: "say", Input: Object(0)}, said}
	ok := Event{Kind: End, Result: actions["say"].Versions[0].Return(Mix(Mix(0, "1"), "OK"), Object(0))}
	for _, c := range []struct {
		name   string
		events []Event
		after  Value
		wrong  bool
	}{
		{"read before", []Event{begin, incr("1"), end(none, none)}, one, false},
		{"read after", []Event{begin, incr("1"), end(one, one)}, one, false},
		{"read before and after", []Event{begin, incr("1"), end(none, one)}, one, false},
		{"read after and before", []Event{begin, incr("1"), end(one, none)}, one, true},
		{"read one of two others only", []Event{begin, incr("1"), incr("2"), end(one, two)}, two, false},
		{"read what was overwritten before it began", []Event{incr("1"), begin, end(none, none)}, one, true},
		{"read what was written after it ended", []Event{begin, end(one, one), incr("1")}, one, true},
		{"another client saw it", []Event{saying[0], said, ok, incr("2")}, two, false},
		{"an effect before its write was seen", []Event{saying[0], said, incr("1"), ok}, two, true},
		{"no effect", []Event{saying[0], ok}, one, true},
		{"an effect twice", []Event{saying[0], said, said, ok}, one, true},
		{"a write was lost", []Event{saying[0], said, ok}, none, true},
		{"given up on the way", []Event{saying[0], {Kind: Given}, {Kind: Gone}}, one, false},
		{"given up, and it wrote twice", []Event{saying[0], {Kind: Given}, {Kind: Gone}}, two, true},
		{"crashed behind its write", []Event{saying[0], {Kind: Crash, Action: "say", Result: Crashed}, {Kind: End, Result: Crashed}}, one, false},
		{"a crash that nobody had", []Event{saying[0], {Kind: End, Result: Crashed}}, one, true},
	} {
		_, err := Check(&Segment{Actions: actions, Events: c.events, After: &Store{c.after}})
		if (err != nil) != c.wrong {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSearchThatRunsOutIsAnError(t *testing.T) {
	begin := Event{Kind: Begin, Action: "twice", Input: Object(0)}
	seg := &Segment{Actions: actions, Events: []Event{begin, {Kind: End, Result: gives(Value{}, Value{})}}, Budget: 2}
	if _, err := Check(seg); err == nil {
		t.Error("a search of two states explains it")
	}
}

// TestInputsTellStatesApart: a function's result, and the input of its calls, may depend on its own input.
func TestInputsTellStatesApart(t *testing.T) {
	r := &search{Segment: &Segment{}, numbers: make(map[any]uint64)}
	code := &actions["twice"].Versions[0]
	one := string(r.encode(nil, &node{kind: function, code: code, input: Object(1)}))
	if two := string(r.encode(nil, &node{kind: function, code: code, input: Object(2)})); one == two {
		t.Error("a function on another input is the same state")
	}
}

// TestWrongHint: a hint that is wrong at the beginning does not cost all that could come behind it.
func TestWrongHint(t *testing.T) {
	actions := map[string]*Action{
		"copy": {Versions: []Code{{Script: []Instruction{{Command: Command{Verb: Get}}, {Command: Command{Verb: Set, A: 1}}}, Range: 1}}},
		"incr": {Versions: []Code{{Script: []Instruction{{Command: Command{Verb: Incr}}}, Range: 1}}},
		"push": {Versions: []Code{{Script: []Instruction{{Command: Command{Verb: Push, A: 2}}}, Range: 1}}},
	}
	seg := &Segment{Actions: actions, Budget: 60_000, After: &Store{{'s', "1"}, {'s', strconv.Itoa(Mix(0, Value{}.String()) % 5)}}}
	begin := func(action string, input int) {
		seg.Events = append(seg.Events, Event{Kind: Begin, Invocation: len(seg.Events), Action: action, Input: Object(input)})
	}
	begin("copy", 0)
	begin("incr", 0)
	for i := range 9 {
		begin("push", i%5)
	}
	hint := func(invocation, acc int, c Command) {
		c.Argument = acc % 5
		seg.Hints = append(seg.Hints, Hint{At: 11, Invocation: invocation, Command: c, Acc: acc})
	}
	hint(1, 0, Command{Verb: Incr}) // it was behind the next
	hint(0, 0, Command{Verb: Get})
	for i := range 9 {
		hint(i+2, i%5, Command{Verb: Push, A: 2})
		Command{Verb: Push, A: 2, Argument: i % 5}.Apply(seg.After)
	}
	for i := range seg.Events {
		seg.Events = append(seg.Events, Event{Kind: End, Invocation: i, Result: forerun.Result{Value: Object(0)}})
	}
	if states, err := Check(seg); err != nil {
		t.Errorf("after %d states: %v", states, err)
	}
}

// TestHintsBehindEffect: a search that follows the hints goes straight on, also behind an effect, which is a step and an event.
func TestHintsBehindEffect(t *testing.T) {
	push := Command{Verb: Push, A: 1}
	actions := map[string]*Action{"say": actions["say"], "push": {Versions: []Code{{Script: []Instruction{{Command: push}}, Range: 1}}}}
	acc := Mix(0, "1")
	seg := &Segment{
		Actions: actions,
		Events: []Event{
			{Kind: Begin, Action: "say", Input: Object(0)},
			{Kind: Begin, Invocation: 1, Action: "push", Input: Object(1)},
			{Kind: Begin, Invocation: 2, Action: "push", Input: Object(2)},
			{Kind: Outside, Reply: Text("say", Command{Argument: acc % 5})},
			{Kind: End, Result: actions["say"].Versions[0].Return(Mix(acc, "OK"), Object(0))},
			{Kind: End, Invocation: 1, Result: forerun.Result{Value: Object(0)}},
			{Kind: End, Invocation: 2, Result: forerun.Result{Value: Object(0)}},
		},
		Hints: []Hint{
			{At: 3, Command: Command{Verb: Incr}},
			{At: 3, Command: Command{Verb: Effect, Argument: acc % 5}, Acc: acc},
			{At: 4, Invocation: 2, Command: Command{Verb: Push, A: 1, Argument: 2}, Acc: 2},
			{At: 4, Invocation: 1, Command: Command{Verb: Push, A: 1, Argument: 1}, Acc: 1},
		},
		After: &Store{{'s', "1"}, {'l', "cb"}},
	}
	const straight = 1 + 7 + 3 // the first, events, and steps that are none
	if states, err := Check(seg); err != nil || states != straight {
		t.Errorf("%d states: %v", states, err)
	}
}

// TestHints: the search tries first the slots that may have done a hinted effect: by their accumulator if it is known, or those that begin or end. Of the others those that
// do nothing that is seen are: what is hinted at may come behind their end.
func TestHints(t *testing.T) {
	code, incr := &actions["say"].Versions[0], Command{Verb: Incr}
	s := &state{loose: []*node{{kind: function, code: code, acc: 5}, {kind: function, code: code, acc: 10}, {kind: starting, action: "say"}, {kind: function, action: "say", code: code, acc: 7, next: 2}}}
	for _, c := range []struct {
		hint  Hint
		order []int
		fit   int
	}{
		{Hint{Command: incr, Acc: 5}, []int{0, 1, 3, 2}, 1},
		{Hint{Command: incr, Acc: 10}, []int{1, 0, 3, 2}, 1},
		{Hint{Command: incr, Acc: -1}, []int{0, 1, 3, 2}, 2},
		{Hint{Action: "say"}, []int{2, 3, 0, 1}, 1},
		{Hint{Action: "twice"}, []int{3, 0, 1, 2}, 0},
		{Hint{Action: "say", Ended: true, Acc: 7}, []int{3, 0, 1, 2}, 1},
		{Hint{Action: "say", Ended: true, Acc: 5}, []int{3, 0, 1, 2}, 0},
		{Hint{Invocation: 1, Action: "say"}, []int{0, 1, 2, 3}, 0},
	} {
		r := &search{Segment: &Segment{}, hints: []Hint{c.hint}}
		if got, fit := r.order(s); !slices.Equal(got, c.order) || fit != c.fit {
			t.Errorf("with %+v the order is %v, and %d fit", c.hint, got, fit)
		}
	}
}
