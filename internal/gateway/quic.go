package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/seats"
)

// Bounds of what QUIC clients may keep open, besides the bounds of all clients.
const (
	retryFrom     = 512  // handshakes under way from which on clients first prove their address
	maxHandshakes = 1024 // at a time

	aliveTime = 15 * time.Second // between packets that keep a connection alive
	deadTime  = time.Minute      // without a packet of the client

	maxQUICHead = 16 << 10 // bytes of the head of a request

	maxControls = 10 // streams of one direction: HTTP/3 has three
)

// quicServer serves HTTP/3 on one UDP socket.
//
// Each connection has an http3.Server of its own, because an http3.Server says GOAWAY to all of its connections or to none.
type quicServer struct {
	*QUIC
	server     *Server
	tickets    *tickets
	handler    http.Handler
	socket     net.PacketConn
	transport  *quic.Transport
	listener   *quic.EarlyListener
	handshakes atomic.Int64

	mu    sync.Mutex // guards the rest
	conns map[*quicConn]bool
}

// QUIC holds the settings and counts that all QUIC listeners of a server share.
type QUIC struct {
	Windows Windows
	Early   bool // clients that come back may send early data
	Traffic *Traffic

	strangers *seats.Seats // made by the first ListenQUIC
}

// ListenQUIC has the server serve HTTP/3, too, on a UDP socket of the same port. It is called before Serve, on a server with TLS.
func (s *Server) ListenQUIC(socket net.PacketConn, common *QUIC) error {
	q := &quicServer{server: s, QUIC: common, handler: s.Handler, socket: socket, tickets: newTickets(common.Traffic), conns: make(map[*quicConn]bool)}
	if common.strangers == nil {
		common.strangers = seats.New(0, maxKeyless)
	}
	q.transport = &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: q.isUnproven,
		ConnContext:         q.begin,
	}
	listener, err := q.transport.ListenEarly(q.tickets.configure(http3.ConfigureTLSConfig(s.TLSConfig)), &quic.Config{
		Allow0RTT:            common.Early,
		HandshakeIdleTimeout: headTime, MaxIdleTimeout: deadTime, KeepAlivePeriod: aliveTime,
		MaxIncomingStreams: maxStreams, MaxIncomingUniStreams: maxControls,
		InitialStreamReceiveWindow: firstWindow, MaxStreamReceiveWindow: streamWindow,
		InitialConnectionReceiveWindow: firstWindow, MaxConnectionReceiveWindow: connWindow,
		AllowConnectionWindowIncrease: func(conn *quic.Conn, by uint64) bool { return connOf(conn).window.grow(int64(by)) },
	})
	if err != nil {
		return err
	}
	q.listener, s.quic = listener, q
	s.Handler = announceQUIC(s.Handler, socket.LocalAddr().(*net.UDPAddr).Port)
	return nil
}

// announceQUIC tells the clients of other protocols that there is HTTP/3.
func announceQUIC(handler http.Handler, port int) http.Handler {
	service := `h3=":` + strconv.Itoa(port) + `"; ma=3600`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Alt-Svc", service)
		handler.ServeHTTP(w, r)
	})
}

// isUnproven reports whether a new client is to prove its address first.
func (q *quicServer) isUnproven(net.Addr) bool {
	if q.handshakes.Load() < retryFrom {
		return false
	}
	q.Traffic.Retries.Add(1)
	return true
}

// begin takes in a client's first packet. It puts the connection into the context of all of its requests.
func (q *quicServer) begin(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	if q.handshakes.Add(1) > maxHandshakes {
		q.handshakes.Add(-1)
		return nil, forerun.Errorf(forerun.TooMany, "", "Too many handshakes at a time.")
	}
	shaken := sync.OnceFunc(func() { q.handshakes.Add(-1) })
	its, ok := q.Windows.open()
	if !ok {
		shaken()
		return nil, forerun.Errorf(forerun.TooMany, "", "Too many connections at a time.")
	}
	c := &quicConn{place: place{seats: q.server.seats}, window: its, handler: q.handler, traffic: q.Traffic, shaken: shaken}
	context.AfterFunc(ctx, c.gone)
	return context.WithValue(ctx, clientKey{}, c), nil
}

// connOf finds what begin put into the context of a connection.
func connOf(conn *quic.Conn) *quicConn { return conn.Context().Value(clientKey{}).(*quicConn) }

// serve serves the connections until close.
func (q *quicServer) serve() error {
	ctx, end := context.WithCancel(context.Background())
	defer end()
	go q.tickets.run(ctx)
	for {
		conn, err := q.listener.Accept(context.Background())
		if errors.Is(err, quic.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
			return http.ErrServerClosed
		}
		if err != nil {
			return err
		}
		go q.serveConn(conn)
	}
}

func (q *quicServer) serveConn(conn *quic.Conn) {
	c := connOf(conn)
	c.conn, c.server = conn, &http3.Server{Handler: c, MaxHeaderBytes: maxQUICHead, Logger: q.server.log}
	c.stand(c.cut)
	q.Traffic.QUIC.Add(1)
	defer q.Traffic.QUIC.Add(-1)
	c.watch()
	defer c.gone()
	defer c.cut() // ServeQUICConn leaves a connection open on some errors
	defer q.forget(q.remember(c))
	if conn.ConnectionState().Used0RTT { // its requests come before the end of the handshake
		c.keyless.begin(q.strangers, c.cut)
	}
	go func() {
		select {
		case <-conn.HandshakeComplete():
			c.shaken()
			c.keyless.begin(q.strangers, c.cut)
			q.Traffic.Handshakes.Add(1)
			if conn.ConnectionState().TLS.DidResume {
				q.Traffic.Resumed.Add(1)
			}
		case <-conn.Context().Done():
			q.Traffic.Unfinished.Add(1)
		}
	}()
	if err := c.server.ServeQUICConn(conn); err != nil {
		q.server.log.Debug("a connection of HTTP/3 has ended", "error", err)
	}
}

func (q *quicServer) remember(c *quicConn) *quicConn {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.conns[c] = true
	return c
}

func (q *quicServer) forget(c *quicConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.conns, c)
}

// all are the connections that there are.
func (q *quicServer) all() (all []*quicConn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.conns {
		all = append(all, c)
	}
	return all
}

// shutdown takes no connection any more, says GOAWAY on the others and waits until their clients have closed them, or ctx is done.
func (q *quicServer) shutdown(ctx context.Context) error {
	_ = q.listener.Close() // it cannot fail
	for _, c := range q.all() {
		c.drain()
	}
	for _, c := range q.all() {
		select {
		case <-c.conn.Context().Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return q.close()
}

// close ends all connections and the socket. It may be called twice.
func (q *quicServer) close() error {
	_ = q.listener.Close() // it cannot fail
	var ending sync.WaitGroup
	for _, c := range q.all() {
		ending.Go(c.cut)
	}
	ending.Wait()
	err := errors.Join(q.transport.Close(), q.socket.Close())
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
