// Package egress holds the lists of destinations that functions may reach, or
// may not: the server's, a tenant's and an action's.
//
// It promises that lists only narrow: a destination is reached if every list
// that applies names it. It decides about addresses and names alone. Which
// kinds of addresses are public, and which are the host's, is known to
// package guard.
package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"forerun.dev/forerun/internal/forerun"
)

// Rule names destinations: a network, or a host by its name.
type Rule struct {
	Network netip.Prefix // of a rule without Name; masked
	Name    string       // in lower case, without a dot at its end
	Port    uint16       // 0: all ports
}

// Spelling says how a rule is written.
const Spelling = `Write a name, an address or a network, with ':' and a port or without, like "db.example.org:5432", "10.1.2.3" or "10.1.0.0/16:443".`

// ParseRule reads "name", "address", "network/bits", or any of them with ":port". An IPv6 address or network with a port stands in brackets.
func ParseRule(text string) (Rule, error) {
	text = strings.TrimSpace(text)
	if !strings.Contains(text, "/") {
		host, port, err := forerun.ParseHost(text)
		if err != nil {
			return Rule{}, err
		}
		if ip, err := netip.ParseAddr(host); err == nil {
			return Rule{Network: netip.PrefixFrom(ip, ip.BitLen()), Port: port}, nil
		}
		return Rule{Name: host, Port: port}, nil
	}
	network, port, err := cutPort(text)
	if err != nil {
		return Rule{}, err
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return Rule{}, errors.New("it is not a network like 10.1.0.0/16 or fd00::/8")
	}
	if prefix.Addr().Is4In6() {
		return Rule{}, errors.New("it is an IPv4 network in IPv6's form: write it as 10.1.0.0/16")
	}
	return Rule{Network: prefix.Masked(), Port: port}, nil
}

// cutPort takes the port off a network.
func cutPort(text string) (network string, port uint16, err error) {
	network, digits := text, ""
	if inner, ok := strings.CutPrefix(text, "["); ok {
		var behind string
		if network, behind, ok = strings.Cut(inner, "]"); !ok || behind != "" && behind[0] != ':' {
			return "", 0, errors.New("its brackets are not closed before the port")
		}
		digits = strings.TrimPrefix(behind, ":")
		if behind == "" {
			return network, 0, nil
		}
	} else if at := strings.LastIndexByte(text, ':'); at > strings.LastIndexByte(text, '/') {
		network, digits = text[:at], text[at+1:]
	} else {
		return network, 0, nil
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil || n == 0 {
		return "", 0, errors.New("its port is not a number from 1 to 65535")
	}
	return network, uint16(n), nil
}

// String writes the rule as ParseRule reads it.
func (r Rule) String() string {
	text := r.Name
	if text == "" {
		if text = r.Network.String(); r.IsAddress() {
			text = r.Network.Addr().String()
		}
		if r.Port != 0 && r.Network.Addr().Is6() {
			text = "[" + text + "]"
		}
	}
	if r.Port != 0 {
		text += ":" + strconv.Itoa(int(r.Port))
	}
	return text
}

// IsAddress reports whether the rule names a single address.
func (r Rule) IsAddress() bool { return r.Name == "" && r.Network.IsSingleIP() }

// Has reports whether the rule names a destination by its address.
func (r Rule) Has(to netip.AddrPort) bool {
	return r.Name == "" && r.Network.Contains(to.Addr()) && (r.Port == 0 || r.Port == to.Port())
}

// List is what may be reached. A nil List bounds nothing, and an empty one allows nothing.
type List []Rule

// Words for the two lists without rules.
const (
	Any  = "any"  // nil
	None = "none" // empty
)

// AtMost is how many rules a list may have.
const AtMost = 256

// Parse reads the form in which flags have a list: "any", "none", or rules with commas between them.
func Parse(text string) (List, error) {
	switch text = strings.TrimSpace(text); text {
	case Any:
		return nil, nil
	case None:
		return List{}, nil
	}
	var rules []string
	for rule := range strings.SplitSeq(text, ",") {
		rules = append(rules, strings.TrimSpace(rule))
	}
	return parseAll(rules)
}

func parseAll(rules []string) (List, error) {
	if len(rules) > AtMost {
		return nil, fmt.Errorf("it has %d destinations; at most %d are allowed", len(rules), AtMost)
	}
	l := List{}
	for _, text := range rules {
		rule, err := ParseRule(text)
		if err != nil {
			return nil, fmt.Errorf("%.200q is not a destination: %w. %s", text, err, Spelling)
		}
		l = append(l, rule)
	}
	return l, nil
}

// String writes the list as Parse reads it.
func (l List) String() string {
	switch {
	case l == nil:
		return Any
	case len(l) == 0:
		return None
	}
	return strings.Join(l.texts(), ", ")
}

func (l List) texts() []string {
	texts := make([]string, len(l))
	for i, rule := range l {
		texts[i] = rule.String()
	}
	return texts
}

// MarshalJSON writes "any", "none" or an array of rules.
func (l List) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return json.Marshal(l.String())
	}
	return json.Marshal(l.texts())
}

// UnmarshalJSON reads them.
func (l *List) UnmarshalJSON(b []byte) (err error) {
	var word string
	if json.Unmarshal(b, &word) == nil && (word == Any || word == None) {
		*l, err = Parse(word)
		return err
	}
	var rules []string
	if json.Unmarshal(b, &rules) != nil || rules == nil {
		return fmt.Errorf("it must be %q, %q or an array of destinations, each a string, not %.200s", Any, None, b)
	}
	*l, err = parseAll(rules)
	return err
}

// Has reports whether a rule of the list names a destination by its address.
func (l List) Has(to netip.AddrPort) bool {
	for _, rule := range l {
		if rule.Has(to) {
			return true
		}
	}
	return false
}

// Networks are the rules of the list that name addresses. They bound something if the list does.
func (l List) Networks() List {
	if l == nil {
		return nil
	}
	networks := List{}
	for _, rule := range l {
		if rule.Name == "" {
			networks = append(networks, rule)
		}
	}
	return networks
}

// ports are the ports that a name has in the list, 0 for all; none if the list does not name it.
func (l List) ports(name string) (ports []uint16) {
	for _, rule := range l {
		if rule.Name != "" && rule.Name == name {
			ports = append(ports, rule.Port)
		}
	}
	return ports
}

// Annotation is the annotation of an action that holds its list.
const Annotation = "egress"

// OfAction returns the list of an action. A value that is not a list is of an older server, which did not heed it: it counts as none.
func OfAction(annotations []forerun.KeyValue) List {
	value := forerun.Lookup(annotations, Annotation)
	if value == nil {
		return nil
	}
	var l List
	if json.Unmarshal(value, &l) != nil {
		return List{}
	}
	return l
}
