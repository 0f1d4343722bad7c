package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// inNetwork marks a run that has a network namespace of its own.
const inNetwork = "FORERUN_TEST_NETWORK"

// What it is set to: whether the loopback has its addresses yet.
const (
	closed = "closed"
	opened = "open"
)

// InNetwork runs the tests again in a network namespace of their own, whose loopback has addresses that count as outside:
// what sandboxes connect to in a test is never this machine's or another's real address. Only root can; done is false
// for others, and the tests that need such addresses are then skipped. In that namespace it gives the loopback its addresses, if
// none has.
func InNetwork() (code int, done bool) {
	if os.Getenv(inNetwork) == closed {
		if err := openTestNetwork(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1, true
		}
	}
	if os.Geteuid() != 0 || os.Getenv(inNetwork) != "" {
		return 0, false
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), inNetwork+"="+closed)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	err := cmd.Run()
	if failed, isExit := errors.AsType[*exec.ExitError](err); isExit {
		return failed.ExitCode(), true
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "no network namespace can be made for the tests:", err)
		return 1, true
	}
	return 0, true
}

// openTestNetwork gives the namespace's loopback its addresses.
func openTestNetwork() error {
	for _, arguments := range [][]string{
		{"link", "set", "lo", "up"},
		{"address", "add", "10.55.0.1/32", "dev", "lo"},
		{"-6", "address", "add", "fd55::1/128", "dev", "lo", "nodad"},
	} {
		if out, err := exec.Command("ip", arguments...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %q: %w: %s", arguments, err, out)
		}
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_unprivileged_port_start", []byte("53"), 0); err != nil { // for nameservers
		return err
	}
	return os.Setenv(inNetwork, opened) // for the processes that fuzz
}
