package node

import (
	"os/exec"
	"testing"
)

// The runtime's own tests are in tests; internal/launcher has those of the runtime as a whole.
func TestRuntime(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	if out, err := exec.Command(node, "--test", "tests").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
