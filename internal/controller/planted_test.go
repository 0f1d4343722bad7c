package controller

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"forerun.dev/forerun/test/planted"
)

// root is the module's folder.
const root = "../.."

// plantedBugs break the promises of the cache in the controller. The simulation plants bugs in the machine. Each names the test that must find it.
var plantedBugs = map[string]planted.Bug{
	"TestCurrent": planted.New("the versions of a row are asked for at two moments (K1)", "internal/controller/skip.go",
		"now, lasting, err = store.Standing(context.Background(), keys...)\n",
		"for _, key := range keys {\n\t\t\tmore, _ := store.Versions(context.Background(), key)\n\t\t\tnow = append(now, more...)\n\t\t}\n"),
	"TestSkip": planted.New("a write is not announced (K1)", "internal/state/embedded/commit.go", "s.announce.tell(c.changed.keys, 0)\n", ""),
	"TestConfirmedMoment": planted.New("a row is confirmed of a moment behind the look at the store (K1)", "internal/controller/skip.go",
		"e.memo.Confirm(a.Row, mark, deployments)", "mark = e.memo.Mark(a.Row)\n\t\t\te.memo.Confirm(a.Row, mark, deployments)"),
	"TestRecordsThatEnd": planted.New("the end of a record's life is forgotten (K1)", "internal/state/embedded/read.go",
		"command.Decode(stored, now)\n\tif closeErr", "command.Decode(stored, time.Time{})\n\tif closeErr"),
	"TestCacheTTL": planted.New("the end of a result is forgotten (K1)", "internal/speculate/begin.go",
		"return !until.IsZero() && (m.now == nil || !m.now().Before(until))", "return false"),
	"TestUpdatedActions": planted.New("an update keeps rows (K1)", "internal/controller/resolve.go",
		"code := e.c.digests.Deployed(s.action)\n", "code := e.c.digests.Of(s.action)\n"),
	"TestSkippedStepIsUpdated": planted.New("an update of what a row rests on is not seen (K1)", "internal/controller/skip.go",
		"e.isFound(s) && e.areCurrent(a.Row.Below)", "e.isFound(s)"),
	"TestRowsGoWithTheirAction": planted.New("rows of old deployments stay", "internal/controller/homes.go",
		"return err == nil && c.digests.Deployed(action) != home.Code", "return action == nil"),
	"TestOthersRows": planted.New("tenants share their rows (K3)", "internal/controller/tables.go",
		"memo: a.memo.Tenant(namespace)", `memo: a.memo.Tenant("")`),
	"TestReachIsNotSkipped": planted.New("what reached the outside has no effect (K2)", "internal/controller/execution.go",
		"Reach: end.Reach,", "Reach: forerun.Inside,"),
}

func TestPlantedBugsApply(t *testing.T) {
	for _, bug := range plantedBugs {
		if _, err := bug.Plant(root); err != nil {
			t.Errorf("%s: %v", bug.Name, err)
		}
	}
}

// TestPlantedBugsAreFound builds the controller's tests over each bug. The test that is named beside it must fail.
func TestPlantedBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the controller many times")
	}
	for test, bug := range plantedBugs {
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			command := exec.Command(bug.Build(t, root), "-test.run=^"+test+"$")
			command.Env = append(os.Environ(), "FORERUN_SOAK=1m") // more rounds if the first finds nothing
			out, err := command.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("%s finds nothing of\n%v", test, bug)
			case !strings.Contains(string(out), "--- FAIL: "+test):
				t.Errorf("%s did not run to its end: %v: %s", test, err, out)
			}
		})
	}
}
