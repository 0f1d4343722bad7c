package simulation

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"forerun.dev/forerun/test/planted"
)

// folder is where the files of the bugs are.
const folder = ".."

// bugs break the promises of package schedule, one each. The simulation must find them.
var bugs = []planted.Bug{
	planted.New(
		"a wake-up is lost when two phases end at once", "serve.go",
		"func (m *Machine) serve() {\n",
		"var served = Hold - Hold - 1\n\nfunc (m *Machine) serve() {\n\tif served == m.now {\n\t\treturn\n\t}\n\tserved = m.now\n",
	),
	planted.New("a killed activation keeps its slabs", "machine.go", "\tm.leaves(p)\n\tp.tenant.phases--\n", "\tif !killed {\n\t\tm.leaves(p)\n\t}\n\tp.tenant.phases--\n"),
	planted.New("no aging", "serve.go", "aged: m.now-p.asked >= patience", "aged: false"),
	planted.New("ahead before due", "serve.go", "func(f *phase) bool { return f.ahead })", "func(f *phase) bool { return p.ahead })"),
	planted.New("a quantum does not end", "phase.go", "return p.cpu-p.atFront >= m.habits.quantum(p.kind) || m.now-p.since >= Hold", "return false"),
	planted.New("the weight of a tenant is ignored", "tenant.go", "t.weight = max(1, weight)", "t.weight = 1"),
	planted.New("a phase keeps its slabs at a door", "machine.go", "\t\t\tm.leaves(p)\n\t\t\tp.place, p.gauged", "\t\t\tp.place, p.gauged"),
	planted.New("one that computes at a door counts as one that waits", "phase.go", "case p.place == away && uses", "case p.place == away && false && uses"),
	planted.New("a sandbox starts for phases that wait", "starts.go", "if q.due > 0 || !inOrder {", "if q.due > 1 || !inOrder {"),
	planted.New("activations that wait for each other get no sandbox", "starts.go", "p == nil || p.place != away", "p != nil"),
	planted.New("a class is learnt from one phase", "habits.go", "sure      = 3 ", "sure      = 1 "),
	planted.New("a small phase overtakes a large one for good", "serve.go", "f.held < v.need && f.since", "f.held < 0 && f.since"),
}

// TestPlantedBugsApply: a place that has changed so that a bug cannot be planted there is found at once, however the tests are run.
func TestPlantedBugsApply(t *testing.T) {
	for _, b := range bugs {
		if _, err := b.Plant(folder); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}

var finding = regexp.MustCompile(`seed \d+: .*`)

// TestPlantedBugsAreFound builds the simulation over each broken machine. Within the seeds of TestSeeds it must find a problem.
//
// One bug alone, by the beginning of its name with _ for spaces, with its story:
//
//	FORERUN_STORY=on go test -count=1 -v -run TestPlantedBugsAreFound/no_aging ./internal/schedule/simulation
func TestPlantedBugsAreFound(t *testing.T) {
	if underRace || testing.Short() {
		t.Skip("it builds the machine several times")
	}
	for _, b := range bugs {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			t.Logf("%v", b)
			search := exec.Command(b.Build(t, folder), "-test.run=^TestSeeds$", "-test.v")
			search.Env = append(os.Environ(), "FORERUN_SEED=0", "FORERUN_SEEDS=20000")
			out, err := search.CombinedOutput()
			found := finding.Find(out)
			switch {
			case err == nil:
				t.Fatal("nothing was found")
			case found == nil:
				t.Fatalf("it failed, and found nothing: %v: %s", err, out)
			}
			t.Logf("%s", found)
			if os.Getenv("FORERUN_STORY") == "on" {
				t.Logf("%s", out)
			}
		})
	}
}
