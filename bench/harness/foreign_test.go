package harness

import (
	"os"
	"os/exec"
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
	for begin := others.Time(); others.Time() == begin; {
		time.Sleep(time.Millisecond) // until it got its turn: the test's own time limit ends it
	}
	if f := FindForeign(os.Getpid()); len(f.clocks) == 0 {
		t.Error("Nothing else runs on this machine")
	} else {
		for _, c := range f.clocks {
			if c == clockOf(os.Getpid()) || c == clockOf(busy.Process.Pid) {
				t.Error("A process of the tree counts as foreign")
			}
		}
	}
}
