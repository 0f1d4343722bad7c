package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/quic-go/quic-go/testutils/simnet"

	"forerun.dev/forerun/internal/certificate"
	"forerun.dev/forerun/internal/seats"
)

// network has the listeners of a server in a test, and leads to them.
type network struct {
	tcp  net.Listener
	udp  net.PacketConn
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// client is a UDP socket of a client.
	client func() (net.PacketConn, error)
}

// secured is a server with TLS and a client's trust in it.
type secured struct {
	*Server
	testing.TB
	network
	gate   *Gate
	trust  *x509.CertPool
	common *QUIC
}

// newSecured makes a server of an API on a network.
func newSecured(t testing.TB, api http.Handler, has *seats.Seats, n network) *secured {
	t.Helper()
	return newSecuredWith(t, api, has, n, &QUIC{Early: true, Traffic: new(Traffic)})
}

func newSecuredWith(t testing.TB, api http.Handler, has *seats.Seats, n network, common *QUIC) *secured {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	keeper, trust := newKeeper(t)
	s := &secured{TB: t, network: n, gate: NewGate(), trust: trust, common: common}
	door := New(Config{API: api, Web: http.NotFoundHandler(), Metrics: http.NotFoundHandler(), Gate: s.gate, Traffic: s.common.Traffic, Log: log})
	s.Server = NewServer(door, has, keeper.Config(), log)
	if err := s.ListenQUIC(n.udp, s.common); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(n.tcp) }()
	return s
}

// newKeeper keeps a certificate for localhost, and has the trust of clients in it.
func newKeeper(t testing.TB) (*certificate.Keeper, *x509.CertPool) {
	t.Helper()
	authority, err := certificate.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := certificate.Own(authority, []string{"localhost"}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(authority.Certificate())
	return keeper, trust
}

// onLoopback makes one with sockets of the loopback.
func onLoopback(t *testing.T, conns int, api http.HandlerFunc) *secured {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	client := func() (net.PacketConn, error) { return net.ListenPacket("udp", "127.0.0.1:0") }
	udp, err := client()
	if err != nil {
		t.Fatal(err)
	}
	s := newSecured(t, api, seats.New(conns, fewStrangers), network{l, udp, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	}, client})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// onPipes runs a test with a server in a bubble.
func onPipes(t *testing.T, api http.HandlerFunc, test func(t *testing.T, s *secured)) {
	t.Helper()
	onPipesWith(t, seats.New(10, fewStrangers), api, test)
}

func onPipesWith(t *testing.T, has *seats.Seats, api http.HandlerFunc, test func(t *testing.T, s *secured)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		door, wires := make(pipes), &simnet.Simnet{Router: &simnet.PerfectRouter{}}
		hosts := 0
		socket := func() (net.PacketConn, error) {
			hosts++
			link := &simnet.SimulatedLink{Latency: 5 * time.Millisecond}
			link.UploadPacket = wires.Router
			at := &net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1000 + hosts}
			c := simnet.NewBlockingSimConn(at, link)
			wires.Router.AddNode(at, link)
			link.Start()
			t.Cleanup(func() { _ = link.Close() })
			return c, nil
		}
		udp, _ := socket() // it has no error
		s := newSecured(t, api, has, network{door, udp, func(context.Context, string, string) (net.Conn, error) {
			inside, outside := net.Pipe()
			door <- inside
			return outside, nil
		}, socket})
		test(t, s)
		close(door)
		_ = s.Close()
		time.Sleep(time.Second) // http.Server ends some connections a little later
	})
}

// protocols lists the protocols that the gateway speaks over TLS.
func protocols() []string { return []string{"http/1.1", "h2", "h3"} }

// transport is a client that keeps connections.
type transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// client is a client that speaks one protocol.
func (s *secured) client(protocol string) transport {
	if protocol == "h3" {
		return s.h3(&quic.Config{})
	}
	p := new(http.Protocols)
	p.SetHTTP1(protocol == "http/1.1")
	p.SetHTTP2(protocol == "h2")
	c := &http.Transport{DialContext: s.dial, TLSClientConfig: &tls.Config{RootCAs: s.trust}, Protocols: p, ExpectContinueTimeout: time.Hour}
	s.Cleanup(c.CloseIdleConnections)
	return c
}

// h3 is a client that speaks HTTP/3.
func (s *secured) h3(config *quic.Config) *http3.Transport {
	c := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.trust}, QUICConfig: config,
		Dial: func(ctx context.Context, _ string, secure *tls.Config, config *quic.Config) (*quic.Conn, error) {
			return s.dialQUIC(ctx, secure, config)
		},
	}
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// dialQUIC connects from a socket of its own, which is closed with the connection.
func (s *secured) dialQUIC(ctx context.Context, secure *tls.Config, config *quic.Config) (*quic.Conn, error) {
	socket, err := s.network.client()
	if err != nil {
		return nil, err
	}
	if _, real := s.udp.(*net.UDPConn); real { // in a bubble time is not lost on a busy machine
		config = config.Clone()
		config.HandshakeIdleTimeout, config.MaxIdleTimeout = time.Minute, 5*time.Minute
	}
	t := &quic.Transport{Conn: socket}
	conn, err := t.DialEarly(ctx, s.udp.LocalAddr(), secure, config)
	end := func() { _, _ = t.Close(), socket.Close() }
	if err != nil {
		end()
		return nil, err
	}
	context.AfterFunc(conn.Context(), end)
	return conn, nil
}

// connectQUIC connects with HTTP/3, whose streams the test itself writes.
func (s *secured) connectQUIC() *quic.Conn {
	s.Helper()
	conn, err := s.dialQUIC(context.Background(), &tls.Config{RootCAs: s.trust, ServerName: "localhost", NextProtos: []string{"h3"}}, &quic.Config{})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.CloseWithError(0, "") })
	<-conn.HandshakeComplete()
	return conn
}

// ask sends a request, and reads the answer.
func (s *secured) ask(c http.RoundTripper, method, path, as string, body io.Reader, headers ...string) (status int, text string, err error) {
	s.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, "https://localhost"+path, body)
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("As", as)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := c.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(content), err
}

// mustAsk is ask for an answer that comes.
func (s *secured) mustAsk(c http.RoundTripper, path, as string) int {
	s.Helper()
	status, _, err := s.ask(c, http.MethodGet, path, as, nil)
	if err != nil {
		s.Errorf("GET %s as %s: %v", path, as, err)
	}
	return status
}
