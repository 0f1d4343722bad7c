package harness

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func TestProcessThatEndsIsNotAwaited(t *testing.T) {
	p, err := StartProcess(exec.Command("sh", "-c", "echo why >&2; exit 1"))
	if err != nil {
		t.Fatal(err)
	}
	err = p.Await(t.Context(), func(context.Context) error { return errors.New("not ready") })
	if err == nil || !strings.Contains(err.Error(), "sh ended: why") {
		t.Errorf("got %v", err)
	}
	p.Stop() // again does no harm
}

func TestStoppedProcessIsGone(t *testing.T) {
	p, err := StartProcess(exec.Command("sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Await(t.Context(), func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
	if ResidentKiB("self") == 0 || ProcessorTime(p.cmd.Process.Pid) < 0 {
		t.Error("a running process has no figures")
	}
	p.Stop()
	if p.cmd.ProcessState == nil || p.cmd.ProcessState.Success() {
		t.Errorf("the process: %v", p.cmd.ProcessState)
	}
}
