package native

import (
	"os/exec"
	"testing"
)

// TestEndedInitializer: the number of an initializer that was waited for may belong to another process, whose descendants are not the
// sandbox's.
func TestEndedInitializer(t *testing.T) {
	child := exec.Command("sleep", "100")
	if err := child.Start(); err != nil {
		t.Skip("there is no sleep here")
	}
	c := &helperSandbox{process: child.Process, group: &group{}}
	if pids, err := c.listed(); err != nil || len(pids) != 1 || pids[0] != child.Process.Pid {
		t.Errorf("while it lives: %v, %v", pids, err)
	}
	_ = child.Process.Kill()
	reused := func(root int) ([]int, error) {
		_ = child.Wait()
		return []int{root, 7}, nil
	}
	if pids, err := c.walked(reused); err != nil || len(pids) > 0 {
		t.Errorf("afterwards: %v, %v", pids, err)
	}
}
