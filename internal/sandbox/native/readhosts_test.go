package native

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
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

// TestQuestionsAlonePass: of what is sent to a nameserver about a host that is only read from, questions pass, and nothing that has an
// effect.
func TestQuestionsAlonePass(t *testing.T) {
	var r readHosts
	r.name([]string{"read.example"})
	const update, notify = 5, 4
	for what, c := range map[string]struct {
		header dnsmessage.Header
		name   string
		want   bool
	}{
		"a question":              {dnsmessage.Header{RecursionDesired: true}, "Read.Example.", true},
		"one for another host":    {dnsmessage.Header{RecursionDesired: true}, "other.example.", false},
		"a change of its zone":    {dnsmessage.Header{OpCode: update}, "read.example.", false},
		"that it was changed":     {dnsmessage.Header{OpCode: notify}, "read.example.", false},
		"an answer that is asked": {dnsmessage.Header{Response: true}, "read.example.", false},
	} {
		m := dnsmessage.Message{Header: c.header, Questions: []dnsmessage.Question{
			{Name: dnsmessage.MustNewName(c.name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		}}
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if got := r.asks(b); got != c.want {
			t.Errorf("%s passes: %v", what, got)
		}
	}
}
