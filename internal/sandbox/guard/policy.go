package guard

import (
	"fmt"
	"net"
	"net/netip"
)

// Policy says which outside addresses functions may reach.
type Policy struct {
	Allowed []netip.Prefix // reachable although the rules below deny them; never a loopback
}

// denied lists what is not the public internet, with the reason that a function is told.
var denied = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "the unspecified network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "a private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "a carrier's private network"},
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local, where clouds keep their metadata"},
	{netip.MustParsePrefix("172.16.0.0/12"), "a private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "reserved"},
	{netip.MustParsePrefix("192.88.99.0/24"), "reserved"},
	{netip.MustParsePrefix("192.168.0.0/16"), "a private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), "reserved"},
	{netip.MustParsePrefix("198.51.100.0/24"), "reserved"},
	{netip.MustParsePrefix("203.0.113.0/24"), "reserved"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud's metadata"}, // Azure's, in public space
	{netip.MustParsePrefix("::/128"), "the unspecified address"},
	{netip.MustParsePrefix("::1/128"), "a loopback"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "reserved"},
	{netip.MustParsePrefix("100::/64"), "reserved"},
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo and other protocol assignments
	{netip.MustParsePrefix("2001:db8::/32"), "reserved"},
	{netip.MustParsePrefix("3fff::/20"), "reserved"},
	{netip.MustParsePrefix("5f00::/16"), "reserved"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "link-local, where clouds keep their metadata"},
	{netip.MustParsePrefix("fec0::/10"), "a private network"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// Where an IPv6 address carries an IPv4 address, and at which byte.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12}, // mapped
	{netip.MustParsePrefix("::/96"), 12},         // compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64
	{netip.MustParsePrefix("2002::/16"), 2},     // 6to4
}

// Check returns why ip may not be reached, "" if it may. own are the host's own addresses at this moment.
func (p Policy) Check(ip netip.Addr, own []netip.Addr) string {
	forms := append(embeddedForms(ip.WithZone("")), ip.WithZone("").Unmap())
	for _, form := range forms {
		if form.IsLoopback() {
			return fmt.Sprintf("%v is a loopback", ip)
		}
	}
	for _, form := range forms {
		if p.allows(form) {
			return ""
		}
	}
	for _, form := range forms {
		if reason := deniedForm(form, own); reason != "" {
			return fmt.Sprintf("%v is %s", ip, reason)
		}
	}
	return ""
}

func (p Policy) allows(ip netip.Addr) bool {
	for _, prefix := range p.Allowed {
		if prefix.Contains(ip) {
			return true
		}
	}
	return false
}

func deniedForm(ip netip.Addr, own []netip.Addr) string {
	for _, d := range denied {
		if d.prefix.Contains(ip) {
			return d.reason
		}
	}
	for _, o := range own {
		if o.WithZone("").Unmap() == ip {
			return "an address of this host"
		}
	}
	return ""
}

// embeddedForms returns the IPv4 address that an IPv6 address carries, if any.
func embeddedForms(ip netip.Addr) []netip.Addr {
	if !ip.Is6() || ip == netip.IPv6Unspecified() || ip == netip.IPv6Loopback() {
		return nil
	}
	// As16 of a mapped address keeps its form, but Contains never matches one: compare the plain bytes.
	b := ip.As16()
	for _, e := range embedded {
		if samePrefix(b, e.prefix) {
			return []netip.Addr{netip.AddrFrom4([4]byte(b[e.at : e.at+4]))}
		}
	}
	return nil
}

func samePrefix(b [16]byte, prefix netip.Prefix) bool {
	p, n := prefix.Addr().As16(), prefix.Bits()/8 // all of them end at a byte
	return string(b[:n]) == string(p[:n])
}

// Refusal is the sentence that tells a person why the policy refuses this destination now, "" if it does not.
func (p Policy) Refusal(to netip.AddrPort) string {
	reason := p.Check(to.Addr(), nil)
	if reason == "" { // only now, since the addresses cost a look
		reason = p.Check(to.Addr(), host.now(net.InterfaceAddrs))
	}
	if reason == "" {
		return ""
	}
	return fmt.Sprintf("The connection to %v was refused: %s. The operator of this server can allow it as an egress range.", to, reason)
}
