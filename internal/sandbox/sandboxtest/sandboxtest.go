// Package sandboxtest is the suite that every sandbox.Maker passes. It runs
// Python programs inside sandboxes that try what they must not be able to, and
// looks from outside at what is left of them.
package sandboxtest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
)

// Options are what a test needs of the maker.
type Options struct {
	Egress    egress.List // allowed although they are denied kinds of addresses
	BindRoots []string    // host folders that specifications bind
	Names     netip.Addr  // the nameserver; the machine's own if it is invalid
}

// Run runs the suite. newMaker's makers are closed by their tests.
func Run(t *testing.T, newMaker func(*testing.T, Options) sandbox.Maker) {
	s := newSuite(t, newMaker)
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Identity", s.testIdentity},
		{"Files", s.testFiles},
		{"Replaced", s.testReplaced},
		{"Unwritable", s.testUnwritable},
		{"Proc", s.testProc},
		{"Mounts", s.testMounts},
		{"Sealed", s.testSealed},
		{"Processes", s.testProcesses},
		{"SystemCalls", s.testSystemCalls},
		{"Users", s.testUsers},
		{"FilterStays", s.testFilterStays},
		{"OtherProcesses", s.testOtherProcesses},
		{"EscapesByAddress", s.testEscapesByAddress},
		{"Sockets", s.testSockets},
		{"Interfaces", s.testInterfaces},
		{"InterfacesOfTheHost", s.testInterfacesOfTheHost},
		{"Options", s.testOptions},
		{"Groups", s.testGroups},
		{"Watches", s.testWatches},
		{"Counts", s.testCounts},
		{"SentDescriptors", s.testSentDescriptors},
		{"UnixSockets", s.testUnixSockets},
		{"ConnectPaths", s.testConnectPaths},
		{"ConnectAgain", s.testConnectAgain},
		{"NamesAgain", s.testNamesAgain},
		{"ConnectInterrupted", s.testConnectInterrupted},
		{"ConnectFlipped", s.testConnectFlipped},
		{"Doors", s.testDoors},
		{"Output", s.testOutput},
		{"Loopback", s.testLoopback},
		{"EgressTCP", s.testEgressTCP},
		{"EgressPlaces", s.testEgressPlaces},
		{"EgressTurned", s.testEgressTurned},
		{"EgressUDP", s.testEgressUDP},
		{"EgressDenied", s.testEgressDenied},
		{"EgressWaiting", s.testEgressWaiting},
		{"Confined", s.testConfined},
		{"ConfinedToNames", s.testConfinedToNames},
		{"HoldSquashed", s.testHoldSquashed},
		{"HoldWaiting", s.testHoldWaiting},
		{"HoldPromoted", s.testHoldPromoted},
		{"HoldTaken", s.testHoldTaken},
		{"HoldInside", s.testHoldInside},
		{"HoldClosed", s.testHoldClosed},
		{"HoldReadHosts", s.testHoldReadHosts},
		{"HoldReadNames", s.testHoldReadNames},
		{"HoldReadNameLate", s.testHoldReadNameLate},
		{"Held", s.testHeld},
		{"Asked", s.testAsked},
		{"AskedRefused", s.testAskedRefused},
		{"AskedReads", s.testAskedReads},
		{"AskedInside", s.testAskedInside},
		{"MemoryLimit", s.testMemoryLimit},
		{"ChangedLimits", s.testChangedLimits},
		{"ProcessLimit", s.testProcessLimit},
		{"TmpSize", s.testTmpSize},
		{"ResetProcesses", s.testResetProcesses},
		{"ResetFiles", s.testResetFiles},
		{"ResetLittle", s.testResetLittle},
		{"ResetConnections", s.testResetConnections},
		{"ResetForkBomb", s.testResetForkBomb},
		{"SettingsOfOthers", s.testSettingsOfOthers},
		{"Reachable", s.testReachable},
		{"Strike", s.testStrike},
		{"StrikeLarge", s.testStrikeLarge},
		{"Start", s.testStart},
		{"StartErrors", s.testStartErrors},
		{"Close", s.testClose},
		{"Concurrent", s.testConcurrent},
	} {
		t.Run(test.name, test.run)
	}
}

func newSuite(t *testing.T, newMaker func(*testing.T, Options) sandbox.Maker) *suite {
	t.Helper()
	s := &suite{python: findPython(t), host: Outside(), host6: Outside6()}
	s.replaced = filepath.Join(t.TempDir(), "replaced")
	fill(t, s.replaced, "before")
	options := Options{BindRoots: append(s.python.roots(), s.replaced), Names: s.host}
	for _, a := range []netip.Addr{s.host, s.host6} {
		if a.IsValid() {
			options.Egress = append(options.Egress, egress.Rule{Network: netip.PrefixFrom(a, a.BitLen())})
		}
	}
	s.maker = newMaker(t, options)
	t.Cleanup(func() {
		if err := s.maker.Close(); err != nil {
			t.Errorf("closing the maker: %v", err)
		}
	})
	s.closed = newMaker(t, Options{BindRoots: s.python.roots()})
	t.Cleanup(func() { s.closed.Close() })
	return s
}

type suite struct {
	python   python
	maker    sandbox.Maker // allows connections to host
	closed   sandbox.Maker // allows none that is not public
	replaced string        // a folder that maker's sandboxes may see
	host     netip.Addr    // an IPv4 address of this machine that is not a loopback; invalid if it has none
	host6    netip.Addr    // the same in IPv6
	count    int
}

// enforced skips the test if the maker says that it does not have this protection here.
func (s *suite) enforced(t *testing.T, what string) {
	t.Helper()
	for _, e := range s.maker.Enforced() {
		if e.What == what && !e.On {
			t.Skipf("%s is not enforced here: %s", what, e.Why)
		}
	}
}

// python is the interpreter of the tests.
type python struct{ executable, prefix string }

// findPython resolves it as the server does, and takes the system's where that one cannot be read.
func findPython(t *testing.T) python {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		out, err := exec.Command(name, "-c", "import sys; print(sys.executable, sys.base_prefix)").Output()
		if fields := strings.Fields(string(out)); err == nil && len(fields) == 2 {
			if _, err := os.ReadDir(fields[1]); err == nil {
				return python{fields[0], fields[1]}
			}
		}
	}
	t.Skip("there is no python3 that this user can read")
	return python{}
}

func (p python) roots() []string {
	if p.prefix == "/usr" {
		return nil
	}
	return []string{p.prefix}
}

func (p python) binds() []sandbox.Bind {
	if p.prefix == "/usr" {
		return nil
	}
	return []sandbox.Bind{{Host: p.prefix, Inside: p.prefix}}
}

// spec is a specification that runs a Python program.
func (s *suite) spec(program string) sandbox.Spec {
	s.count++
	return sandbox.Spec{
		ID: fmt.Sprintf("test-%d", s.count), Argv: []string{s.python.executable, "-I", "-S", "-c", program}, Env: []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
		Files: []sandbox.File{{Path: "/opt/fn/hello.txt", Data: []byte("hello"), Mode: 0o444}}, Binds: s.python.binds(),
		MemoryMiB: 128, Processes: 64, TmpMiB: 8, CodeMiB: 8,
	}
}

// outwardAddress finds an address for the servers that sandboxes connect to: one that counts as outside, but lies on the
// loopback of a network namespace that the tests have made. A machine's own network has none, and is left alone.
func outwardAddress(wanted func(netip.Addr) bool) netip.Addr {
	loopback, err := net.InterfaceByName("lo")
	if err != nil {
		return netip.Addr{}
	}
	addresses, _ := loopback.Addrs() // none is an answer too
	for _, a := range addresses {
		if p, err := netip.ParsePrefix(a.String()); err == nil && wanted(p.Addr()) && !p.Addr().IsLoopback() && !p.Addr().IsLinkLocalUnicast() {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// Outside is an IPv4 address that counts as outside in a test; invalid if there is none (see InNetwork).
func Outside() netip.Addr { return outwardAddress(netip.Addr.Is4) }

// Outside6 is the same in IPv6.
func Outside6() netip.Addr { return outwardAddress(netip.Addr.Is6) }

// patience bounds whatever a test waits for.
const patience = 2 * time.Minute

// eventually waits until done says so, for things that are seen only by looking.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, patience)
}
