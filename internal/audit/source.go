package audit

import (
	"net"
	"net/netip"
	"strings"
	"time"
)

// pace is how many entries a source may write: a burst, and then one each period.
type pace struct {
	burst float64
	each  time.Duration
}

var (
	paceOfTenant   = pace{1000, 10 * time.Second}
	paceOfFailures = pace{100, time.Second}     // of all together
	paceOfAddress  = pace{20, 10 * time.Second} // of failures from one address
)

const maxAddresses = 1024 // that are told apart

// sources bounds what each source causes. The operator's entries have no bound.
type sources struct {
	tenants   map[string]*source // by namespace
	addresses map[string]*source // of failures, by the client's address
	failures  source             // all of them
}

func newSources() *sources {
	return &sources{tenants: make(map[string]*source), addresses: make(map[string]*source)}
}

// source is what one source may still write.
type source struct {
	used    float64 // of its burst
	at      time.Time
	leftOut int // entries since the last one that was written
}

// admit takes an entry from what its source may write, and adds how many were left out before it, or counts it.
func (s *sources) admit(e *Entry) bool {
	switch classOf(e) {
	case ofOperator:
		return true
	case ofTenants:
		return of(s.tenants, e.Namespace).admit(e, paceOfTenant)
	}
	address := addressOf(e)
	if s.addresses[address] == nil && len(s.addresses) >= maxAddresses {
		s.forget()
	}
	return of(s.addresses, address).admit(e, paceOfAddress) && s.failures.admit(e, paceOfFailures)
}

func of(sources map[string]*source, key string) *source {
	if sources[key] == nil {
		sources[key] = new(source)
	}
	return sources[key]
}

// forget drops the addresses, so that new ones can be told apart. Their entries that were left out count among all failures.
func (s *sources) forget() {
	for _, a := range s.addresses {
		s.failures.leftOut += a.leftOut
	}
	clear(s.addresses)
}

// admit takes an entry, if there is room for it.
func (s *source) admit(e *Entry, p pace) bool {
	s.used = max(0, s.used-max(0, e.Time.Sub(s.at).Seconds())/p.each.Seconds())
	s.at = e.Time
	if s.used+1 > p.burst {
		s.leftOut += 1 + e.LeftOut
		e.LeftOut = 0
		return false
	}
	s.used++
	e.LeftOut += s.leftOut
	s.leftOut = 0
	return true
}

// addressOf is the address of the client who failed: the last one that a proxy on the loopback names, for it has seen that one itself, else
// the peer's.
func addressOf(e *Entry) string {
	host, _, err := net.SplitHostPort(e.Peer)
	if err != nil {
		return e.Peer
	}
	if ip, err := netip.ParseAddr(host); e.Forwarded == "" || err != nil || !ip.IsLoopback() {
		return host
	}
	return shorten(strings.TrimSpace(e.Forwarded[strings.LastIndex(e.Forwarded, ",")+1:]))
}
