package behaviour

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

var home = forerun.Home{Action: "/ns/f"}

// execution makes one that reads a record at some versions, and whose row stands unless why says not.
func execution(input, output string, why *forerun.Reason, versions ...forerun.Version) Execution {
	row := &forerun.Row{Output: json.RawMessage(output), Exact: why == nil, Effects: why != nil, Why: why}
	for i, v := range versions {
		row.Reads = append(row.Reads, forerun.Seen{Key: forerun.Key{Name: fmt.Sprint(i)}, Version: v})
	}
	return Execution{Input: json.RawMessage(input), Row: row, Took: 4 * time.Millisecond, CPU: time.Millisecond}
}

func TestClasses(t *testing.T) {
	wrote, reached := forerun.Because(forerun.ReasonWrote), forerun.Because(forerun.ReasonReached)
	for name, c := range map[string]struct {
		executions []Execution
		class      Class
		safe       bool
	}{
		"nothing":        {nil, Unknown, false},
		"computes":       {[]Execution{execution(`{}`, `1`, nil), execution(`{"a":1}`, `2`, nil)}, Computational, true},
		"reads":          {[]Execution{execution(`{}`, `1`, nil, 3), execution(`{}`, `2`, nil, 4)}, Stateful, true},
		"writes":         {[]Execution{execution(`{}`, `1`, wrote)}, Stateful, false},
		"differs":        {[]Execution{execution(`{}`, `1`, nil, 3), execution(`{}`, `2`, nil, 3)}, Environmental, false},
		"reaches":        {[]Execution{execution(`{}`, `1`, reached), execution(`{}`, `2`, reached)}, OutsideWorld, false},
		"reached before": {[]Execution{execution(`{}`, `1`, reached), execution(`{}`, `1`, nil)}, OutsideWorld, false},
	} {
		var m Monitor
		m.Count(home)
		for _, x := range c.executions {
			m.Note(home, x)
		}
		if a := m.Advice()[0]; a.Class != c.class || a.Safe() != c.safe {
			t.Errorf("%s: %s, safe: %v", name, a.Class, a.Safe())
		}
	}
}

func TestRepeatedInputs(t *testing.T) {
	var m Monitor
	for _, x := range []Execution{
		execution(`{"a":1}`, `1`, nil, 3), execution(`{"a":1}`, `1`, nil, 3), execution(`{"a":2}`, `1`, nil, 3), execution(`{"a":1}`, `1`, nil, 4), execution(`{"a":1}`, `1`, nil, 4),
	} {
		m.Note(home, x)
	}
	if a := m.Advice()[0]; a.Followed != 5 || a.Repeated != 3 || a.Current != 2 || a.Took != 4*time.Millisecond || a.CPU != time.Millisecond {
		t.Errorf("%+v", a)
	}
}

// TestUnneededMembers: a member is named that changed alone, and changed nothing. One that ever changed something is not.
func TestUnneededMembers(t *testing.T) {
	var m Monitor
	for n := range 4 {
		m.Note(home, execution(fmt.Sprintf(`{"id":%d,"city":"Ulm"}`, n), `"Ulm"`, nil))
	}
	m.Note(home, execution(`{"id":3,"city":"Bonn"}`, `"Bonn"`, nil))
	m.Note(home, execution(`{"id":4,"city":"Köln","both":true}`, `"Köln"`, nil))
	if a := m.Advice()[0]; !slices.Equal(a.Unneeded, []string{"id"}) {
		t.Errorf("%q", a.Unneeded)
	}
	m.Note(home, execution(`{"id":9,"city":"Bonn"}`, `"Bonn 9"`, nil))
	if a := m.Advice()[0]; len(a.Unneeded) != 0 {
		t.Errorf("then %q", a.Unneeded)
	}
}

func TestBounds(t *testing.T) {
	var m Monitor
	watched := 0
	for n := range 100 * WatchEvery {
		if m.Count(home) {
			watched++
		}
		m.Note(home, execution(fmt.Sprintf(`{"n":%d}`, n), `1`, nil))
	}
	if a := m.actions[home]; watched != WatchFirst+100 || len(a.inputs) != maxInputs {
		t.Errorf("%d are watched, and %d inputs are kept", watched, len(a.inputs))
	}
	for n := range 3 * maxActions {
		m.Count(forerun.Home{Action: fmt.Sprint(n)})
	}
	if n := len(m.Advice()); n != maxActions {
		t.Errorf("%d actions are kept", n)
	}
	if m.Count(forerun.Home{Action: "one more"}) {
		t.Error("a new action of a full table is followed from its first execution on")
	}
	m.Forget(func(forerun.Home) bool { return true })
	if n := len(m.Advice()); n != 0 {
		t.Errorf("%d actions are left", n)
	}
}

// TestNamesOfMembersAreBounded: of the names that callers make up a few short ones are kept, and those that were known before go on.
func TestNamesOfMembersAreBounded(t *testing.T) {
	var m Monitor
	longest := strings.Repeat("x", maxName)
	changes := func(name string, outputs ...string) {
		for n, output := range outputs {
			m.Note(home, execution(fmt.Sprintf(`{%q:%d,"all":true}`, name, n), output, nil))
		}
	}
	changes(longest+"x", `0`, `0`)
	changes(longest, `0`, `0`)
	for n := range 3 * maxNames {
		changes(fmt.Sprint("made up ", n), `0`, `0`)
	}
	if names := m.Advice()[0].Unneeded; len(names) != maxNames || !slices.Contains(names, longest) || slices.Contains(names, longest+"x") || len(m.actions[home].members) != maxNames {
		t.Errorf("%d names are told, and %d kept: %q", len(names), len(m.actions[home].members), names)
	}
	changes(longest, `0`, `1`)
	if names := m.Advice()[0].Unneeded; slices.Contains(names, longest) {
		t.Error("a name is told whose member changed the output since")
	}
}

// BenchmarkNote takes an execution with an input of three members and ten reads into account.
func BenchmarkNote(b *testing.B) {
	var m Monitor
	versions := make([]forerun.Version, 10)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		m.Note(home, execution(fmt.Sprintf(`{"id":%d,"city":"Ulm","day":%d}`, n%100, n%7), `{"is":1}`, nil, versions...))
	}
}
