package guard

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// inet is a struct sockaddr_in or sockaddr_in6.
func inet(address string) []byte {
	a := netip.MustParseAddrPort(address)
	family, tail := uint16(unix.AF_INET), make([]byte, 8)
	if a.Addr().Is6() {
		family, tail = unix.AF_INET6, make([]byte, 4)
	}
	b := binary.NativeEndian.AppendUint16(nil, family)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	if a.Addr().Is6() {
		b = append(b, 0, 0, 0, 0) // the flow
	}
	return append(append(b, a.Addr().AsSlice()...), tail...)
}

func TestParseSockaddr(t *testing.T) {
	for _, outside := range []string{"8.8.8.8:53", "10.0.0.1:80", "[2606:4700::1]:443", "[::ffff:10.0.0.1]:80", "[fe80::1]:1", "0.0.0.1:1", "255.255.255.255:9"} {
		if got := parseSockaddr(inet(outside)); got.Class != Outside || got.IP != netip.MustParseAddrPort(outside) {
			t.Errorf("%s: %+v", outside, got)
		}
	}
	for _, inside := range []string{"127.0.0.1:6379", "127.9.9.9:1", "0.0.0.0:80", "[::1]:80", "[::]:80", "[::ffff:127.0.0.1]:80", "[::ffff:0.0.0.0]:1"} {
		if got := parseSockaddr(inet(inside)); got.Class != Inside {
			t.Errorf("%s: %+v", inside, got)
		}
	}
	for what, b := range map[string][]byte{"nothing": nil, "one byte": {1}, "unix": {1, 0, '/', 'x', 0}, "unspecified": make([]byte, 16), "short": inet("8.8.8.8:53")[:15]} {
		if got := parseSockaddr(b); got.Class != Inside {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func FuzzParseSockaddr(f *testing.F) {
	f.Add(inet("8.8.8.8:53"))
	f.Add(inet("[::ffff:127.0.0.1]:80"))
	f.Add([]byte{1, 0, '/', 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		a := parseSockaddr(b)
		if a.Class == Outside && (a.IP.Addr().Unmap().IsLoopback() || !a.IP.IsValid()) {
			t.Errorf("%x is %v outside", b, a.IP)
		}
	})
}
