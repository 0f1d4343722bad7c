package guard

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"forerun.dev/forerun/internal/egress"
)

// Policy says which outside addresses the functions of this server may reach. Its lists have no names.
type Policy struct {
	Allowed egress.List // reachable although the rules below deny them; an address of the host only if a rule names it alone, never a loopback
	Denied  egress.List // not reachable, whatever else is said
}

// denied lists what is not the public internet, with the reason that a function is told: IANA's special-purpose addresses that are not globally
// reachable, and some that lead elsewhere. Of IPv6 it lists what lies in public, and what has a reason of its own.
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
	{netip.MustParsePrefix("2001::/23"), "reserved"}, // Teredo, ORCHID and other protocol assignments
	{netip.MustParsePrefix("2001:db8::/32"), "reserved"},
	{netip.MustParsePrefix("2002::/16"), "reserved"}, // 6to4, which leads to whoever relays it
	{netip.MustParsePrefix("3fff::/20"), "reserved"},
	{netip.MustParsePrefix("fc00::/7"), "a private network"},
	{netip.MustParsePrefix("fe80::/10"), "link-local, where clouds keep their metadata"},
	{netip.MustParsePrefix("fec0::/10"), "a private network"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

// IPv6 addresses are public in one block only: all others are reserved, whether IANA has given them a purpose yet or not. NAT64 is as public as
// the IPv4 address in it.
var (
	public6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96")
)

// Where an IPv6 address carries an IPv4 address, and at which byte.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("::ffff:0:0/96"), 12}, // mapped
	{netip.MustParsePrefix("::/96"), 12},         // compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12},
	{nat64, 12},
	{netip.MustParsePrefix("2002::/16"), 2}, // 6to4
}

// Check returns why a destination may not be reached, "" if it may. own are the host's own addresses at this moment.
func (p Policy) Check(to netip.AddrPort, own []netip.Addr) string {
	ip := to.Addr().WithZone("")
	forms := append(embeddedForms(ip), ip.Unmap())
	if slices.ContainsFunc(forms, netip.Addr.IsLoopback) {
		return "a loopback"
	}
	has := func(l egress.List) bool {
		return slices.ContainsFunc(forms, func(form netip.Addr) bool { return l.Has(netip.AddrPortFrom(form, to.Port())) })
	}
	switch {
	case has(p.Denied):
		return "denied by this server (--egress-deny)"
	case slices.ContainsFunc(forms, func(form netip.Addr) bool { return isHosts(form, own) }):
		if has(p.singly()) {
			return ""
		}
		return "an address of this host"
	case has(p.Allowed):
		return ""
	}
	for _, form := range forms {
		if reason := deniedKind(form); reason != "" {
			return reason
		}
	}
	return ""
}

// singly are the allowed rules that name one address each.
func (p Policy) singly() egress.List {
	return slices.DeleteFunc(slices.Clone(p.Allowed), func(r egress.Rule) bool { return !r.IsAddress() })
}

func deniedKind(ip netip.Addr) string {
	for _, d := range denied {
		if d.prefix.Contains(ip) {
			return d.reason
		}
	}
	if ip.Is6() && !public6.Contains(ip) && !nat64.Contains(ip) {
		return "reserved"
	}
	return ""
}

func isHosts(ip netip.Addr, own []netip.Addr) bool {
	return slices.ContainsFunc(own, func(o netip.Addr) bool { return o.WithZone("").Unmap() == ip })
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
	reason := p.Check(to, nil)
	if reason == "" { // only now, since the addresses cost a look
		reason = p.Check(to, host.now(net.InterfaceAddrs))
	}
	if reason == "" {
		return ""
	}
	return refusedSentence(to, fmt.Sprintf("%v is %s. The operator of this server can allow it (--egress-allow).", to.Addr(), reason))
}

func refusedSentence(to netip.AddrPort, why string) string {
	return fmt.Sprintf("The connection to %v was refused: %s", to, why)
}

// Confined is the policy for one sandbox, with the lists that bound it.
type Confined struct {
	Policy
	Confines *egress.Confines
}

// Refusal is the same for this sandbox.
func (c Confined) Refusal(to netip.AddrPort) string {
	if sentence := c.Confines.Refusal(to); sentence != "" {
		return refusedSentence(to, sentence)
	}
	return c.Policy.Refusal(to)
}
