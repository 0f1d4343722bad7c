package guard

import (
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestHostAddresses: an address counts from the moment in which the host has it, and until then.
func TestHostAddresses(t *testing.T) {
	runtime.LockOSThread() // and never unlocked: the thread with the other network ends with the test
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skip("a network of its own needs root: ", err)
	}
	var h hostAddresses
	ip := netip.MustParseAddr("10.1.2.3")
	for i, c := range []struct {
		command string
		own     bool
	}{{"link set lo up", false}, {"addr add 10.1.2.3/32 dev lo", true}, {"addr show", true}, {"addr del 10.1.2.3/32 dev lo", false}, {"addr add 10.1.2.3/32 dev lo", true}} {
		if out, err := exec.Command("sh", "-c", "ip "+c.command).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", c.command, err, out)
		}
		before := len(h.own)
		if own := h.now(func() ([]net.Addr, error) { return nil, unix.EMFILE }); len(own) != before {
			t.Errorf("step %d: what cannot be read has become %v", i, own)
		}
		if own := h.now(net.InterfaceAddrs); slices.Contains(own, ip) != c.own {
			t.Errorf("step %d: after `ip %s` there are %v", i, c.command, own)
		}
	}
	unix.Close(h.changes)
}
