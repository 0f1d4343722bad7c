package guard

import (
	"net/netip"
	"testing"

	"forerun.dev/forerun/internal/egress"
)

func list(t *testing.T, text string) egress.List {
	t.Helper()
	l, err := egress.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPolicy(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("93.184.216.1"), netip.MustParseAddr("2a00:1::5"), netip.MustParseAddr("fe80::7%eth0")}
	cases := []struct {
		addresses []string
		allowed   string
		reachable bool
	}{
		{[]string{
			"93.184.216.34", "8.8.8.8", "1.1.1.1", "172.32.0.1", "172.15.255.255", "100.63.0.1", "100.128.0.1", "192.167.0.1", "11.0.0.1", "223.255.255.255",
			"2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2a00:1::6", "2620:4f:8000::1",
		}, "", true},
		{[]string{
			"127.0.0.1", "127.255.0.9", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1",
			"100.127.255.255", "169.254.169.254", "169.254.0.1", "224.0.0.1", "239.1.1.1", "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.51.100.7",
			"203.0.113.9", "198.18.0.1", "192.0.0.170", "168.63.129.16", "93.184.216.1",
		}, "", false},
		{[]string{"::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "ff02::1", "2001:db8::1", "2001:0:1::1", "100::1", "2a00:1::5", "fec0::1", "64:ff9b:1::1"}, "", false},
		{[]string{ // IANA's special-purpose and unassigned addresses, also with a public address inside
			"::8.8.8.8", "::ffff:0:808:808", "64:ff9b:1::808:808", "64:ff9b:1:808:8:800::", "64:ff9b:2::1", "100::ffff", "100:0:0:1::1", "2001::808:808", "2001:2::1",
			"2001:10::1", "2001:20::1", "2001:2f:ffff::1", "2001:30::1", "2001:1ff::1", "2002:808:808::1", "3fff::1", "3fff:fff::1", "5f00::1", "1fff::1", "4000::1",
			"fec0:1::1", "feff::1", "fdff::1", "febf::1", "8000::1",
		}, "", false},
		{[]string{
			"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:93.184.216.1", "::127.0.0.1", "::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1",
			"64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1", "2002:a9fe:a9fe::1", "::ffff:0:a00:1", "2002:5db8:d801::",
		}, "", false},
		{[]string{"10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203"}, "10.1.0.0/16", true},
		{[]string{"10.2.0.1", "::ffff:10.2.0.1", "192.168.0.1"}, "10.1.0.0/16", false},
		{[]string{"93.184.216.1", "::ffff:93.184.216.1"}, "93.184.216.0/24", false}, // of the host: only if it is named alone
		{[]string{"93.184.216.1", "::ffff:93.184.216.1"}, "93.184.216.1", true},
		{[]string{"2a00:1::5"}, "2a00::/16", false},
		{[]string{"2a00:1::5"}, "2a00:1::5", true},
		{[]string{"10.1.2.3"}, "10.1.0.0/16:80", true},
		{[]string{"10.1.2.3"}, "10.1.0.0/16:81", false},
		{[]string{"127.0.0.1", "::ffff:127.0.0.1", "2002:7f00:1::"}, "0.0.0.0/0", false},
		{[]string{"::1"}, "::/0", false},
		{[]string{"fd00::5"}, "fd00::/64", true},
	}
	for _, c := range cases {
		var p Policy
		if c.allowed != "" {
			p.Allowed = list(t, c.allowed)
		}
		for _, a := range c.addresses {
			if reason := p.Check(netip.AddrPortFrom(netip.MustParseAddr(a), 80), own); (reason == "") != c.reachable {
				t.Errorf("%s with %q allowed: %q; want reachable = %v", a, c.allowed, reason, c.reachable)
			}
		}
	}
}

// TestDenied: what the operator denies is not reachable in any form, although it is public or allowed.
func TestDenied(t *testing.T) {
	p := Policy{Allowed: list(t, "10.1.0.0/16"), Denied: list(t, "93.184.216.0/24, 10.1.2.0/24:25, 2606::/16")}
	for to, reachable := range map[string]bool{
		"93.184.216.34:80": false, "[::ffff:93.184.216.34]:80": false, "[64:ff9b::5db8:d822]:80": false, "[2606::1]:443": false,
		"93.184.217.1:80": true, "10.1.2.3:25": false, "10.1.2.3:26": true, "10.1.3.3:25": true, "10.2.0.1:26": false,
	} {
		if reason := p.Check(netip.MustParseAddrPort(to), nil); (reason == "") != reachable {
			t.Errorf("%s: %q; want reachable = %v", to, reason, reachable)
		}
	}
}
