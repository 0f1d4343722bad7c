// Package guard stands between a sandbox's processes and the kernel: a
// system-call filter, and a supervisor that answers the calls which the filter
// holds.
//
// The filter is an allow-list. Held (seccomp user notification) are connect,
// listen, sendto with an address, what sets limits, priority or processors of a
// process by its number, what watches files, and the options of a socket that
// its machine's network hears of. The supervisor opens TCP connections to the outside
// itself: in the host's network, after the egress policy has seen a copy of the
// address, and then puts the socket at the caller's descriptor number. A
// connect that stays in the sandbox's own network namespace it executes too, on
// a copy of the descriptor. Only a send continues, and what sets something of
// the caller's own process, which a register names.
//
// Three promises hold although a send that continues may be changed by
// another thread of the sandbox in between:
//
//   - a sandbox's own sockets reach nothing but its loopback, so whatever
//     address such a call ends up with leads nowhere else;
//   - a socket that was put into a sandbox is TCP, which ignores the address
//     of a send, and no connect is executed on it: it cannot be led elsewhere;
//   - no listen is executed on it either, so that nobody reaches it but the
//     address which was checked.
//
// For the same reason no UDP socket of the host's network is ever put into a
// sandbox; datagrams to the outside are relayed (package native).
//
// While an activation is speculative, connections to the outside wait at a
// gate ([Switch]) until it is promoted. What else leaves a sandbox
// does so through the server's doors and relays, which hold it there: no other
// call has an effect outside. [Supervisor.decide] is the one place where the
// fate of a connect or a send is chosen.
package guard

import "net/netip"

// Class says where an address that a sandboxed process names leads.
type Class int

// The classes of addresses.
const (
	Inside  Class = iota // the sandbox's own loopback, a unix socket, nothing at all
	Outside              // another machine: the policy decides
)

// Address is the destination of a held call.
type Address struct {
	Class Class
	IP    netip.AddrPort // valid if Outside
}
