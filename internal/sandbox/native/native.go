// Package native makes sandboxes of Linux namespaces.
//
// Three kinds of processes take part, all of the one binary:
//
//   - The server, without privileges, holds a [Maker]. It parses all bytes of strangers: it accepts at the doors, and relays names and
//     datagrams.
//   - The helper ([HelperMain]) is root if the server was started as root. It makes and removes sandboxes, and answers their held calls
//     (package guard). It understands a few frames of fixed form on one inherited socket. When that socket closes, it ends with everything
//     that it made.
//   - The first stage of a sandbox ([InitMain]) runs inside the new namespaces. It builds the root and the network, gives up every
//     privilege and becomes the initializer by execve.
//
// As root each sandbox has a range of host user ids of its own and cgroup
// limits. As an ordinary user the same code runs with one user id and usually
// without cgroups; [Maker.Enforced] says what is missing.
package native

import (
	"path/filepath"
	"slices"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// Config says how the helper is started and what it may do. It cannot be changed afterwards.
type Config struct {
	DataDir    string       // names this instance's cgroups; leftovers of dead instances of the same folder are removed
	BindRoots  []string     // a Spec may bind only these host folders and their content
	Policy     guard.Policy // which outside addresses functions may reach
	MemoryMiB  int          // what all sandboxes together may use; 0: no bound
	CPUWeight  int          // their share of the processors beside other programs, 1 to 10000; 0: the kernel's default, 100
	ResolvConf string       // where the nameservers are found; default /etc/resolv.conf

	Executable string   // the binary that is also helper and first stage; default /proc/self/exe
	HelperArgs []string // its arguments to become the helper; default "sandbox-helper"
	InitArgs   []string // its arguments to become the first stage; default "sandbox-init"
}

// complete fills in the defaults and makes paths independent of the working folder.
func (c Config) complete() (Config, error) {
	if c.ResolvConf == "" {
		c.ResolvConf = "/etc/resolv.conf"
	}
	if c.Executable == "" {
		c.Executable = "/proc/self/exe"
	}
	if c.HelperArgs == nil {
		c.HelperArgs = []string{"sandbox-helper"}
	}
	if c.InitArgs == nil {
		c.InitArgs = []string{"sandbox-init"}
	}
	c.BindRoots = slices.Clone(c.BindRoots)
	for _, path := range append([]*string{&c.DataDir}, pointers(c.BindRoots)...) {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return c, err
		}
		*path = absolute
	}
	return c, nil
}

func pointers(list []string) (p []*string) {
	for i := range list {
		p = append(p, &list[i])
	}
	return p
}

// Descriptors that the two processes inherit.
const (
	HelperFD = 3 // the helper's socket to the server, SOCK_SEQPACKET
	setupFD  = 4 // the first stage's socket to the helper; 3 is the initializer's control socket
)

// Identity of the initializer and its handlers, as seen inside.
const (
	insideUID = 1000
	hostname  = "fn"
)

// Each sandbox owns one range of host ids, far from those that people and containers use.
const (
	firstHostID  = 1_000_000_000
	idsPerRange  = 65536
	rangesAtMost = 40_000
)

var (
	_ sandbox.Maker   = (*Maker)(nil)
	_ sandbox.Sandbox = (*serverSandbox)(nil)
)
