package egress

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	for text, want := range map[string]string{
		"db.Example.org.":     "db.example.org",
		"db.example.org:5432": "db.example.org:5432",
		"10.1.2.3":            "10.1.2.3",
		"10.1.2.3/32":         "10.1.2.3",
		"10.1.2.3:80":         "10.1.2.3:80",
		"10.1.2.3/16":         "10.1.0.0/16",
		"10.1.0.0/16:443":     "10.1.0.0/16:443",
		"fd00::1":             "fd00::1",
		"[fd00::1]:80":        "[fd00::1]:80",
		"fd00::/8":            "fd00::/8",
		"[fd00::/8]":          "fd00::/8",
		"[fd00::/8]:443":      "[fd00::/8]:443",
		" 10.1.2.3 ":          "10.1.2.3",
		"::ffff:10.1.2.3":     "10.1.2.3",
		"0.0.0.0/0":           "0.0.0.0/0",
	} {
		rule, err := ParseRule(text)
		if err != nil || rule.String() != want {
			t.Errorf("%q is read as %v, %v; want %s", text, rule, err, want)
		}
	}
	for _, text := range []string{
		"", "*", "*.example.org", "https://example.org", "https://example.org/path", "10.1.0.0/33", "10.1.0.0/16:0", "10.1.0.0/16:65536", "10.1.0.0/16:x", "10.1.0.0/16:",
		"[fd00::/8", "[fd00::/8]x", "[fd00::/8]:", "example.org:0", "example.org:", "1.2.3", "::ffff:10.0.0.0/104", "fe80::1%eth0", "example.org/24", "a b",
	} {
		if rule, err := ParseRule(text); err == nil {
			t.Errorf("%q is read as %v", text, rule)
		}
	}
}

func TestListsInJSON(t *testing.T) {
	for text, want := range map[string]string{`"any"`: "any", `"none"`: "none", `[]`: "none", `["10.0.0.0/8:443","a.example"]`: "10.0.0.0/8:443, a.example"} {
		var l List
		if err := json.Unmarshal([]byte(text), &l); err != nil || l.String() != want {
			t.Errorf("%s is read as %v, %v", text, l, err)
		}
		back, err := json.Marshal(l)
		var again List
		if err != nil || json.Unmarshal(back, &again) != nil || again.String() != want || (again == nil) != (l == nil) {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
		if flag, err := Parse(l.String()); err != nil || flag.String() != want {
			t.Errorf("%q as a flag: %v, %v", l, flag, err)
		}
	}
	many, _ := json.Marshal(strings.Split(strings.Repeat("a.example,", AtMost)+"b.example", ","))
	for _, text := range []string{`null`, `"a.example"`, `true`, `[1]`, `["*"]`, `{}`, string(many)} {
		if err := json.Unmarshal([]byte(text), new(List)); err == nil {
			t.Errorf("%.40s is read", text)
		}
	}
	if _, err := Parse("a.example,"); err == nil {
		t.Error("an empty rule is read")
	}
}

// TestConfines: a destination must be in every list, and a name's address only as the sandbox was told it.
func TestConfines(t *testing.T) {
	for _, c := range []struct {
		tenant, action     string
		reachable, refused string // addresses with ports
		asked, unasked     string // names
		answered, pinned   string // for the first name asked
	}{
		{"any", "any", "1.2.3.4:80 [2001::1]:443", "", "x.example y.example", "", "", ""},
		{"any", "none", "", "1.2.3.4:80 [2001::1]:443 127.0.0.1:1", "", "x.example", "", ""},
		{"none", "any", "", "1.2.3.4:80", "", "x.example", "", ""},
		{"none", "1.2.3.4, x.example", "", "1.2.3.4:80", "", "x.example", "", ""},
		{"1.2.3.4, x.example", "none", "", "1.2.3.4:80", "", "x.example", "", ""},
		{"any", "1.2.3.0/24:80", "1.2.3.4:80 [::ffff:1.2.3.4]:80", "1.2.3.4:81 1.2.4.4:80 [64:ff9b::102:304]:80", "", "x.example", "", ""},
		{"1.2.0.0/16", "1.2.3.0/24:80, 9.9.9.9", "1.2.3.4:80", "1.2.3.4:81 1.2.4.4:80 9.9.9.9:80", "", "", "", ""},
		{"any", "x.example:443", "", "1.2.3.4:443", "x.example", "y.example a.x.example example", "1.2.3.4 2001::1", "1.2.3.4:443 [2001::1]:443"},
		{"x.example", "x.example:443", "", "1.2.3.4:443", "x.example", "", "1.2.3.4", "1.2.3.4:443"},
		{"x.example:443", "x.example", "", "", "x.example", "", "1.2.3.4", "1.2.3.4:443"},
		{"x.example:443", "x.example:80", "", "1.2.3.4:443", "", "x.example", "", ""},
		{"0.0.0.0/0", "x.example", "", "1.2.3.4:443", "", "x.example", "", ""},
		{"x.example", "0.0.0.0/0", "", "1.2.3.4:443", "", "x.example", "", ""},
		{"any", "x.example", "", "", "x.example", "", "::ffff:1.2.3.4", "1.2.3.4:1 [::ffff:1.2.3.4]:65535"},
	} {
		var lists Lists
		lists.Tenant, _ = Parse(c.tenant)
		lists.Action, _ = Parse(c.action)
		var confines Confines
		confines.Set(lists)
		said := func(text, list string, want bool, refusal string) {
			if (refusal == "") != want {
				t.Errorf("tenant %s, action %s: %s %s: %q", c.tenant, c.action, list, text, refusal)
			}
		}
		for _, to := range strings.Fields(c.reachable) {
			said(to, "reaches", true, confines.Refusal(netip.MustParseAddrPort(to)))
		}
		for _, to := range strings.Fields(c.refused) {
			said(to, "is kept from", false, confines.Refusal(netip.MustParseAddrPort(to)))
		}
		for _, name := range strings.Fields(c.asked) {
			said(name, "asks for", true, confines.RefusalOfName(name))
		}
		for _, name := range strings.Fields(c.unasked) {
			said(name, "asks not for", false, confines.RefusalOfName(name))
			if fresh := confines.Learn(name, []netip.Addr{netip.MustParseAddr("1.2.3.4")}); len(fresh) > 0 {
				t.Errorf("tenant %s, action %s: %s teaches %v", c.tenant, c.action, name, fresh)
			}
		}
		var addresses []netip.Addr
		for _, a := range strings.Fields(c.answered) {
			addresses = append(addresses, netip.MustParseAddr(a))
		}
		if len(addresses) > 0 {
			name := strings.Fields(c.asked)[0]
			var other Confines // the other end, that is told what this one learns
			other.Set(lists.Networks())
			other.Pin(confines.Learn(name, addresses))
			if again := confines.Learn(name, addresses); len(again) > 0 {
				t.Errorf("%v is learned twice", again)
			}
			for _, to := range strings.Fields(c.pinned) {
				said(to, "reaches the name at", true, confines.Refusal(netip.MustParseAddrPort(to)))
				said(to, "reaches the name, at the other end, at", true, other.Refusal(netip.MustParseAddrPort(to)))
			}
			confines.Set(lists)
			said(c.pinned, "keeps what it learned:", false, confines.Refusal(netip.MustParseAddrPort(strings.Fields(c.pinned)[0])))
		}
	}
}

// TestManyAddresses: the addresses of names take bounded memory, and the newest are reachable.
func TestManyAddresses(t *testing.T) {
	var c Confines
	c.Set(Lists{Action: List{{Name: "x.example"}}})
	at := func(n int) netip.Addr { return netip.AddrFrom4([4]byte{20, byte(n >> 16), byte(n >> 8), byte(n)}) }
	for n := range 2 * pinnedAtMost {
		c.Learn("x.example", []netip.Addr{at(n)})
	}
	if len(c.pinned) != pinnedAtMost || len(c.order) != pinnedAtMost {
		t.Errorf("%d are remembered, %d in order", len(c.pinned), len(c.order))
	}
	if c.Refusal(netip.AddrPortFrom(at(2*pinnedAtMost-1), 80)) != "" || c.Refusal(netip.AddrPortFrom(at(0), 80)) == "" {
		t.Error("not the oldest are forgotten")
	}
}
