package forerun

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// ParseHost reads a host as the annotation read-hosts names it: "name", "name:port", "address", "address:port" or "[address]:port". A
// port of 0 is that of one without: all. A name is lower case and has no dot at its end then, an address is in its shortest form.
func ParseHost(text string) (host string, port uint16, err error) {
	if strings.Contains(text, "/") {
		return "", 0, errors.New("it is a URL, or a range of addresses")
	}
	host = text
	if h, p, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, errors.New("its port is not a number from 1 to 65535")
		}
		host, port = h, uint16(n)
	} else if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if ip.Zone() != "" {
			return "", 0, errors.New("it is an address in a zone, which no function reaches")
		}
		return ip.Unmap().String(), port, nil
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !isDomain(host) {
		return "", 0, errors.New("it is neither an address nor a name of letters, digits, '-', '_' and dots")
	}
	if endsInNumber(host) {
		return "", 0, errors.New("it ends in a number, but is not an address")
	}
	return host, port, nil
}

// The most bytes of a domain name, and of a label of it (RFC 1035, 2.3.4).
const (
	maxDomain = 253
	maxLabel  = 63
)

// isDomain reports whether a lower case name could be a domain's. Underscores are in use, though not in names of hosts.
func isDomain(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return len(name) <= maxDomain
}

// endsInNumber reports whether the last label of a name is a number, which is no top-level domain.
func endsInNumber(name string) bool {
	return strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "0123456789") == ""
}
