package native

import (
	"net/netip"
	"slices"
	"testing"
)

// TestHostsThatWereStored: what is refused today, but was stored with an action before, names no host, and keeps no other from being one.
func TestHostsThatWereStored(t *testing.T) {
	var r readHosts
	got := r.name([]string{"a.example:0", "10.0.0.1:0", "fe80::1%eth0", "256.0.0.1", "b.example", "10.0.0.2:80"})
	if want := netip.MustParseAddrPort("10.0.0.2:80"); !slices.Equal(got, []netip.AddrPort{want}) || !r.permits(want) {
		t.Errorf("addresses are %v", got)
	}
	if len(r.names) != 1 || r.names["b.example"] == nil {
		t.Errorf("names are %v", r.names)
	}
	for _, port := range []uint16{0, 80} {
		if r.permits(netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), port)) {
			t.Errorf("port %d is let through", port)
		}
	}
}
