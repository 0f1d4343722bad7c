package service

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"

	"forerun.dev/forerun/internal/forerun"
	"forerun.dev/forerun/internal/gateway"
	"forerun.dev/forerun/internal/gateway/webaction"
	"forerun.dev/forerun/internal/seats"
)

// listeners are the ports that the server listens on. Those for which no address is given are nil.
type listeners struct {
	front    *listener
	web      *listener // of web actions alone
	redis    *listener
	measured *listener // of /metrics and /healthz alone
}

// listener is a port. A secure one speaks TLS, which every one off the loopback does.
type listener struct {
	net.Listener
	secure bool
}

func (l *listener) address() *net.TCPAddr { return l.Addr().(*net.TCPAddr) }

func (l *listener) port() int { return l.address().Port }

// all are the listeners that there are.
func (s *listeners) all() (all []*listener) {
	for _, l := range []*listener{s.front, s.web, s.redis, s.measured} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// listen takes the ports, so that one that is not free is known before anything else is done.
func (s *server) listen(ctx context.Context) (err error) {
	for _, x := range []struct {
		flag, address string
		is            **listener
	}{
		{"--listen", s.config.Listen, &s.front},
		{"--web-listen", s.config.WebListen, &s.web},
		{"--redis-listen", s.config.RedisListen, &s.redis},
		{"--metrics-listen", s.config.MetricsListen, &s.measured},
	} {
		if *x.is, err = s.listenOn(ctx, x.flag, x.address); err != nil {
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
	s.onClose(func() error {
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	})
	return &listener{l, s.config.TLS || !l.Addr().(*net.TCPAddr).IP.IsLoopback()}, nil
}

// url is where clients find a listener.
func (s *server) url(l *listener) string {
	if !l.secure {
		return "http://" + l.Addr().String()
	}
	return "https://" + net.JoinHostPort(s.host(l), strconv.Itoa(l.port()))
}

// serve serves the front door to clients. Web actions share it, or have a listener, hosts, or both.
func (s *server) serve(c gateway.Config, origin *webaction.Origin, has *seats.Seats) {
	if s.measured != nil {
		nothing := http.HandlerFunc(nothingButMetrics)
		s.serveOn(s.measured, gateway.New(gateway.Config{API: nothing, Web: nothing, Metrics: c.Metrics, Gate: c.Gate, Log: c.Log, Audit: c.Audit}), has)
		c.Metrics = nil
	}
	front := gateway.New(c)
	if origin.URL != "" {
		w := gateway.Config{API: http.HandlerFunc(webaction.Nothing), Web: origin.Only(c.Web), Gate: c.Gate, Log: c.Log, Audit: c.Audit}
		if c.Metrics != nil {
			w.Metrics = http.NotFoundHandler()
		}
		web := gateway.New(w)
		c.Web = http.HandlerFunc(origin.Elsewhere)
		front = gateway.New(c)
		if s.web != nil {
			s.serveOn(s.web, web, has)
		} else {
			front = origin.Split(web, front)
		}
	}
	s.serveOn(s.front, front, has)
}

func nothingButMetrics(w http.ResponseWriter, r *http.Request) {
	gateway.Fail(w, r, forerun.Errorf(forerun.NotFound, r.URL.Path, "This address serves /metrics and /healthz only."))
}

func (s *server) serveOn(l *listener, handler http.Handler, has *seats.Seats) {
	server := gateway.NewServer(handler, has, s.tlsOf(l), s.log)
	s.http = append(s.http, server)
	go func() {
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.broken <- forerun.Errorf(forerun.Internal, "", "The HTTP server has ended: %w", err)
		}
	}()
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
