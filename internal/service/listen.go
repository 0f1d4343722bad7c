package service

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/gateway/admin"
	"forerun.dev/forerun/internal/gateway/console"
	"forerun.dev/forerun/internal/gateway/webaction"
	"forerun.dev/forerun/internal/seats"
)

// listeners are the ports that the server listens on. Those for which no address is given are nil.
type listeners struct {
	front    *listener
	web      *listener // of web actions alone
	redis    *listener
	measured *listener // of /metrics and /healthz alone
	console  *listener // of the console alone
}

// listener is a port. A secure one speaks TLS, which every one off the loopback does.
type listener struct {
	net.Listener
	secure bool
	udp    net.PacketConn // of HTTP/3, on the same port; nil: there is none
}

func (l *listener) address() *net.TCPAddr { return l.Addr().(*net.TCPAddr) }

func (l *listener) port() int { return l.address().Port }

// all are the listeners that there are.
func (s *listeners) all() (all []*listener) {
	for _, l := range []*listener{s.front, s.web, s.redis, s.measured, s.console} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// described are the listeners as the operator sees them.
func (s *listeners) described() (all []admin.Listener) {
	for _, x := range []struct {
		setting string
		l       *listener
		redis   bool
	}{{"listen", s.front, false}, {"web-listen", s.web, false}, {"redis-listen", s.redis, true}, {"metrics-listen", s.measured, false}, {"console-listen", s.console, false}} {
		if x.l != nil {
			all = append(all, admin.Listener{Setting: x.setting, Address: x.l.Addr().String(), TLS: x.l.secure, Protocols: x.l.protocols(x.redis)})
		}
	}
	return all
}

// protocols are those that a listener speaks.
func (l *listener) protocols(redis bool) []string {
	switch {
	case redis && l.secure:
		return []string{"Redis over TLS"}
	case redis:
		return []string{"Redis"}
	case !l.secure:
		return []string{"HTTP/1.1 without TLS"}
	case l.udp == nil:
		return []string{"HTTP/1.1", "HTTP/2"}
	}
	return []string{"HTTP/1.1", "HTTP/2", "HTTP/3"}
}

// listen takes the ports, so that one that is not free is known before anything else is done.
func (s *server) listen(ctx context.Context) (err error) {
	for _, x := range []struct {
		flag, address string
		is            **listener
		on            func(ctx context.Context, flag, address string) (*listener, error)
	}{
		{"--listen", s.config.Listen, &s.front, s.listenForHTTP},
		{"--web-listen", s.config.WebListen, &s.web, s.listenForHTTP},
		{"--redis-listen", s.config.RedisListen, &s.redis, s.listenOn},
		{"--metrics-listen", s.config.MetricsListen, &s.measured, s.listenOn},
		{"--console-listen", s.config.ConsoleListen, &s.console, s.listenOn},
	} {
		if *x.is, err = x.on(ctx, x.flag, x.address); err != nil {
			return err
		}
	}
	return nil
}

// listenOn listens on an address, unless that is empty.
func (s *server) listenOn(ctx context.Context, flag, address string) (*listener, error) {
	if address == "" {
		return nil, nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, forerun.Errorf(forerun.Unavailable, flag+" "+address, "The address cannot be listened on: %w. Stop what uses it, or choose another with %s.", err, flag)
	}
	s.onClose(func() error { return closeOnce(l) })
	return &listener{Listener: l, secure: s.config.TLS || !l.Addr().(*net.TCPAddr).IP.IsLoopback()}, nil
}

// closeOnce closes what may be closed already.
func closeOnce(c io.Closer) error {
	if err := c.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// freePorts is how many free ports of TCP are tried, of which one of UDP may be in use.
const freePorts = 20

// listenForHTTP listens on an address, also for HTTP/3 if there is TLS.
func (s *server) listenForHTTP(ctx context.Context, flag, address string) (l *listener, err error) {
	for range freePorts {
		if l, err = s.listenOn(ctx, flag, address); err != nil || l == nil || !l.secure || !s.config.HTTP3 {
			return l, err
		}
		if l.udp, err = s.listenForQUIC(ctx, flag, l); err == nil || !strings.HasSuffix(address, ":0") {
			return l, err
		}
		_ = l.Close() // another port is tried
	}
	return nil, err
}

// listenForQUIC listens on the UDP port with a listener's number.
func (s *server) listenForQUIC(ctx context.Context, flag string, l *listener) (net.PacketConn, error) {
	udp, err := (&net.ListenConfig{Control: roomForDatagrams}).ListenPacket(ctx, "udp", l.Addr().String())
	if err != nil {
		return nil, forerun.Errorf(forerun.Unavailable, flag+" "+l.Addr().String(), "The UDP port %d, which HTTP/3 uses, cannot be listened on: %w. Stop what uses it, choose another with %s, or switch HTTP/3 off with --http3 off.", l.port(), err, flag)
	}
	s.onClose(func() error { return closeOnce(udp) })
	return udp, nil
}

// datagramRoom is how many bytes of datagrams wait in the kernel for the server, or for the network.
const datagramRoom = 7 << 20

// roomForDatagrams sets the buffers of a UDP socket. Only root gets more than the system's limit.
func roomForDatagrams(_, _ string, c syscall.RawConn) error {
	return c.Control(func(fd uintptr) {
		for _, option := range []int{unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE} {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, datagramRoom)
		}
	})
}

// url is where clients find a listener.
func (s *server) url(l *listener) string {
	if !l.secure {
		return "http://" + l.Addr().String()
	}
	return "https://" + net.JoinHostPort(s.host(l), strconv.Itoa(l.port()))
}

// serve serves the front door to clients. Web actions share it, or have a listener, hosts, or both.
func (s *server) serve(c gateway.Config, origin *webaction.Origin, has *seats.Seats) error {
	var doors []door
	if s.measured != nil {
		nothing := http.HandlerFunc(nothingButMetrics)
		doors = append(doors, door{s.measured, gateway.New(gateway.Config{API: nothing, Web: nothing, Metrics: c.Metrics, Gate: c.Gate, Traffic: c.Traffic, Log: c.Log, Audit: c.Audit})})
		c.Metrics = nil
	}
	if s.console != nil {
		page, err := console.New(console.Config{API: c.API, Tenants: s.registry, Files: console.Bundle(), Secure: s.console.secure, APIURL: s.url(s.front)})
		if err != nil {
			return err
		}
		doors = append(doors, door{s.console, gateway.New(gateway.Config{API: page, Web: page, Gate: c.Gate, Traffic: c.Traffic, Log: c.Log, Audit: c.Audit})})
	}
	front := gateway.New(c)
	if origin.URL != "" {
		w := gateway.Config{API: http.HandlerFunc(webaction.Nothing), Web: origin.Only(c.Web), Gate: c.Gate, Traffic: c.Traffic, Log: c.Log, Audit: c.Audit}
		if c.Metrics != nil {
			w.Metrics = http.NotFoundHandler()
		}
		web := gateway.New(w)
		c.Web = http.HandlerFunc(origin.Elsewhere)
		front = gateway.New(c)
		if s.web != nil {
			doors = append(doors, door{s.web, web})
		} else {
			front = origin.Split(web, front)
		}
	}
	common := &gateway.QUIC{Early: s.config.EarlyData, Traffic: c.Traffic}
	for _, d := range append(doors, door{s.front, front}) {
		if err := s.serveOn(d, has, common); err != nil {
			return err
		}
	}
	return nil
}

func nothingButMetrics(w http.ResponseWriter, r *http.Request) {
	gateway.Fail(w, r, forerun.Errorf(forerun.NotFound, r.URL.Path, "This address serves /metrics and /healthz only."))
}

// door is a listener of HTTP and what it serves.
type door struct {
	on      *listener
	handler http.Handler
}

func (s *server) serveOn(d door, has *seats.Seats, common *gateway.QUIC) error {
	server := gateway.NewServer(d.handler, has, s.tlsOf(d.on), s.log)
	common.Traffic.Count(server)
	if d.on.udp != nil {
		if err := server.ListenQUIC(d.on.udp, common); err != nil {
			return forerun.Errorf(forerun.Internal, "", "HTTP/3 cannot be served: %w", err)
		}
	}
	s.http = append(s.http, server)
	go func() {
		if err := server.Serve(d.on); !errors.Is(err, http.ErrServerClosed) {
			s.broken <- forerun.Errorf(forerun.Internal, "", "The HTTP server has ended: %w", err)
		}
	}()
	return nil
}

// tlsOf is the configuration of a listener's TLS; nil for one without.
func (s *server) tlsOf(l *listener) *tls.Config {
	if !l.secure {
		return nil
	}
	return s.certificate.Config()
}

// handshakeTime is how long a Redis client may take for its TLS handshake. The HTTP server bounds it by itself.
const handshakeTime = 10 * time.Second

// shaken is a listener whose connections speak TLS, and whose handshakes do not take long.
type shaken struct {
	net.Listener
	config *tls.Config
}

// Accept implements net.Listener. It does not wait for the handshake.
func (l shaken) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &shakenConn{Conn: tls.Server(c, l.config)}, nil
}

// shakenConn is such a connection. Its first read begins with the handshake.
type shakenConn struct {
	*tls.Conn
	once sync.Once
	err  error
}

// Read implements io.Reader.
func (c *shakenConn) Read(b []byte) (int, error) {
	c.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
		defer cancel()
		c.err = c.HandshakeContext(ctx)
	})
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(b)
}

// SyscallConn implements syscall.Conn: a client that leaves closes the connection below TLS, too.
func (c *shakenConn) SyscallConn() (syscall.RawConn, error) {
	below, ok := c.NetConn().(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return below.SyscallConn()
}
