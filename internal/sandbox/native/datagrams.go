package native

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/sandbox"
	"forerun.dev/forerun/internal/sandbox/guard"
)

// Limits of the datagram relay of one sandbox.
const (
	flowsAtMost = 256
	flowIdle    = 60 * time.Second
	maxPacket   = 64 << 10
)

// portsAtMost bounds the host's ports that datagrams and questions for names of all sandboxes go out from.
const portsAtMost = 16 << 10

// datagramRelay carries UDP between a sandbox and the outside. A socket of the host's network in a sandbox could send anywhere without
// being seen, so a sandbox gets none. Its datagrams to the outside arrive here as packets instead. The relay checks each one and sends it
// from a socket of the server.
type datagramRelay struct {
	policy  guard.Confined
	refused func(sentence string)
	hosts   *readHosts
	ports   *sandbox.Shares // of all sandboxes
	packets *os.File        // the socket on which they arrive and go back
	asked   asked

	mu     sync.Mutex     // guards what follows
	owner  string         // of the sandbox
	buffer []byte         // the packet that is being read
	flows  map[flow]*peer // nil stands for a refused one, so that the policy is asked once
	held   bool           // datagrams wait
	queue  []datagram     // those that do
	bytes  int            // of their payloads
	flood  bool           // more came since hold than are to wait

	floods chan struct{} // says that flood was set
}

// Bounds for waiting datagrams and their bytes: about the buffer of a socket, as they are sent on together. The worker learns of an
// activation that sends more, and ends it a moment later. If its promotion is under way it goes on, so further datagrams wait, too.
const (
	heldAtMost      = 256
	heldBytesAtMost = 1 << 20
)

// Bounds for all waiting datagrams, and about what one takes beside its payload; more get lost.
const (
	queueAtMost  = 16 << 20
	datagramCost = 256
)

// flow is a socket of the sandbox and its peer.
type flow struct{ inside, outside netip.AddrPort }

type peer struct {
	conn  *net.UDPConn
	owner string // whose ports it takes
}

// newDatagramRelay uses a copy of the file.
func newDatagramRelay(packets *os.File, policy guard.Confined, hosts *readHosts, ports *sandbox.Shares, owner string, refused func(string)) (*datagramRelay, error) {
	own, err := pollable(packets, "packets")
	if err != nil {
		return nil, fmt.Errorf("opening the datagram relay: %w", err)
	}
	r := &datagramRelay{
		policy: policy, refused: refused, hosts: hosts, ports: ports, owner: owner, packets: own,
		buffer: make([]byte, maxPacket), flows: map[flow]*peer{}, floods: make(chan struct{}, 1),
	}
	go r.serve()
	return r, nil
}

// serve forwards what leaves the sandbox. A datagram is read and forwarded in one step, so that hold and reset know of
// each whether it came before them.
func (r *datagramRelay) serve() {
	raw, err := r.packets.SyscallConn()
	if err != nil {
		return // closed already
	}
	_ = raw.Read(func(fd uintptr) bool { // ends when the relay is closed
		for r.forwardOne(fd) {
		}
		return false
	})
}

// forwardOne lets the others in between two datagrams: a process may send without an end.
func (r *datagramRelay) forwardOne(fd uintptr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takeOne(fd, r.forward)
}

// takeOne takes a datagram that has left the sandbox, and reports whether there was one. mu is held.
func (r *datagramRelay) takeOne(fd uintptr, take func(datagram)) bool {
	n, err := unix.Read(int(fd), r.buffer)
	if err != nil {
		return err == unix.EINTR
	}
	if d, ok := parsePacket(r.buffer[:n]); ok {
		take(d)
	}
	return true
}

// allowMore has the policy asked again about destinations that it refused.
func (r *datagramRelay) allowMore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.flows, func(_ flow, p *peer) bool { return p == nil })
}

// forward sends a datagram on, or keeps it. One that is refused is refused at once, while its activation has a log.
func (r *datagramRelay) forward(d datagram) {
	r.asked.saw(r.hosts.permits(d.to))
	if !r.held || r.hosts.permits(d.to) || r.policy.Refusal(d.to) != "" {
		r.send(d)
		return
	}
	if len(r.queue) >= heldAtMost || r.bytes+len(d.payload) > heldBytesAtMost {
		r.tellFlood()
	}
	if r.bytes+len(d.payload)+(len(r.queue)+1)*datagramCost <= queueAtMost {
		d.payload = slices.Clone(d.payload)
		r.queue, r.bytes = append(r.queue, d), r.bytes+len(d.payload)
	}
}

func (r *datagramRelay) tellFlood() {
	r.flood = true
	select {
	case r.floods <- struct{}{}:
	default:
	}
}

func (r *datagramRelay) send(d datagram) {
	if p := r.find(flow{d.from, d.to}); p != nil {
		_ = p.conn.SetReadDeadline(time.Now().Add(flowIdle))
		_, _ = p.conn.Write(d.payload) // a datagram may get lost
	}
}

// hold has datagrams wait from now on.
func (r *datagramRelay) hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain(r.forward) // they were sent before
	r.held, r.flood = true, false
	select {
	case <-r.floods:
	default:
	}
}

// flooded reports whether more came since hold than are to wait.
func (r *datagramRelay) flooded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.flood
}

// release sends on those that wait, and lets the next pass.
func (r *datagramRelay) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
	for _, d := range r.queue {
		r.send(d)
	}
	r.queue, r.bytes = nil, 0
}

// waiting is how many wait.
func (r *datagramRelay) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// takeHeld is Sandbox.TakeHeld.
func (r *datagramRelay) takeHeld() (send func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain(r.forward)
	taken := r.queue
	r.queue, r.bytes = nil, 0
	if len(taken) == 0 {
		return nil
	}
	return func() { sendApart(taken) }
}

// sendApart sends datagrams whose sockets are gone, each flow from one port.
func sendApart(queue []datagram) {
	conns := map[flow]*net.UDPConn{}
	for _, d := range queue {
		f := flow{d.from, d.to}
		if _, known := conns[f]; !known {
			conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(d.to))
			if err != nil {
				continue // a datagram may get lost
			}
			defer conn.Close()
			conns[f] = conn
		}
		_, _ = conns[f].Write(d.payload) // as above
	}
}

// drop forgets the datagrams that wait, those that have not been read yet included. Their senders are gone.
func (r *datagramRelay) drop() {
	r.queue, r.bytes = nil, 0
	r.drain(func(datagram) {})
}

// takeArrived takes the datagrams that have left the sandbox, so that they are counted.
func (r *datagramRelay) takeArrived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drain(r.forward)
}

// drain takes all that have left the sandbox by now, and perhaps some more. mu is held.
func (r *datagramRelay) drain(take func(datagram)) {
	raw, err := r.packets.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		for n := 0; n < queuedAtMost && r.takeOne(fd, take); n++ {
		}
	})
}

// find returns the socket for a flow, made if the policy allows it. mu is held.
func (r *datagramRelay) find(f flow) *peer {
	if p, ok := r.flows[f]; ok {
		return p
	}
	if len(r.flows) >= flowsAtMost {
		return nil
	}
	if sentence := r.policy.Refusal(f.outside); sentence != "" {
		r.flows[f] = nil
		r.refused(sentence)
		return nil
	}
	return r.open(f)
}

// open makes the socket for a flow, if the sandbox's owner may have another port. mu is held.
func (r *datagramRelay) open(f flow) *peer {
	if !r.ports.Take(r.owner) {
		return nil
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(f.outside))
	if err != nil {
		r.ports.Count(r.owner, -1)
		return nil
	}
	p := &peer{conn: conn, owner: r.owner}
	_ = conn.SetReadDeadline(time.Now().Add(flowIdle))
	r.flows[f] = p
	go r.answers(f, p)
	return p
}

// answers brings back the other side's datagrams, until the flow is idle or closed.
func (r *datagramRelay) answers(f flow, p *peer) {
	defer r.forget(f, p)
	for {
		payload, err := receive(p.conn)
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) {
			continue // told by the other host or on the way there
		}
		if err != nil { // closed or idle
			return
		}
		d := datagram{from: f.outside, to: f.inside, payload: payload}
		_, _ = r.packets.Write(d.packet()) // a datagram may get lost
	}
}

// receive waits for a datagram. Only then it takes memory, as much as that needs: many wait.
func receive(conn *net.UDPConn) ([]byte, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	size := 0
	closed := raw.Read(func(fd uintptr) bool {
		size, _, err = unix.Recvfrom(int(fd), nil, unix.MSG_PEEK|unix.MSG_TRUNC|unix.MSG_DONTWAIT)
		return !errors.Is(err, unix.EAGAIN)
	})
	if err = cmp.Or(closed, err); err != nil {
		return nil, err
	}
	b := make([]byte, size+1) // without room for anything an empty one would not be read
	n, err := conn.Read(b)
	return b[:n], err
}

func (r *datagramRelay) forget(f flow, p *peer) {
	r.leave(f, p) // before it is closed: a datagram sent meanwhile gets another
	_ = p.conn.Close()
	r.ports.Count(p.owner, -1)
}

func (r *datagramRelay) leave(f flow, p *peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.flows[f] == p {
		delete(r.flows, f)
	}
}

// own makes the sandbox another owner's.
func (r *datagramRelay) own(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = owner
}

// reset closes the flows of the activation that has ended.
func (r *datagramRelay) reset() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		r.drop()
	}
	for f, p := range r.flows {
		delete(r.flows, f)
		if p != nil {
			_ = p.conn.Close()
		}
	}
}

// close returns when everything is closed, which takes the kernel some ten milliseconds for packet sockets.
func (r *datagramRelay) close() {
	if r == nil {
		return
	}
	r.reset()
	_ = r.packets.Close()
}
