package native

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// Limits of the name relay of one sandbox.
const (
	queriesAtOnce = 64
	queryPatience = 3 * time.Second // for one nameserver
	namesIdle     = 10 * time.Second
	maxQuery      = 64 << 10
)

// nameservers reads the host's from a resolv.conf, as host:port.
func nameservers(path string) ([]string, error) {
	const local = "127.0.0.1:53" // what a C library asks if it is told nothing
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
// which has no privilege to lose; it looks into no query.
type nameRelay struct {
	servers []string
	udp     net.PacketConn
	tcp     net.Listener
	slots   chan struct{} // one for each query that is being served
	gate    gate
	hosts   *readHosts
	learned func(ctx context.Context, answer []byte)
	calls   *activity
}

// newNameRelay uses copies of the two files.
func newNameRelay(udp, tcp *os.File, servers []string, hosts *readHosts, learned func(context.Context, []byte)) (*nameRelay, error) {
	packets, err := net.FilePacketConn(udp)
	if err != nil {
		return nil, fmt.Errorf("opening the name relay: %w", err)
	}
	listener, err := net.FileListener(tcp)
	if err != nil {
		packets.Close()
		return nil, fmt.Errorf("opening the name relay: %w", err)
	}
	r := &nameRelay{servers: servers, udp: packets, tcp: listener, slots: make(chan struct{}, queriesAtOnce), calls: newActivity(), hosts: hosts, learned: learned}
	go r.servePackets()
	go r.serveStreams()
	return r, nil
}

func (r *nameRelay) servePackets() {
	buffer := make([]byte, maxQuery)
	for {
		n, from, err := r.udp.ReadFrom(buffer)
		if err != nil {
			return
		}
		query := append([]byte(nil), buffer[:n]...)
		r.call(func(ctx context.Context) {
			if !r.hosts.asks(query) && !r.gate.pass(ctx) {
				return
			}
			if answer := r.ask(ctx, query); answer != nil {
				r.learned(ctx, answer)
				_, _ = r.udp.WriteTo(answer, from) // the asker may have gone
			}
		})
	}
}

// call serves one query; while all slots are taken more of them are dropped, as a network would.
func (r *nameRelay) call(serve func(context.Context)) bool {
	select {
	case r.slots <- struct{}{}:
	default:
		return false
	}
	r.calls.run(func(ctx context.Context) {
		defer func() { <-r.slots }()
		serve(ctx)
	})
	return true
}

// ask asks one nameserver after the other; nil if none answered.
func (r *nameRelay) ask(ctx context.Context, query []byte) []byte {
	buffer := make([]byte, maxQuery)
	for _, server := range r.servers {
		conn, err := dial(ctx, "udp", server)
		if err != nil {
			continue
		}
		_ = conn.SetDeadline(time.Now().Add(queryPatience))
		n := 0
		if _, err = conn.Write(query); err == nil {
			n, err = conn.Read(buffer)
		}
		conn.Close()
		if err == nil {
			return buffer[:n]
		}
	}
	return nil
}

// dial connects; the connection closes at the latest when ctx ends.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: queryPatience}).DialContext(ctx, network, address)
	if err == nil {
		context.AfterFunc(ctx, func() { conn.Close() })
	}
	return conn, err
}

func (r *nameRelay) serveStreams() {
	for {
		conn, err := r.tcp.Accept()
		if err != nil {
			return
		}
		if !r.call(func(ctx context.Context) {
			if r.gate.pass(ctx) {
				r.stream(ctx, conn)
			} else {
				conn.Close()
			}
		}) {
			conn.Close()
		}
	}
}

func (r *nameRelay) stream(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	context.AfterFunc(ctx, func() { conn.Close() })
	for _, server := range r.servers {
		up, err := dial(ctx, "tcp", server)
		if err != nil {
			continue
		}
		defer up.Close()
		go func() {
			_, _ = io.Copy(up, idle{conn})
			_ = up.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(conn, idle{up})
		return
	}
}

// idle ends reading when nothing comes for a while.
type idle struct{ net.Conn }

func (i idle) Read(b []byte) (int, error) {
	_ = i.SetReadDeadline(time.Now().Add(namesIdle))
	return i.Conn.Read(b)
}

// reset ends what an activation has asked and not got yet.
func (r *nameRelay) reset() {
	if r != nil {
		r.calls.reset()
	}
}

func (r *nameRelay) close() {
	if r != nil {
		_ = r.udp.Close()
		_ = r.tcp.Close()
		r.calls.reset()
	}
}

// activity is work that belongs to one activation after the other.
type activity struct {
	mu     sync.Mutex // guards ctx and cancel
	ctx    context.Context
	cancel context.CancelFunc
}

func newActivity() *activity {
	a := &activity{}
	a.ctx, a.cancel = context.WithCancel(context.Background())
	return a
}

// run does something in the background until it is done or the activation ends.
func (a *activity) run(do func(context.Context)) {
	go do(a.now())
}

// now is the context of the present activation.
func (a *activity) now() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ctx
}

// reset ends the present activation's work.
func (a *activity) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel()
	a.ctx, a.cancel = context.WithCancel(context.Background())
}
