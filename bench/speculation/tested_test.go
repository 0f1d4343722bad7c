package speculation

import (
	"testing"

	"forerun.dev/forerun/bench/harness"
	"forerun.dev/forerun/bench/speculation/cluster"
	"forerun.dev/forerun/bench/workloads"
)

// TestApplicationsCanBePlayed: each of the sixteen gains in the simulation, and more on many processors than on two.
func TestApplicationsCanBePlayed(t *testing.T) {
	all, err := workloads.Applications()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		p := &workloads.Profile{Application: a}
		for _, f := range a.Functions {
			p.Profiles = append(p.Profiles, workloads.FunctionProfile{Name: f, Share: 1, Wait: 8})
		}
		costs := costsOf(p, 3*float64(len(a.Functions)))
		played, err := cluster.Tested(a.Slug, a.Composition, a.Entry, a.Calls, costs, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		play := func(processors int, mode string) float64 {
			return harness.Mean(cluster.Play(cluster.Run{Application: played, Mode: mode, Processors: processors, Rate: 5, Requests: 400}).MS)
		}
		gain := func(processors int) float64 { return play(processors, "off") / play(processors, "all") }
		two, many := gain(2), gain(processors)
		if two < 1 || many < two || many > float64(len(a.Functions)) {
			t.Errorf("%s: %.2f on two processors, %.2f on %d", a.Slug, two, many, processors)
		}
		answers := func(mode string) float64 {
			return cluster.Play(cluster.Run{Application: played, Mode: mode, Processors: 20, InFlight: 20, Requests: 200}).PerSecond
		}
		if served := answers("all") / answers("off"); served < 1 || served > float64(len(a.Functions)) {
			t.Errorf("%s: %.2f times the answers, one request under way for each processor", a.Slug, served)
		}
	}
}

// TestCostsOf: what the processors did for a request is shared by the functions that ran, and what never ran waits as long as
// others.
func TestCostsOf(t *testing.T) {
	p := &workloads.Profile{Application: &workloads.Application{}, Profiles: []workloads.FunctionProfile{
		{Name: "a", Share: 1, Wait: 10}, {Name: "b", Share: 0.5, Wait: 4, Acts: 1}, {Name: "c"},
	}}
	got := costsOf(p, 6)
	want := map[string]cluster.Cost{
		"a": {CPU: milliseconds(4), Wait: milliseconds(10)},
		"b": {CPU: milliseconds(4), Wait: milliseconds(4), Acts: true},
		"c": {CPU: milliseconds(4), Wait: milliseconds(8)},
	}
	for name, c := range want {
		if got[name] != c {
			t.Errorf("%s: %+v, want %+v", name, got[name], c)
		}
	}
}
