package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/egress"
	"forerun.dev/forerun/internal/sandbox"
)

// Limits of the name relay of one sandbox.
const (
	queriesAtOnce = 64
	queryPatience = 3 * time.Second // for one nameserver
	namesIdle     = 10 * time.Second
	maxQuery      = 64 << 10
)

// queuedAtMost is more than a socket holds: any further question comes from a living process.
const queuedAtMost = 8192

// nameservers reads the host's from a resolv.conf, as host:port.
func nameservers(path string) ([]string, error) {
	const local = "127.0.0.1:53" // a C library's default
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return []string{local}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the nameservers: %w", err)
	}
	defer f.Close()
	var servers []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) >= 2 && fields[0] == "nameserver" {
			servers = append(servers, net.JoinHostPort(fields[1], "53"))
		}
	}
	if servers == nil {
		servers = []string{local}
	}
	return servers, nil
}

// nameRelay serves 127.0.0.1:53 in a sandbox by passing every query to the host's nameservers. It runs in the server,
// which has no privilege to lose. It looks into queries only where read-hosts or lists of the sandbox name hosts.
type nameRelay struct {
	servers  []string
	udp, tcp *os.File
	slots    chan struct{} // one for each query that is being served
	gate     gate
	asked    asked
	calls    *activity
	relayParts

	mu     sync.Mutex // held from when a query is taken until it belongs to an activation, and from there to its successor
	owner  string     // of the sandbox
	buffer []byte     // the query that is being read
}

// relayParts are the parts of its sandbox and maker that a name relay works with.
type relayParts struct {
	hosts    *readHosts
	confines *egress.Confines
	ports    *sandbox.Shares // of all sandboxes: each query that is being served has one
	refused  func(sentence string)
	learned  func(ctx context.Context, answer []byte)
}

// newNameRelay uses copies of the two files. refused is called with a sentence for each question that is refused, and learned with answers.
func newNameRelay(udp, tcp *os.File, servers []string, owner string, p relayParts) (*nameRelay, error) {
	packets, err := pollable(udp, "questions")
	if err != nil {
		return nil, fmt.Errorf("opening the name relay: %w", err)
	}
	listener, err := pollable(tcp, "streams of questions")
	if err != nil {
		packets.Close()
		return nil, fmt.Errorf("opening the name relay: %w", err)
	}
	r := &nameRelay{
		servers: servers, udp: packets, tcp: listener, slots: make(chan struct{}, queriesAtOnce), calls: new(activity), relayParts: p,
		owner: owner, buffer: make([]byte, maxQuery),
	}
	go r.serve(r.udp, r.takePacket)
	go r.serve(r.tcp, r.takeStream)
	return r, nil
}

// pollable is a copy of a socket's file that reads without a thread that waits.
func pollable(socket *os.File, name string) (*os.File, error) {
	fd, err := unix.FcntlInt(socket.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// serve takes what arrives at a socket, until that is closed. It takes a question and gives it to the present activation in one step, so
// that reset knows of each whether it came before.
func (r *nameRelay) serve(socket *os.File, take func(fd int, drop bool) bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return // closed already
	}
	_ = raw.Read(func(fd uintptr) bool {
		for r.takeOne(int(fd), take) {
		}
		return false
	})
}

func (r *nameRelay) takeOne(fd int, take func(fd int, drop bool) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return take(fd, false)
}

// takePacket takes a query, if there is one, and serves it if it is not to be dropped. mu is held.
func (r *nameRelay) takePacket(fd int, drop bool) bool {
	n, from, err := unix.Recvfrom(fd, r.buffer, unix.MSG_DONTWAIT)
	if err != nil {
		return errors.Is(err, unix.EINTR)
	}
	if drop {
		return true
	}
	query := bytes.Clone(r.buffer[:n])
	reads := r.hosts.asks(query)
	r.asked.saw(reads)
	if r.refuse(query) {
		r.reply(refusedAnswer(query), from)
		return true
	}
	r.call(func(ctx context.Context) {
		if !reads && !r.gate.pass(ctx) {
			return
		}
		if answer := r.ask(ctx, query); answer != nil {
			r.learned(ctx, answer)
			r.reply(answer, from)
		}
	})
	return true
}

// refuse reports whether a query may not go out: the lists of the sandbox do not have its name, or it is not a bare question. It tells why.
func (r *nameRelay) refuse(query []byte) bool {
	if !r.confines.Bounds() {
		return false
	}
	name, sentence := askedName(query), "It is not a plain question for addresses of a name, which alone this function may ask."
	if name != "" && isBare(query) {
		sentence = r.confines.RefusalOfName(name)
	}
	if sentence == "" {
		return false
	}
	r.refused(fmt.Sprintf("The question for the name %q was refused: %s", name, sentence))
	return true
}

// refusedAnswer is a query as a nameserver refuses it.
func refusedAnswer(query []byte) []byte {
	const header, response, refused = 12, 1 << 7, 5
	if len(query) < header {
		return nil
	}
	answer := bytes.Clone(query)
	answer[2] |= response
	answer[3] = answer[3]&0xf0 | refused
	return answer
}

func (r *nameRelay) reply(answer []byte, to unix.Sockaddr) {
	raw, err := r.udp.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) { _ = unix.Sendto(int(fd), answer, unix.MSG_DONTWAIT, to) }) // the asker may have gone
}

// call serves one query. While all slots are taken, or all ports of the sandbox's owner, further queries are dropped, as a network would
// drop them. mu is held.
func (r *nameRelay) call(serve func(context.Context)) bool {
	select {
	case r.slots <- struct{}{}:
	default:
		return false
	}
	owner := r.owner
	if !r.ports.Take(owner) {
		<-r.slots
		return false
	}
	r.calls.run(func(ctx context.Context) {
		defer func() {
			r.ports.Count(owner, -1)
			<-r.slots
		}()
		serve(ctx)
	})
	return true
}

// own makes the sandbox another owner's.
func (r *nameRelay) own(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = owner
}

// ask asks one nameserver after the other; nil if none answered.
func (r *nameRelay) ask(ctx context.Context, query []byte) []byte {
	for _, server := range r.servers {
		conn, hangUp, err := dial(ctx, "udp", server)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(queryPatience))
		var answer []byte
		if _, err = conn.Write(query); err == nil {
			answer, err = receive(conn.(*net.UDPConn))
		}
		hangUp()
		if err == nil {
			return answer
		}
	}
	return nil
}

// dial connects. The connection closes by hangUp, and at the latest when ctx ends.
func dial(ctx context.Context, network, address string) (conn net.Conn, hangUp func(), err error) {
	if conn, err = (&net.Dialer{Timeout: queryPatience}).DialContext(ctx, network, address); err != nil {
		return nil, nil, err
	}
	return conn, closing(ctx, conn), nil
}

// closing has a connection close when ctx ends; the returned function closes it before. Else ctx, which may last for an hour of questions, would
// keep it.
func closing(ctx context.Context, conn net.Conn) (hangUp func()) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return func() {
		stop()
		conn.Close()
	}
}

// takeStream does the same with a connection.
func (r *nameRelay) takeStream(fd int, drop bool) bool {
	accepted, _, err := unix.Accept4(fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED)
	}
	f := os.NewFile(uintptr(accepted), "stream of questions")
	defer f.Close()
	if drop {
		return true
	}
	r.asked.saw(false)
	if r.confines.Bounds() { // of streams it is not known what they ask
		r.refused("A question for a name over TCP was refused: this function may ask for the names in its list over UDP only.")
		return true
	}
	conn, err := net.FileConn(f)
	if err != nil {
		return true
	}
	if !r.call(func(ctx context.Context) { r.stream(ctx, conn) }) {
		conn.Close()
	}
	return true
}

func (r *nameRelay) stream(ctx context.Context, conn net.Conn) {
	defer closing(ctx, conn)()
	if !r.gate.pass(ctx) {
		return
	}
	for _, server := range r.servers {
		up, hangUp, err := dial(ctx, "tcp", server)
		if err != nil {
			continue
		}
		defer hangUp()
		go func() {
			_, _ = io.Copy(up, gated{idle{conn}, ctx, &r.gate})
			_ = up.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(conn, idle{up})
		return
	}
}

// gated reads what may go out: of a stream that began before the gate was shut the rest waits.
type gated struct {
	from io.Reader
	ctx  context.Context
	gate *gate
}

func (g gated) Read(b []byte) (int, error) {
	n, err := g.from.Read(b)
	if err == nil && !g.gate.pass(g.ctx) {
		return 0, context.Cause(g.ctx)
	}
	return n, err
}

// idle ends reading when nothing comes for a while.
type idle struct{ net.Conn }

func (i idle) Read(b []byte) (int, error) {
	_ = i.SetReadDeadline(time.Now().Add(namesIdle))
	return i.Conn.Read(b)
}

// reset ends an activation's unanswered questions, and drops the unread ones. Their askers are gone.
func (r *nameRelay) reset() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget()
}

// forget is reset with mu held.
func (r *nameRelay) forget() {
	r.takeAll(true)
	r.calls.reset()
}

// takeAll takes the questions that have arrived, and serves or drops them. mu is held.
func (r *nameRelay) takeAll(drop bool) {
	r.takeFrom(r.udp, r.takePacket, drop)
	r.takeFrom(r.tcp, r.takeStream, drop)
}

func (r *nameRelay) takeFrom(socket *os.File, take func(fd int, drop bool) bool, drop bool) {
	raw, err := socket.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = raw.Control(func(fd uintptr) {
		for n := 0; n < queuedAtMost && something(int(fd)) && take(int(fd), drop); n++ {
		}
	})
}

// takeArrived takes the questions that have arrived, so that they are counted.
func (r *nameRelay) takeArrived() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takeAll(false)
}

// something reports whether something has come at a socket: to ask costs less than to accept nothing.
func something(fd int) bool {
	look := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(look, 0)
	return n > 0 || err != nil
}

func (r *nameRelay) close() {
	if r != nil {
		_ = r.udp.Close()
		_ = r.tcp.Close()
		r.calls.end()
	}
}

// activity is work that belongs to one activation after the other.
type activity struct {
	mu     sync.Mutex         // guards the rest
	ctx    context.Context    // of the present activation; nil: it has no work
	cancel context.CancelFunc // of ctx
	ended  bool
}

// run does something in the background until it is done or the activation ends.
func (a *activity) run(do func(context.Context)) {
	go do(a.now())
}

// now is the context of the present activation.
func (a *activity) now() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancel(context.Background())
		if a.ended {
			a.cancel()
		}
	}
	return a.ctx
}

// reset ends the present activation's work.
func (a *activity) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stop()
}

// stop is reset with mu held.
func (a *activity) stop() {
	if a.ctx != nil {
		a.cancel()
		a.ctx, a.cancel = nil, nil
	}
}

// end ends the present activation's work, and all that comes behind it.
func (a *activity) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.stop()
}
