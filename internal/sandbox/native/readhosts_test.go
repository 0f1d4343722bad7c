package native

import (
	"net/netip"
	"slices"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// TestHostsThatWereStored: an entry that is refused today, but was stored with an action before, names no host. It does not affect other
// entries.
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

// TestBareQuestionsPass: a question passes as resolvers ask it, and nothing passes with it.
func TestBareQuestionsPass(t *testing.T) {
	var r readHosts
	r.name([]string{"read.example"})
	name := dnsmessage.MustNewName("read.example.")
	edns := func(name string, options ...dnsmessage.Option) dnsmessage.Resource {
		return dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(name), Class: 1232, TTL: 1 << 15},
			Body:   &dnsmessage.OPTResource{Options: options},
		}
	}
	text := dnsmessage.Resource{
		Header: dnsmessage.ResourceHeader{Name: name, Class: dnsmessage.ClassINET}, Body: &dnsmessage.TXTResource{TXT: []string{"told"}},
	}
	const srv, caa, tkey, ixfr, all, chaos = 33, 257, 249, 251, 255, 3
	asking := func(t dnsmessage.Type, records ...dnsmessage.Resource) dnsmessage.Message {
		return dnsmessage.Message{
			Header: dnsmessage.Header{ID: 7, RecursionDesired: true, AuthenticData: true}, Additionals: records,
			Questions: []dnsmessage.Question{{Name: name, Type: t, Class: dnsmessage.ClassINET}},
		}
	}
	with := func(change func(*dnsmessage.Message)) dnsmessage.Message {
		m := asking(dnsmessage.TypeA)
		change(&m)
		return m
	}
	for what, c := range map[string]struct {
		message dnsmessage.Message
		behind  string
		want    bool
	}{
		"a question":                  {asking(dnsmessage.TypeA), "", true},
		"one for a service":           {asking(srv), "", true},
		"one for what may certify it": {asking(caa), "", true},
		"one with EDNS":               {asking(dnsmessage.TypeAAAA, edns(".")), "", true},
		"EDNS of a name":              {asking(dnsmessage.TypeA, edns("told.example.")), "", false},
		"an option of EDNS":           {asking(dnsmessage.TypeA, edns(".", dnsmessage.Option{Code: 10, Data: []byte("told")})), "", false},
		"EDNS twice":                  {asking(dnsmessage.TypeA, edns("."), edns(".")), "", false},
		"a record":                    {asking(dnsmessage.TypeA, text), "", false},
		"a record as an answer":       {with(func(m *dnsmessage.Message) { m.Answers = append(m.Answers, text) }), "", false},
		"a record of authority":       {with(func(m *dnsmessage.Message) { m.Authorities = append(m.Authorities, text) }), "", false},
		"bytes":                       {asking(dnsmessage.TypeA), "told", false},
		"bytes behind EDNS":           {asking(dnsmessage.TypeA, edns(".")), "told", false},
		"another question":            {with(func(m *dnsmessage.Message) { m.Questions = append(m.Questions, m.Questions[0]) }), "", false},
		"one for a key":               {asking(tkey), "", false},
		"one for what has changed":    {asking(ixfr), "", false},
		"one for everything":          {asking(all), "", false},
		"one in another class":        {with(func(m *dnsmessage.Message) { m.Questions[0].Class = chaos }), "", false},
	} {
		b, err := c.message.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if got := r.asks(append(b, c.behind...)); got != c.want {
			t.Errorf("%s passes: %v", what, got)
		}
	}
	m := asking(dnsmessage.TypeA)
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	b[3] |= 1 << 6 // reserved, of the header
	if r.asks(b) {
		t.Error("what has a reserved bit passes")
	}
}

// TestQuestionsAlonePass: questions to a nameserver about a read-only host pass, and queries with an effect do not.
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
