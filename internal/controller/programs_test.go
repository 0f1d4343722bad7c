package controller

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestInlineFunctionsAreDeployedWithTheirComposition: the statistics of inline functions are forgotten when their composition is deployed again.
func TestInlineFunctionsAreDeployedWithTheirComposition(t *testing.T) {
	var programs programs
	var digests forerun.Digests
	deployed := func(at time.Time) forerun.Digest {
		return digests.Deployed(programs.inline(&forerun.Action{Name: forerun.Name{Namespace: "ns", Entity: "order"}, Updated: at}, "nodejs:20"))
	}
	first, again := time.Unix(1, 0), time.Unix(2, 0)
	once, twice, later := deployed(first), deployed(first), deployed(again)
	if once != twice {
		t.Error("of one deployment there are two")
	}
	if once == later {
		t.Error("deployed again, it is the same")
	}
}

// TestCompiledProgramsAreBounded: programs of small documents can be large, and the controller keeps a bounded number of them.
func TestCompiledProgramsAreBounded(t *testing.T) {
	var programs programs
	document := `{"type":"sequence","components":[` + strings.Repeat(`{"type":"retry","count":1},`, 800) + `{"type":"empty"}]}`
	var actions []*forerun.Action // so that none is forgotten
	largest := 0
	for range 40 {
		a := &forerun.Action{Exec: forerun.Exec{Kind: "nodejs:20"}, Annotations: []forerun.KeyValue{{Key: "conductor", Value: json.RawMessage(document)}}}
		p, err := programs.of(a)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := programs.of(a); again != p {
			t.Error("what was just compiled is not kept")
		}
		actions = append(actions, a)
		all := 0
		for _, p := range programs.compiled {
			all += sizeOf(p)
		}
		if all != programs.bytes || all > maxProgramBytes {
			t.Fatalf("%d bytes are kept, and %d are counted", all, programs.bytes)
		}
		largest = max(largest, len(programs.compiled))
	}
	if largest < 2 || largest == len(actions) {
		t.Errorf("of %d programs %d were kept", len(actions), largest)
	}
}
