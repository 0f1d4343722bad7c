package controller

import (
	"testing"
	"time"

	"forerun.dev/forerun/internal/forerun"
)

// TestInlineFunctionsAreDeployedWithTheirComposition: what is known of them is forgotten when it is deployed again.
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
