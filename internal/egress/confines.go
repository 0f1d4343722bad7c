package egress

import (
	"net/netip"
	"slices"
	"sync"
)

// Lists are what bounds a function, besides the server's own policy.
type Lists struct {
	Tenant List // of the tenant that invokes it; the operator sets it
	Action List // of the action; its annotation
}

// Bounds reports whether any of them bounds something.
func (l Lists) Bounds() bool { return l.Tenant != nil || l.Action != nil }

// Networks are the lists without the rules that name hosts.
func (l Lists) Networks() Lists { return Lists{l.Tenant.Networks(), l.Action.Networks()} }

// Sentences that say which list refuses a destination, and what to do.
const (
	tenantRefuses = "The operator of this server lets functions of this tenant reach other destinations only (forerun tenant update --egress)."
	actionRefuses = "The action's annotation 'egress' does not name it."
)

// refusal is the sentence for the first list that does not have something; "" if all that bound something have it.
func (l Lists) refusal(has func(List) bool) string {
	switch {
	case l.Tenant != nil && !has(l.Tenant):
		return tenantRefuses
	case l.Action != nil && !has(l.Action):
		return actionRefuses
	}
	return ""
}

// ports are the ports that every list allows for a name, 0 for all.
func (l Lists) ports(name string) []uint16 {
	if l.Tenant == nil {
		return l.Action.ports(name)
	}
	ports := l.Tenant.ports(name)
	if l.Action == nil {
		return ports
	}
	return intersect(ports, l.Action.ports(name))
}

func intersect(a, b []uint16) (both []uint16) {
	for _, port := range a {
		if port == 0 {
			return b
		}
		if slices.Contains(b, port) || slices.Contains(b, 0) {
			both = append(both, port)
		}
	}
	return both
}

// learnedAtMost bounds how many addresses of one answer count.
const learnedAtMost = 1024

// pinnedAtMost bounds the addresses that are remembered of names. Beyond it the oldest are forgotten, and come back with the next answer.
const pinnedAtMost = 4096

// Confines are the lists of one sandbox, with the addresses that its functions were told for the names in them. The zero value confines
// nothing. Its methods may be called concurrently.
type Confines struct {
	mu     sync.Mutex // guards the rest
	lists  Lists
	pinned map[netip.AddrPort]bool // port 0: all
	order  []netip.AddrPort        // of pinned, oldest first
}

// Set puts other lists in force, and forgets the addresses of names.
func (c *Confines) Set(lists Lists) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lists, c.pinned, c.order = lists, map[netip.AddrPort]bool{}, nil
}

// Refusal is the sentence that says why a destination is refused, "" if it is not.
func (c *Confines) Refusal(to netip.AddrPort) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	to = plain(to)
	if !c.lists.Bounds() || c.pinned[to] || c.pinned[netip.AddrPortFrom(to.Addr(), 0)] {
		return ""
	}
	return c.lists.refusal(func(l List) bool { return l.Has(to) })
}

func plain(to netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(to.Addr().WithZone("").Unmap(), to.Port())
}

// Bounds reports whether there is a list that bounds something.
func (c *Confines) Bounds() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists.Bounds()
}

// RefusalOfName is the same for a question for a name: every list must have it, or the question itself could carry data out.
func (c *Confines) RefusalOfName(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sentence := c.lists.refusal(func(l List) bool { return len(l.ports(name)) > 0 }); sentence != "" || !c.lists.Bounds() {
		return sentence
	}
	if len(c.lists.ports(name)) == 0 {
		return actionRefuses // it has other ports than the tenant's list
	}
	return ""
}

// Learn takes the addresses with which a name was answered, and returns those that may be reached now and could not before.
func (c *Confines) Learn(name string, addresses []netip.Addr) []netip.AddrPort {
	c.mu.Lock()
	defer c.mu.Unlock()
	var fresh []netip.AddrPort
	for _, port := range c.lists.ports(name) {
		for _, ip := range addresses {
			if len(fresh) < learnedAtMost {
				fresh = append(fresh, plain(netip.AddrPortFrom(ip, port)))
			}
		}
	}
	return c.pin(fresh)
}

// Pin allows addresses of names, as Learn returned them.
func (c *Confines) Pin(addresses []netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pin(addresses)
}

// pin returns those that are new. mu is held.
func (c *Confines) pin(addresses []netip.AddrPort) (fresh []netip.AddrPort) {
	for _, a := range addresses {
		if c.pinned[a] {
			continue
		}
		if len(c.order) >= pinnedAtMost {
			delete(c.pinned, c.order[0])
			c.order = c.order[1:]
		}
		c.pinned[a] = true
		c.order, fresh = append(c.order, a), append(fresh, a)
	}
	return fresh
}
