package workloads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// The addresses of the companies, in a network that only this process and what it starts are in: functions may be allowed any
// private network, but never a loopback address.
const (
	actAddress  = "10.77.0.1" // those that do something
	ReadAddress = "10.77.0.2" // those that answer questions
)

// inNetwork is set in the environment of the process that is in the network.
const inNetwork = "FORERUN_BENCH_NETWORK"

// Enter runs this program again in a network of its own; there, it returns entered == true at once. Else the program is to
// end with the code. What ends ctx is told to it. Only root can make networks.
func Enter(ctx context.Context) (code int, entered bool, err error) {
	if os.Getenv(inNetwork) != "" {
		return 0, true, open()
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), inNetwork+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err = cmd.Run()
	if failed, isExit := errors.AsType[*exec.ExitError](err); isExit {
		return failed.ExitCode(), false, nil
	}
	if err != nil {
		return 1, false, fmt.Errorf("no network can be made for the workloads (root can): %w", err)
	}
	return 0, false, nil
}

// open gives the network its addresses.
func open() error {
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "replace", actAddress + "/32", "dev", "lo"},
		{"address", "replace", ReadAddress + "/32", "dev", "lo"},
	} {
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %q: %w: %s", arguments, err, out)
		}
	}
	return nil
}
