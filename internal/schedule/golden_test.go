package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"forerun.dev/forerun/internal/forerun"
)

// TestGolden replays the traces of testdata. Each file begins with a description. Each command is an event, and its output is what the
// machine decides and where the phases are then. Run with -rewrite to write the outputs again, and review the difference.
//
//	machine task processors=2        a new machine, at 0 ms
//	ask a class=4 tenant=t kind=k ahead at-once learn
//	                                 an activation asks; without a tenant it is of "t", without a class it needs a processor
//	waits a, answered a, promoted a, ended a, killed a
//	used a cpu=60ms delayed=10ms     of processor time, and it had to wait for a processor that long
//	processors 1
//	after 10ms                       time passes
//	starts a b due=1 ahead=1 sandboxes=2 starting=1 service=1s start=50ms waited=1s
//	                                 whether a queue gets one more sandbox, where a and b have sandboxes
//	figure                           draws what phases do under a policy; see figure_test.go
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var s story
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "machine":
				s = story{machine: New(settingsOf(t, d))}
				return ""
			case "figure":
				return drawFigure(t, d)
			case "starts":
				return fmt.Sprintln(s.machine.Starts(queueOf(t, d)))
			}
			return s.step(t, d)
		})
	})
}

// story is a machine at a time.
type story struct {
	machine *Machine
	now     time.Duration
}

func settingsOf(t *testing.T, d *datadriven.TestData) Settings {
	policy, err := ParsePolicy(d.CmdArgs[0].Key)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	s := Settings{Policy: policy, Processors: 1}
	d.MaybeScanArgs(t, "processors", &s.Processors)
	for _, arg := range d.CmdArgs {
		if arg.Key != "parts" {
			continue
		}
		for _, text := range arg.Vals {
			var p Part
			if _, err := fmt.Sscanf(text, "%d:%d", &p.UpTo, &p.Slabs); err != nil {
				d.Fatalf(t, "%q: %v", text, err)
			}
			s.Parts = append(s.Parts, p)
		}
	}
	return s
}

func (s *story) step(t *testing.T, d *datadriven.TestData) string {
	decisions := s.machine.Step(s.now, s.event(t, d))
	var out strings.Builder
	for _, decision := range decisions {
		fmt.Fprintf(&out, "%s: %v\n", decision.Activation, decision.Kind)
	}
	if err := s.machine.invariant(); err != nil {
		fmt.Fprintf(&out, "WRONG: %v\n", err)
	}
	return out.String() + s.places()
}

func (s *story) event(t *testing.T, d *datadriven.TestData) Event {
	var text string
	if len(d.CmdArgs) > 0 {
		text = d.CmdArgs[0].Key
	}
	id := forerun.ActivationID(text)
	switch d.Cmd {
	case "ask":
		class, e := int(Core), Asks{Activation: id, Tenant: "t", Ahead: d.HasArg("ahead"), AtOnce: d.HasArg("at-once"), Learn: d.HasArg("learn")}
		d.MaybeScanArgs(t, "class", &class)
		d.MaybeScanArgs(t, "tenant", &e.Tenant)
		d.MaybeScanArgs(t, "weight", &e.Weight)
		d.MaybeScanArgs(t, "kind", &e.Kind)
		e.Class = Class(class)
		return e
	case "waits":
		return Waits{id}
	case "answered":
		return Answered{id}
	case "promoted":
		return Promoted{id}
	case "ended", "killed":
		return Ended{id, d.Cmd == "killed"}
	case "used":
		e := Used{Activation: id, CPU: duration(t, d, d.CmdArgs[1].Vals[0])}
		if len(d.CmdArgs) > 2 {
			e.Delayed = duration(t, d, d.CmdArgs[2].Vals[0])
		}
		return e
	case "processors":
		e := Processors{}
		if _, err := fmt.Sscan(text, &e.Number); err != nil {
			d.Fatalf(t, "%v", err)
		}
		return e
	case "after":
		s.now += duration(t, d, text)
		return Passed{}
	}
	d.Fatalf(t, "there is no command %q", d.Cmd)
	return nil
}

// queueOf reads a queue. Without other words its activations occupy a sandbox for 1 s, and a start takes 100 ms.
func queueOf(t *testing.T, d *datadriven.TestData) Queue {
	q := Queue{Service: time.Second, Start: 100 * time.Millisecond}
	d.MaybeScanArgs(t, "due", &q.Due)
	d.MaybeScanArgs(t, "ahead", &q.Ahead)
	d.MaybeScanArgs(t, "sandboxes", &q.Sandboxes)
	d.MaybeScanArgs(t, "starting", &q.Starting)
	for _, arg := range d.CmdArgs {
		switch {
		case len(arg.Vals) == 0:
			q.Serving = append(q.Serving, forerun.ActivationID(arg.Key))
		case arg.Key == "service":
			q.Service = duration(t, d, arg.Vals[0])
		case arg.Key == "start":
			q.Start = duration(t, d, arg.Vals[0])
		case arg.Key == "waited":
			q.Waited, q.SinceLast = duration(t, d, arg.Vals[0]), duration(t, d, arg.Vals[0])
		}
	}
	return q
}

func duration(t *testing.T, d *datadriven.TestData, text string) time.Duration {
	took, err := time.ParseDuration(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return took
}

// places draws where phases are, each with its class.
func (s *story) places() string {
	var lists [away + 1][]string
	for id, p := range s.machine.phases {
		lists[p.place] = append(lists[p.place], fmt.Sprintf("%s(%d)", id, p.class))
	}
	u := s.machine.Use()
	out := fmt.Sprintf("%v: %d of %d slabs", s.now, u.Used, u.Slabs)
	for place, list := range lists {
		if slices.Sort(list); len(list) > 0 {
			out += fmt.Sprintf("; %v %s", [...]string{"waiting", "in front", "in the back", "at a door"}[place], strings.Join(list, " "))
		}
	}
	return out + "\n"
}

// TestTenantsAreForgotten: what is known of tenants that are gone does not add up.
func TestTenantsAreForgotten(t *testing.T) {
	for _, p := range Policies() {
		m := New(Settings{Policy: p, Processors: 2})
		m.Step(0, Asks{Activation: "stays", Tenant: "stays", Class: 1})
		for i := range 1000 {
			id := forerun.ActivationID(fmt.Sprint("a", i))
			m.Step(time.Duration(i)*time.Millisecond, Asks{Activation: id, Tenant: string(id), Class: 1})
			m.Step(time.Duration(i)*time.Millisecond, Ended{Activation: id})
		}
		if len(m.tenants) > 2 || len(m.phases) != 1 {
			t.Errorf("%s: %d tenants and %d phases are known", p, len(m.tenants), len(m.phases))
		}
	}
}

// TestHabitsAreBounded: a tenant with many kinds of phases has only its own forgotten, and the oldest first.
func TestHabitsAreBounded(t *testing.T) {
	h := habits{of: make(map[string]*habit)}
	h.learn("other", "other", time.Second, 1)
	for i := range 2 * maxOwnKinds {
		h.learn("t", fmt.Sprint("kind ", i), time.Second, 1)
	}
	if len(h.order) != 1+maxOwnKinds || len(h.of) != 1+maxOwnKinds || h.of["other"] == nil || h.of["kind 0"] != nil {
		t.Errorf("%d kinds are known, and %d in order", len(h.of), len(h.order))
	}
	for i := range 2 * maxKinds {
		h.learn(fmt.Sprint("tenant ", i), fmt.Sprint("kind ", i), time.Second, 1)
	}
	if len(h.order) != maxKinds || len(h.of) != maxKinds || h.of["other"] != nil {
		t.Errorf("%d kinds are known, and %d in order", len(h.of), len(h.order))
	}
}

// TestUse: demotions and reclassifications are counted, and so is who waits at a door.
func TestUse(t *testing.T) {
	m := New(Settings{Policy: Microtask, Processors: 1})
	for _, id := range []forerun.ActivationID{"a", "b", "c"} {
		m.Step(0, Asks{Activation: id, Class: Core / 2})
	}
	m.Step(time.Second, Used{Activation: "a", CPU: time.Second})
	m.Step(time.Second, Waits{"b"})
	if got, want := m.Use(), (Use{Slabs: 16, Used: 8, Known: 3, Away: 1, Demoted: 0, Reclassified: 1}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	m.Step(3*time.Second, Asks{Activation: "d", Class: Core, Tenant: "another"})
	if u := m.Use(); u.Demoted != 1 {
		t.Errorf("%+v; want that one was demoted", u)
	}
	if u := New(Settings{Policy: Oversubscribe, Processors: 1}).Use(); u != (Use{}) {
		t.Errorf("%+v; want no slabs without a bound", u)
	}
}
