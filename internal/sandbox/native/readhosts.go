package native

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/dns/dnsmessage"

	"forerun.dev/forerun/internal/forerun"
)

// readHosts are the hosts from which a sandbox's action only reads, and their addresses as far as the sandbox was told
// them.
type readHosts struct {
	mu        sync.Mutex // guards the rest
	names     map[string][]uint16
	addresses map[netip.AddrPort]bool
}

// addressesAtMost bounds how many are remembered.
const addressesAtMost = 1024

// name takes hosts, as forerun.ParseHost reads them, and returns the addresses among them. An entry that is not a host has no effect.
func (r *readHosts) name(hosts []string) (addresses []netip.AddrPort) {
	if len(hosts) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.names == nil {
		r.names, r.addresses = map[string][]uint16{}, map[netip.AddrPort]bool{}
	}
	for _, text := range hosts {
		host, port, err := forerun.ParseHost(text)
		if err != nil {
			continue
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			addresses = append(addresses, netip.AddrPortFrom(ip, port))
		} else if !slices.Contains(r.names[host], port) {
			r.names[host] = append(r.names[host], port)
		}
	}
	return r.remember(addresses)
}

func canonicalName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// remember returns those that are new. mu is held.
func (r *readHosts) remember(addresses []netip.AddrPort) (fresh []netip.AddrPort) {
	for _, a := range addresses {
		if !r.addresses[a] && len(r.addresses) < addressesAtMost {
			r.addresses[a] = true
			fresh = append(fresh, a)
		}
	}
	return fresh
}

// permits reports whether a is one of theirs.
func (r *readHosts) permits(a netip.AddrPort) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ip := a.Addr().Unmap()
	return r.addresses[netip.AddrPortFrom(ip, a.Port())] || r.addresses[netip.AddrPortFrom(ip, 0)]
}

// asks reports whether a query for a nameserver asks for one of them, and nothing else. The other kinds of queries have effects: one has
// a zone changed (RFC 2136), which stands where the question does.
func (r *readHosts) asks(query []byte) bool { return r.isAbout(query, false) && isBare(query) }

// Types of questions that are for no records of a name: some have an effect, or answers that are not to be had without one.
const (
	firstMeta = 128
	lastMeta  = 255
)

// isBare reports whether a query is a resolver's question and no byte more: a question, and perhaps the sign that it understands EDNS.
// Anything else could carry data: options, records, bytes behind the question.
func isBare(query []byte) bool {
	var m dnsmessage.Message
	if m.Unpack(query) != nil || len(m.Questions) != 1 || len(m.Answers)+len(m.Authorities) > 0 || len(m.Additionals) > 1 {
		return false
	}
	if q := m.Questions[0]; q.Class != dnsmessage.ClassINET || q.Type >= firstMeta && q.Type <= lastMeta {
		return false
	}
	for _, a := range m.Additionals {
		if edns, ok := a.Body.(*dnsmessage.OPTResource); !ok || len(edns.Options) > 0 || a.Header.Name.String() != "." {
			return false
		}
	}
	packed, err := m.Pack()
	return err == nil && bytes.Equal(packed, query)
}

// isAbout reports whether a query, or an answer to one, is about one of them.
func (r *readHosts) isAbout(message []byte, answer bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.names) > 0 && r.names[nameOf(message, answer)] != nil
}

// askedName is the name that a query asks for; empty if it is not an ordinary query with one question.
func askedName(query []byte) string { return nameOf(query, false) }

// nameOf is the name that a query, or an answer to one, is about.
func nameOf(message []byte, answer bool) string {
	var p dnsmessage.Parser
	if h, err := p.Start(message); err != nil || h.OpCode != 0 || h.Response != answer {
		return ""
	}
	questions, err := p.AllQuestions()
	if err != nil || len(questions) != 1 {
		return ""
	}
	return canonicalName(questions[0].Name.String())
}

// answered are the name of an answer, and the addresses in it.
func answered(answer []byte) (name string, addresses []netip.Addr) {
	var m dnsmessage.Message
	if name = nameOf(answer, true); name == "" || m.Unpack(answer) != nil {
		return "", nil
	}
	for _, record := range m.Answers {
		switch body := record.Body.(type) {
		case *dnsmessage.AResource:
			addresses = append(addresses, netip.AddrFrom4(body.A))
		case *dnsmessage.AAAAResource:
			addresses = append(addresses, netip.AddrFrom16(body.AAAA).Unmap())
		}
	}
	return name, addresses
}

// learn takes the addresses of a nameserver's answer, if it was asked for one of the hosts, and returns the new ones.
func (r *readHosts) learn(answer []byte) (fresh []netip.AddrPort) {
	if !r.isAbout(answer, true) {
		return nil
	}
	name, addresses := answered(answer)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, port := range r.names[name] {
		for _, ip := range addresses {
			fresh = append(fresh, netip.AddrPortFrom(ip, port))
		}
	}
	return r.remember(fresh)
}
