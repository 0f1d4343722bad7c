package trace

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// log is a log of records.
type log map[forerun.ActivationID]*forerun.Activation

func (l log) find(id forerun.ActivationID) (*forerun.Activation, error) {
	if a, ok := l[id]; ok {
		return a, nil
	}
	return nil, forerun.Errorf(forerun.NotFound, string(id), "none")
}

// add adds a record of a time in milliseconds, and returns its id.
func (l log) add(name string, from, to int64, change func(*forerun.Activation)) string {
	id := forerun.ActivationID(fmt.Sprintf("%032d", len(l)))
	at := time.UnixMilli(from)
	a := &forerun.Activation{ID: id, Action: forerun.Name{Namespace: "guest", Entity: name}, Timeline: forerun.Timeline{
		Slot: len(l) + 10, Queued: at, Launched: at, Finished: time.UnixMilli(to), Committed: time.UnixMilli(to),
	}}
	change(a)
	l[id] = a
	return string(id)
}

func sequence(logs ...string) func(*forerun.Activation) {
	return func(a *forerun.Activation) {
		a.Logs, a.Annotations = logs, []forerun.KeyValue{{Key: "kind", Value: json.RawMessage(`"sequence"`)}}
	}
}

func nothing(*forerun.Activation) {}

// TestGather: the parts of a workflow, what functions called, and squashed slots are lines of one trace, each where it belongs.
func TestGather(t *testing.T) {
	l := make(log)
	called := l.add("called", 2, 3, nothing)
	child := l.add("one", 1, 3, func(a *forerun.Activation) {
		a.Calls, a.Logs = []forerun.ActivationID{forerun.ActivationID(called)}, []string{strings.Repeat("0", 32)} // which it wrote
		a.Timeline.Inline = 2
	})
	root := l.add("chain", 1, 9, func(a *forerun.Activation) {
		sequence("stdout: hello", child)(a)
		a.Action.Package = "p"
		a.Tally = &forerun.Tally{InOrder: 20 * time.Millisecond, Slots: []forerun.SquashedSlot{{
			Action: forerun.Name{Namespace: "other", Package: "q", Entity: "late"},
			Timeline: forerun.Timeline{
				Slot: 3, Queued: time.UnixMicro(1500), Launched: time.UnixMicro(1500), Squashed: time.UnixMicro(2500), Speculative: true,
				Cause: &forerun.Reason{Code: forerun.ReasonStaleRead, Slot: forerun.SlotName{Number: 11, Action: "one"}, Record: "k"},
			},
		}}}
	})
	traced, err := Gather(forerun.ActivationID(root), l.find)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range traced.Slots {
		s := &traced.Slots[i]
		line := fmt.Sprint("#", s.Row, " ", s.Depth, " ", s.Title, ":", s.Note)
		for _, b := range s.Bars {
			line += fmt.Sprint(" ", b.Look, " ", b.From, "-", b.To)
		}
		got = append(got, line)
	}
	const want = `#1 0 p/chain: workflow 1000-9000
#2 1 one (inline 2): waits 1000-1000 ended 3000-3000 runs 1000-3000
#3 1 q/late:squashed: it had read "k" before one #2 wrote it waits 1500-1500 ended 2500-2500 squashed 1500-2500
#4 2 called: waits 2000-2000 ended 3000-3000 runs 2000-3000`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("it is\n%s", text)
	}
	if traced.InOrder != 20_000 || traced.Wasted != 1000 || !traced.Cites || traced.Times == "" || traced.Counts == "" {
		t.Errorf("%+v", traced)
	}
	text, err := json.Marshal(traced)
	var read Trace
	if err != nil || json.Unmarshal(text, &read) != nil || len(read.Slots) != 4 || read.Slots[2].Note != traced.Slots[2].Note || !read.Cites {
		t.Errorf("its JSON is %s (%v)", text, err)
	}
}

// TestGatherOfMany: all activations that an invocation may have are in its trace, and what is not there ends the search.
func TestGatherOfMany(t *testing.T) {
	const parts = 1500
	l, ids := make(log), make([]string, parts)
	for n := range parts {
		ids[n] = l.add(fmt.Sprint("x", n+1), 1, 2, nothing)
	}
	root := l.add("chain", 1, 2, sequence(ids...))
	traced, err := Gather(forerun.ActivationID(root), l.find)
	if err != nil || len(traced.Slots) != parts+1 || traced.Slots[parts].Title != "x1500" {
		t.Errorf("%+v, %v", traced, err)
	}
	delete(l, forerun.ActivationID(ids[7]))
	if _, err := Gather(forerun.ActivationID(root), l.find); forerun.KindOf(err) != forerun.NotFound {
		t.Errorf("without a part: %v", err)
	}
	trigger := l.add("bell", 1, 2, func(a *forerun.Activation) { a.Timeline = forerun.Timeline{} })
	if _, err := Gather(forerun.ActivationID(trigger), l.find); forerun.KindOf(err) != forerun.NotFound || !strings.Contains(err.Error(), "no trace") {
		t.Errorf("of a trigger: %v", err)
	}
}
