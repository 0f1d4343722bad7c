package harness

import (
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestForeignTimeIsOfOthers(t *testing.T) {
	busy := exec.Command("sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}()
	others := &Foreign{clocks: []int32{clockOf(busy.Process.Pid)}}
	for begin := others.Read(); others.Read().Since(begin) == 0; {
		time.Sleep(time.Millisecond) // until it got its turn: the test's own time limit ends it
	}
	f := FindForeign(os.Getpid())
	if len(f.clocks) == 0 {
		t.Error("nothing else runs on this machine")
	}
	for _, own := range []int{os.Getpid(), busy.Process.Pid, kernelThreads} {
		if slices.Contains(f.clocks, clockOf(own)) {
			t.Errorf("process %d counts as foreign", own)
		}
	}
}

func TestTimeOfThoseThatEndedIsLeftOut(t *testing.T) {
	if got := (Reading{5, 0, 9}).Since(Reading{3, 4, 9}); got != 2 {
		t.Errorf("%d", got)
	}
}
