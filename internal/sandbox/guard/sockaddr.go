package guard

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Shortest socket addresses that the kernel takes for the two families.
const (
	minInet4 = 16
	minInet6 = 24 // without the scope, RFC 2133
	maxAddr  = 128
)

// parseSockaddr reads a struct sockaddr that was copied out of a sandboxed process. What the kernel
// would refuse, and what has no meaning outside a sandbox, is Inside: the kernel answers it in the sandbox.
func parseSockaddr(b []byte) Address {
	if len(b) < 2 {
		return Address{}
	}
	var ip netip.Addr
	switch family := binary.NativeEndian.Uint16(b); {
	case family == unix.AF_INET && len(b) >= minInet4:
		ip = netip.AddrFrom4([4]byte(b[4:8]))
	case family == unix.AF_INET6 && len(b) >= minInet6:
		ip = netip.AddrFrom16([16]byte(b[8:24]))
	default:
		return Address{}
	}
	if a := ip.Unmap(); a.IsLoopback() || a.IsUnspecified() { // Linux connects "any" to the loopback
		return Address{}
	}
	return Address{Class: Outside, IP: netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:4]))}
}

// sockaddr is the address in the form that unix.Connect takes; a mapped IPv4 address keeps its IPv6 form.
func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}
